"""The bundled adapters from softmax to the loss of a decoder: values, gradients, what they keep.

Values are those of ``plain_decoder``; gradients are its differences. Rejections are in
``test_backend_rejections.py``.
"""

from functools import cache

import numpy as np
import pytest

from conformance.backends._parameters import blocks
from conformance.backends.jax import JaxBackend
from conformance.backends.numpy import NumpyBackend
from conformance.backends.torch import TorchBackend
from tests import plain_decoder as plain
from tests.plain_decoder import SHAPES, T, filled, outputs, real

BACKENDS = (NumpyBackend, TorchBackend, JaxBackend)
BOTH = pytest.mark.parametrize("dtype", ["float64", "float32"])
EVERY = pytest.mark.parametrize("operation", SHAPES)
close = np.testing.assert_allclose


@pytest.fixture(scope="module", params=BACKENDS, ids=lambda cls: cls.name)
def backend(request):
    return request.param()


def value(operation, arguments):
    return np.asarray(getattr(plain, operation)(**arguments))


@cache
def question(operation):
    """Arguments, an upstream gradient, and for each gradient its part along two directions."""
    arguments = filled(operation)
    draw = np.random.default_rng(11)
    upstream = draw.normal(size=value(operation, arguments).shape)
    slopes = {}
    for name, item in real(arguments).items():
        directions = draw.normal(size=(2, *item.shape))
        found = [plain.slope(operation, arguments, upstream, name, each) for each in directions]
        slopes[name] = directions, found
    return arguments, upstream, slopes


@EVERY
def test_an_operation_has_its_values(backend, operation):
    """Every value is that of a computation written another way."""
    arguments = filled(operation)
    y = outputs(backend, operation, arguments)["y"]
    close(y, value(operation, arguments), rtol=1e-12, atol=1e-13)


@EVERY
def test_every_gradient_is_the_slope_of_the_values(backend, operation):
    """Each argument and each parameter gets the gradient that differences of values give it."""
    arguments, upstream, slopes = question(operation)
    found = outputs(backend, operation, arguments, upstream)
    assert set(found) == set(slopes)
    for name, (directions, expected) in slopes.items():
        along = [np.sum(found[name] * direction) for direction in directions]
        scale = np.abs(found[name]).sum()
        close(along, expected, rtol=1e-8, atol=1e-9 * scale, err_msg=name)


@EVERY
@BOTH
def test_shape_and_dtype_are_kept(backend, operation, dtype):
    """A value has its dtype, a gradient also the shape of what it is the gradient of."""
    arguments, upstream, _ = question(operation)
    y = outputs(backend, operation, arguments, dtype=dtype)["y"]
    assert (type(y), y.shape, y.dtype) == (np.ndarray, upstream.shape, dtype)
    gradients = outputs(backend, operation, arguments, upstream, dtype=dtype)
    assert {name: (item.shape, item.dtype) for name, item in gradients.items()} == {
        name: (item.shape, dtype) for name, item in real(arguments).items()
    }


@EVERY
def test_arguments_are_neither_written_to_nor_handed_back(backend, operation):
    """Parameters and tokens too are as they were, and asked again the bits are the same."""
    arguments, upstream, _ = question(operation)
    named = {**arguments, **arguments.get("parameters", {}), "upstream": upstream}
    given = {name: item for name, item in named.items() if isinstance(item, np.ndarray)}
    before = {name: item.copy() for name, item in given.items()}
    asked = (backend, operation, arguments)
    found = outputs(*asked) | outputs(*asked, upstream)
    assert all(np.array_equal(before[name], item) for name, item in given.items())
    assert not any(np.shares_memory(a, b) for a in found.values() for b in given.values())
    again = outputs(*asked) | outputs(*asked, upstream)
    assert all(np.array_equal(found[name], again[name]) for name in found)


def test_a_gradient_is_asked_for_by_the_name_of_a_parameter(backend):
    """``wrt`` may name one argument or a few of the parameters."""
    arguments, upstream, _ = question("block")
    every = outputs(backend, "block", arguments, upstream)
    for wrt in (("x",), ("feed_forward.b_1",), ("attention.w_o", "x", "attention_norm.beta")):
        found = outputs(backend, "block", arguments, upstream, wrt=wrt)
        assert set(found) == set(wrt)
        for name in wrt:
            close(found[name], every[name], rtol=1e-12, atol=1e-13)


def test_a_row_that_no_place_used_has_a_gradient_of_zeros(backend):
    """Rows of tokens that don't occur, and of positions beyond the last, are exactly zero."""
    arguments, _, _ = question("decoder_loss")
    found = outputs(backend, "decoder_loss", arguments, 1.0)
    used = np.isin(np.arange(plain.V), arguments["tokens"])
    assert 0 < used.sum() < plain.V
    assert (found["token_embedding"].any(axis=1) == used).all()
    assert not found["position_embedding"][T:].any()
    assert found["position_embedding"][:T].any(axis=1).all()


def test_a_row_that_many_places_used_gets_the_sum(backend):
    """One token three times gets three upstream gradients; a position one of each sequence."""
    arguments = {
        "tokens": np.array([[2, 0, 2], [2, 1, 1]]),
        "token_embedding": np.zeros((4, 1)),
        "position_embedding": np.zeros((5, 1)),
    }
    upstream = np.array([[1, 2, 4], [8, 16, 32]])[..., None]
    found = outputs(backend, "embed", arguments, upstream)
    assert found["token_embedding"].tolist() == [[2], [48], [13], [0]]
    assert found["position_embedding"].tolist() == [[9], [18], [36], [0], [0]]


@pytest.mark.parametrize("operation", ["causal_attention", "attention_sublayer", "block"])
def test_no_position_depends_on_a_later_one(backend, operation):
    """A later input moves no earlier output by a bit, and an earlier output gives it no gradient;
    the output of its own position moves."""
    arguments, upstream, _ = question(operation)
    later = np.array([1 if t >= 3 else 0 for t in range(T)])[:, None]
    y = outputs(backend, operation, arguments)["y"]
    moved = outputs(backend, operation, {**arguments, "x": arguments["x"] + later})["y"]
    assert np.array_equal(moved[:, :3], y[:, :3])
    assert (moved[:, 3:] != y[:, 3:]).any(axis=2).all()
    gradient = outputs(backend, operation, arguments, upstream * (1 - later))["x"]
    assert not gradient[:, 3:].any()
    assert gradient[:, :3].any(axis=2).all()


def test_targets_that_are_not_scored_do_not_count(backend):
    """Neither in the sum nor in the number; the ignored index may be a class as well."""
    logits = np.array([[0.0, np.log(3)], [50.0, -50.0], [np.log(7), 0.0]])
    for ignored, targets in ((-100, [1, -100, 1]), (0, [1, 0, 1])):
        arguments = {"logits": logits, "targets": np.array(targets), "ignore_index": ignored}
        loss = outputs(backend, "cross_entropy", arguments)["y"]
        close(loss, (np.log(4 / 3) + np.log(8)) / 2, rtol=1e-14)
        gradient = outputs(backend, "cross_entropy", arguments, 2.0)["logits"]
        close(gradient, [[1 / 4, -1 / 4], [0, 0], [7 / 8, -7 / 8]], rtol=1e-14)
        assert not gradient[1].any()


def test_large_numbers_overflow_nothing(backend):
    """Softmax, attention and the loss are those of shifted numbers, whose powers are finite."""
    for x in ([1000.0, 0.0, 1000.0], [-10000.0, -11000.0, -10000.0]):
        found = outputs(backend, "softmax", {"x": np.array(x)})
        found |= outputs(backend, "softmax", {"x": np.array(x)}, [4.0, 1.0, 0.0])
        assert found["y"].tolist() == [0.5, 0, 0.5]
        assert found["x"].tolist() == [1, 0, -1]
    arguments = {"x": np.array([[[1.0], [-1.0]]]), "heads": 1}
    arguments |= {name: np.array([[100.0]]) for name in ("w_q", "w_k", "w_v", "w_o")}
    assert outputs(backend, "causal_attention", arguments)["y"].tolist() == [[[1e4], [-1e4]]]
    logits = {"logits": np.array([[1e4, 0.0]]), "targets": np.array([1]), "ignore_index": -100}
    assert outputs(backend, "cross_entropy", logits)["y"] == 1e4
    assert outputs(backend, "cross_entropy", logits, 1.0)["logits"].tolist() == [[1, -1]]


@pytest.mark.parametrize("cls", BACKENDS, ids=lambda cls: cls.name)
def test_an_overridden_layer_norm_changes_block_and_decoder(cls):
    """Their values and their gradients are those of a model with the other norm throughout."""

    class Halved(cls):
        def layer_norm(self, x, gamma, beta, *, eps):
            return super().layer_norm(x, gamma, beta, eps=eps) / 2

        if cls is NumpyBackend:  # gradients written by hand are replaced by hand

            def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
                return super().layer_norm_vjp(upstream / 2, x, gamma, beta, eps=eps)

    def halved(items):
        scales = ("gamma", "beta")
        return {name: item / 2 if name.endswith(scales) else item for name, item in items.items()}

    for operation in ("block", "decoder", "decoder_loss"):
        arguments, upstream, _ = question(operation)
        same = {**arguments, "parameters": halved(arguments["parameters"])}
        close(outputs(Halved(), operation, arguments)["y"], value(operation, same), rtol=1e-12)
        found = outputs(Halved(), operation, arguments, upstream)
        expected = halved(outputs(cls(), operation, same, upstream))
        for name, gradient in expected.items():
            close(found[name], gradient, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("cls", [NumpyBackend, JaxBackend], ids=lambda cls: cls.name)
def test_an_overridden_softmax_changes_attention(cls):
    """Where attention is written out it uses the softmax of the adapter; PyTorch fuses its own."""

    class Doubled(cls):
        def softmax(self, x):
            return super().softmax(x) * 2

        def softmax_vjp(self, upstream, x):
            return {"x": super().softmax_vjp(upstream, x)["x"] * 2}

    for operation in ("causal_attention", "decoder"):
        arguments, upstream, _ = question(operation)
        found = outputs(Doubled(), operation, arguments)["y"]
        assert not np.allclose(found, value(operation, arguments))
    arguments, upstream, _ = question("causal_attention")
    doubled = outputs(Doubled(), "causal_attention", arguments, upstream)
    for name, gradient in outputs(cls(), "causal_attention", arguments, upstream).items():
        close(doubled[name], 2 * gradient, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("cls", BACKENDS, ids=lambda cls: cls.name)
def test_intermediate_values_of_a_float32_decoder_are_float32(cls):
    """Nothing lifts the hidden states or the logits to float64 on the way to a float32 loss."""
    seen = []

    class Watched(cls):
        def residual_add(self, x, increment):
            seen.extend((str(x.dtype), str(increment.dtype)))
            return super().residual_add(x, increment)

        def cross_entropy(self, logits, targets, *, ignore_index):
            seen.append(str(logits.dtype))
            return super().cross_entropy(logits, targets, ignore_index=ignore_index)

    outputs(Watched(), "decoder_loss", filled("decoder_loss"), dtype="float32")
    assert [name.removeprefix("torch.") for name in seen] == ["float32"] * 9


def test_the_tenth_block_comes_after_the_ninth():
    """Blocks are in the order of their numbers, not of their names."""
    parameters = {f"blocks.{k}.feed_forward.b_1": k for k in (10, 9, 2, 0, 1)}
    assert [each["feed_forward.b_1"] for each in blocks(parameters)] == [0, 1, 2, 9, 10]
