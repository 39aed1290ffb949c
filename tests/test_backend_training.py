"""The bundled adapters as models that train: registration, start, steps, and what they count.

Gradients are differences of ``plain_decoder``, the optimiser is written out in numbers; nothing
here knows the reference.
"""

import math
import random
from functools import cache

import numpy as np
import pytest

from conformance import Question
from conformance.backends._parameters import decoder_shapes, group, sizes_of
from conformance.backends.jax import JaxBackend
from conformance.backends.numpy import NumpyBackend
from conformance.backends.torch import TorchBackend
from tests import plain_decoder as plain

BACKENDS = (NumpyBackend, TorchBackend, JaxBackend)
BOTH = pytest.mark.parametrize("dtype", ["float64", "float32"])
EACH = pytest.mark.parametrize("cls", BACKENDS, ids=lambda cls: cls.name)
close = np.testing.assert_allclose

SIZES = {"vocab_size": 11, "block_size": 9, "d_model": 10, "n_layers": 3, "d_ff": 14}
CONFIGURATION = {**SIZES, "n_heads": 5, "dropout": 0.0}
ADAMW = {"learning_rate": 0.02, "beta_1": 0.9, "beta_2": 0.999, "weight_decay": 0.1}


@pytest.fixture(scope="module", params=BACKENDS, ids=lambda cls: cls.name)
def backend(request):
    return request.param()


def outputs(backend, operation, arguments, wanted, dtype="float64"):
    asked = Question(
        operation=operation, mode="evaluate", dtype=dtype, arguments=arguments, outputs=wanted
    )
    answer = backend.answer(asked)
    assert answer.status == "outputs", answer.message
    return answer.outputs


def training(steps, dtype="float64", **settings):
    """The arguments of ``train`` on the small decoder of ``plain_decoder``."""
    given = plain.cast(plain.filled("decoder_loss"), dtype)
    more = {"steps": steps, "adam_eps": 1e-8, "max_norm": 0.5, **ADAMW}
    return {**given, **more, **settings}


def trained(backend, steps, dtype="float64", **settings):
    wanted = ("losses", "gradient_norms", "gradients", "parameters", "optimised", "predictions")
    return outputs(backend, "train", training(steps, dtype, **settings), wanted, dtype)


def under(found, name):
    return {
        key.partition(".")[2]: item for key, item in found.items() if key.startswith(f"{name}.")
    }


@cache
def gradient_norms():
    """Of each parameter at the first step, from differences of values along its gradient."""
    arguments = plain.filled("decoder_loss")
    gradients = NumpyBackend().decoder_loss_vjp(np.asarray(1.0), **arguments)
    found = {}
    for name, gradient in gradients.items():
        length = math.sqrt(np.sum(gradient**2))
        found[name] = plain.slope("decoder_loss", arguments, 1.0, name, gradient / length)
    return found


def test_a_model_registers_each_parameter_once_under_its_name(backend):
    """Twelve a block, two tables, the last norm and the head, and nothing else: no mask."""
    found = outputs(backend, "build", CONFIGURATION, ("shapes", "count"))
    shapes = {name: tuple(shape.tolist()) for name, shape in under(found, "shapes").items()}
    assert len(shapes) == 12 * 3 + 5
    assert shapes["token_embedding"] == (11, 10)
    assert shapes["position_embedding"] == (9, 10)
    assert shapes["head"] == (10, 11)
    assert shapes["blocks.2.feed_forward.w_1"] == (10, 14)
    assert shapes["blocks.2.feed_forward.b_1"] == (14,)
    assert shapes["blocks.0.attention.w_o"] == (10, 10)
    assert shapes == decoder_shapes(sizes_of({n: np.empty(s) for n, s in shapes.items()}))
    assert found["count"] == sum(math.prod(shape) for shape in shapes.values()) == 2562


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("not-positive", {"d_ff": 0}),
        ("not-positive", {"n_heads": -1, "vocab_size": 2}),
        ("vocabulary", {"vocab_size": 2, "n_heads": 3}),
        ("heads", {"n_heads": 3, "dropout": 2.0}),
        ("dropout", {"dropout": -0.1}),
        ("dropout", {"dropout": float("nan")}),
    ],
)
def test_a_configuration_is_refused_by_the_first_rule_it_breaks(backend, kind, changed):
    """Sizes, words, heads, dropout, in this order; ``initialize`` refuses what ``build`` does."""
    for operation, more in (("build", {}), ("initialize", {"random_seed": 1})):
        asked = Question(
            operation=operation,
            mode="evaluate",
            dtype="float64",
            arguments={**CONFIGURATION, **changed, **more},
            outputs=("count",),
        )
        answer = backend.answer(asked)
        assert (answer.status, answer.kind) == ("rejected", kind)


@BOTH
def test_a_new_model_is_drawn_where_it_should_be(backend, dtype):
    """Scales are one, shifts and biases zero; all else differs, and has deviation 0.02."""
    arguments = {**CONFIGURATION, "random_seed": 7}
    found = under(outputs(backend, "initialize", arguments, ("parameters",), dtype), "parameters")
    assert len(found) == 41
    assert {item.dtype.name for item in found.values()} == {dtype}
    drawn = []
    for name, item in found.items():
        if name.endswith("gamma"):
            assert (item == 1).all()
        elif name.endswith(("beta", "b_1", "b_2")):
            assert not item.any()
        else:
            drawn.append(item.reshape(-1))
    every = np.concatenate(drawn)
    assert len(set(every.tolist())) > 0.99 * every.size
    assert abs(every.std() - 0.02) < 0.002
    assert abs(every.mean()) < 0.002


def test_a_seed_repeats_and_another_differs(backend):
    """Bit for bit, whatever was drawn in between."""
    for operation, arguments, wanted in (
        ("initialize", CONFIGURATION, ("parameters",)),
        ("initialize_linear", {"d_in": 3, "d_out": 4, "with_bias": True}, ("weight", "bias")),
    ):
        first = outputs(backend, operation, {**arguments, "random_seed": 3}, wanted)
        other = outputs(backend, operation, {**arguments, "random_seed": 4}, wanted)
        again = outputs(backend, operation, {**arguments, "random_seed": 3}, wanted)
        name = "weight" if "weight" in first else "parameters.head"
        assert (first[name] != other[name]).all()
        assert all(np.array_equal(first[key], again[key]) for key in first)


def test_the_generators_of_the_process_are_left_alone(backend):
    """Nobody who seeded a generator of a library gets other numbers because a model was made."""
    import torch

    def legacy():
        return np.random.get_state()[1].tolist()  # noqa: NPY002 -- others may use it

    torch.manual_seed(5)
    before = torch.get_rng_state(), legacy(), random.getstate()
    outputs(backend, "initialize", {**CONFIGURATION, "random_seed": 3}, ("parameters",))
    outputs(backend, "build", CONFIGURATION, ("count",))
    linear = {"d_in": 3, "d_out": 4, "with_bias": True, "random_seed": 3}
    outputs(backend, "initialize_linear", linear, ("weight",))
    trained(backend, 1)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (legacy(), random.getstate())


@BOTH
def test_a_linear_layer_starts_within_its_limit(backend, dtype):
    """sqrt(6 / (d_in + d_out)), nearly reached; the bias is zero and draws nothing."""
    arguments = {"d_in": 60, "d_out": 36, "random_seed": 11}
    asked = (("weight", "bias"), dtype)
    found = outputs(backend, "initialize_linear", {**arguments, "with_bias": True}, *asked)
    assert found["weight"].shape == (60, 36)
    assert 0.99 * 0.25 < np.abs(found["weight"]).max() <= 0.25
    assert found["bias"].tolist() == [0] * 36
    assert {item.dtype.name for item in found.values()} == {dtype}
    alone = outputs(backend, "initialize_linear", {**arguments, "with_bias": False}, *asked)
    assert set(alone) == {"weight"}
    assert np.array_equal(alone["weight"], found["weight"])
    for widths, kind in (({"d_in": 0}, "zero-input-width"), ({"d_out": 0}, "zero-output-width")):
        given = {**arguments, **widths, "with_bias": True}
        question = Question(
            operation="initialize_linear", mode="evaluate", dtype=dtype, arguments=given
        )
        assert backend.answer(question).kind == kind


def test_splitmix64_gives_its_published_sequence(backend):
    """All 64 bits of each, of seeds up to the largest."""
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    found = outputs(backend, "splitmix64", {"random_seed": 1234567, "count": 5}, ("values",))
    assert found["values"].dtype == np.uint64
    assert found["values"].tolist() == published
    largest = {"random_seed": 2**64 - 1, "count": 4}
    # the state of seed -1 after one step is that of seed 2^64 - 1: (gamma - 1) mod 2^64
    z, mask = (0x9E3779B97F4A7C15 - 1), 2**64 - 1
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    assert outputs(backend, "splitmix64", largest, ("values",))["values"][0] == z ^ z >> 31


@BOTH
def test_a_step_of_adamw_has_its_values(backend, dtype):
    """Corrected from step 1, eps outside the root, decay apart from the gradient."""
    arguments = {
        "parameter": np.array([2.0, -1.0, 4.0], dtype),
        "gradient": np.array([1e-8, 0.0, -2.0], dtype),
        "first_moment": np.zeros(3, dtype),
        "second_moment": np.zeros(3, dtype),
    }
    asked = (("parameter", "first_moment", "second_moment"), dtype)
    settings = {**ADAMW, "step": 1, "eps": 1e-8}
    found = outputs(backend, "adamw_step", {**arguments, **settings}, *asked)
    tolerance = {"rtol": 1e-5 if dtype == "float32" else 1e-12}
    # 1 - 0.02 * 0.1 of each, minus 0.02 of 1e-8 / (1e-8 + 1e-8), of nothing, of -2 / (2 + 1e-8)
    close(found["parameter"], [1.996 - 0.01, -0.998, 3.992 + 0.04 / (2 + 1e-8)], **tolerance)
    close(found["first_moment"], [1e-9, 0, -0.2], **tolerance)
    close(found["second_moment"], [1e-19, 0, 0.004], **tolerance)
    assert {item.dtype.name for item in found.values()} == {dtype}
    later = {"first_moment": np.full(3, 0.5, dtype), "second_moment": np.full(3, 0.25, dtype)}
    found = outputs(backend, "adamw_step", {**arguments, **later, **settings, "step": 3}, *asked)
    first = 0.9 * 0.5 + 0.1 * -2
    second = 0.999 * 0.25 + 0.001 * 4
    direction = first / (1 - 0.729) / (math.sqrt(second / (1 - 0.999**3)) + 1e-8)
    close(found["parameter"][2], 3.992 - 0.02 * direction, **tolerance)


@BOTH
def test_gradients_are_clipped_together(backend, dtype):
    """One factor from the norm of all; below the limit they are as they were, to the bit."""
    gradients = {"a": np.array([3.0, 0.0], dtype), "b.c": np.array([[4.0], [12.0]], dtype)}
    for limit, factor in ((6.5, 6.5 / (13 + 1e-6)), (13.5, 1)):
        arguments = {"gradients": gradients, "max_norm": limit}
        found = outputs(backend, "clip_gradients", arguments, ("gradients", "norm"), dtype)
        close(found["norm"], 13, rtol=1e-6)
        assert found["norm"].shape == ()
        for name, gradient in gradients.items():
            close(found[f"gradients.{name}"], factor * gradient, rtol=0 if factor == 1 else 1e-6)
        assert {item.dtype.name for item in found.values()} == {dtype}
    none = {"gradients": {"a": np.zeros(2, dtype)}, "max_norm": 1.0}
    found = outputs(backend, "clip_gradients", none, ("gradients", "norm"), dtype)
    assert found["gradients.a"].tolist() == [0, 0]
    assert found["norm"] == 0


def test_the_record_begins_before_the_first_step(backend):
    """The first loss and the first norms are those of the given parameters, not yet clipped."""
    found = trained(backend, 2)
    arguments = plain.filled("decoder_loss")
    close(found["losses"][0], plain.decoder_loss(**arguments), rtol=1e-12)
    norms = under(found, "gradient_norms")
    assert set(norms) == set(plain.MODEL)
    for name, expected in gradient_norms().items():
        assert norms[name].shape == (2,)
        close(norms[name][0], expected, rtol=1e-7, err_msg=name)
    total = math.sqrt(sum(norm[0] ** 2 for norm in norms.values()))
    assert total > 0.5  # so that clipping does change what the step is made with


def test_each_step_is_one_of_adamw_on_clipped_gradients(backend):
    """Two steps, with gradients of the plain backward and the optimiser in a few lines."""
    given = training(2)
    model = {name: item.copy() for name, item in given["parameters"].items()}
    inner = {name: given[name] for name in ("heads", "eps", "ignore_index")}
    first, second = (dict.fromkeys(model, 0.0) for _ in range(2))
    losses = []
    for t in (1, 2):
        same = {"tokens": given["tokens"], "targets": given["targets"], "parameters": model}
        losses.append(plain.decoder_loss(**same, **inner))
        gradients = NumpyBackend().decoder_loss_vjp(np.asarray(1.0), **same, **inner)
        norm = math.sqrt(sum(np.sum(g**2) for g in gradients.values()))
        for name, gradient in gradients.items():
            g = gradient * min(1, 0.5 / (norm + 1e-6))
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.999 * second[name] + 0.001 * g**2
            root = np.sqrt(second[name] / (1 - 0.999**t)) + 1e-8
            model[name] = 0.998 * model[name] - 0.02 * first[name] / (1 - 0.9**t) / root
    found = trained(backend, 2)
    close(found["losses"], losses, rtol=1e-11)
    told = under(found, "gradients")
    assert set(told) == set(gradients)
    for name, gradient in gradients.items():  # of the last step, as they were before clipping
        close(told[name], gradient, rtol=1e-6, atol=1e-9, err_msg=name)
    for name, item in under(found, "parameters").items():
        # an element whose gradient is mere rounding may step either way
        moved = np.abs(first[name]) > 1e-12
        close(item[moved], model[name][moved], rtol=1e-7, atol=1e-9, err_msg=name)
    logits = plain.decoder(given["tokens"], model, given["heads"], given["eps"])
    assert np.array_equal(found["predictions"], logits.argmax(-1))


@BOTH
def test_training_keeps_names_shapes_and_dtype(backend, dtype):
    """Weights come back ``[in, out]``, all elements are held, and nothing given is written to."""
    given = training(3, dtype)
    before = {name: item.copy() for name, item in given["parameters"].items()}
    found = trained(backend, 3, dtype)
    assert found["losses"].shape == (3,)
    assert found["predictions"].dtype == np.int64
    assert under(found, "optimised") == {
        name: math.prod(shape) for name, shape in plain.MODEL.items()
    }
    after = under(found, "parameters")
    assert {name: item.shape for name, item in after.items()} == plain.MODEL
    told = under(found, "gradients")
    assert {name: item.shape for name, item in told.items()} == plain.MODEL
    norms = under(found, "gradient_norms")
    real = [*after.values(), *norms.values(), *told.values(), found["losses"]]
    assert {item.dtype.name for item in real} == {dtype}
    assert all(np.array_equal(item, given["parameters"][name]) for name, item in before.items())
    assert all((item != before[name]).any() for name, item in after.items())


@EACH
def test_an_overridden_layer_norm_changes_training(cls):
    """A model is built from the methods of its adapter, so a mistake in one is trained as well."""

    class Halved(cls):
        def layer_norm(self, x, gamma, beta, *, eps):
            return super().layer_norm(x, gamma, beta, eps=eps) / 2

        if cls is NumpyBackend:  # gradients written by hand are replaced by hand

            def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
                return super().layer_norm_vjp(upstream / 2, x, gamma, beta, eps=eps)

    arguments = plain.filled("decoder_loss")
    same = {
        name: item / 2 if name.endswith(("gamma", "beta")) else item
        for name, item in arguments["parameters"].items()
    }
    found = trained(Halved(), 1)["losses"][0]
    close(found, plain.decoder_loss(**{**arguments, "parameters": same}), rtol=1e-12)
    assert abs(found - trained(cls(), 1)["losses"][0]) > 1e-3


@BOTH
def test_what_a_step_remembers_changes_no_bit_and_is_computed_once(dtype):
    """Layer norms are normalised once for the loss, its gradient and the norm's own gradient."""

    class Forgetful(NumpyBackend):
        def _once(self, function, *arrays, **settings):
            return function(*arrays, **settings)

    class Counting(NumpyBackend):
        norms = 0

        def layer_norm(self, x, gamma, beta, *, eps):
            self.norms += 1
            return super().layer_norm(x, gamma, beta, eps=eps)

    counting = Counting()
    found, same = trained(counting, 4, dtype), trained(Forgetful(), 4, dtype)
    assert found.keys() == same.keys()
    for name, array in found.items():
        assert array.tobytes() == same[name].tobytes(), name
    layers = sizes_of(training(1)["parameters"]).n_layers
    assert counting.norms == (4 + 1) * (2 * layers + 1)  # four steps, and the predictions


def test_nothing_is_remembered_after_a_step():
    """An array that is written to is another one, for an operation by itself."""
    backend, x = NumpyBackend(), np.array([1.0, 2.0, 4.0])
    trained(backend, 1)
    before = backend.layer_norm(x, np.ones(3), np.zeros(3), eps=1e-5)
    x[0] = -7.0
    assert (backend.layer_norm(x, np.ones(3), np.zeros(3), eps=1e-5) != before).all()


@pytest.mark.parametrize("cls", [NumpyBackend, TorchBackend], ids=lambda cls: cls.name)
def test_an_absent_gradient_is_not_a_gradient_of_zero(cls):
    """A table that nothing depends on has no norm and stays as it is, though it is held; one that
    is multiplied by zero has norms of zero, and decays."""

    class Detached(cls):
        factor = None

        def embed(self, tokens, token_embedding, position_embedding):
            table = position_embedding * 0
            if self.factor is None and cls is TorchBackend:
                table = table.detach()
            return super().embed(tokens, token_embedding, table)

        if cls is NumpyBackend:  # gradients written by hand are replaced by hand

            def embed_vjp(self, upstream, *arguments):
                found = super().embed_vjp(upstream, *arguments)
                of_positions = found.pop("position_embedding")
                zero = {} if self.factor is None else {"position_embedding": 0 * of_positions}
                return {**found, **zero}

    given = training(2)["parameters"]["position_embedding"]
    absent = trained(Detached(), 2)
    assert "gradient_norms.position_embedding" not in absent
    assert absent["optimised.position_embedding"] == given.size
    assert np.array_equal(absent["parameters.position_embedding"], given)
    Detached.factor = 0
    zero = trained(Detached(), 2)
    assert zero["gradient_norms.position_embedding"].tolist() == [0, 0]
    close(zero["parameters.position_embedding"], given * 0.998**2, rtol=1e-12)


def test_what_the_optimiser_does_not_hold_is_missing(monkeypatch):
    """In PyTorch the names come from the optimiser: parameters left out of it are not optimised."""
    import torch

    class Forgetful(torch.optim.AdamW):
        def __init__(self, parameters, *settings):
            super().__init__(list(parameters)[:-1], *settings)

    monkeypatch.setattr(torch.optim, "AdamW", Forgetful)
    found = trained(TorchBackend(), 1)
    assert set(under(found, "optimised")) == set(plain.MODEL) - {"head"}
    assert "gradient_norms.head" in found


def test_two_tokens_that_alternate_are_learned(backend):
    """A hundred and twenty steps: from about log V to below a tenth, each target predicted."""
    sizes = {**SIZES, "vocab_size": 4, "d_model": 8, "n_layers": 1}
    start = {**sizes, "n_heads": 2, "dropout": 0.0, "random_seed": 1}
    model = under(outputs(NumpyBackend(), "initialize", start, ("parameters",)), "parameters")
    targets = np.array([[1, 0, 1, 0]])
    batch = {"tokens": np.array([[0, 1, 0, 1]]), "targets": targets, "parameters": model}
    found = trained(backend, 120, **batch, weight_decay=0.0, max_norm=1.0, eps=1e-5)
    assert abs(found["losses"][0] - math.log(4)) < 0.1
    assert found["losses"][-1] < 0.1
    assert found["predictions"].tolist() == targets.tolist()


def test_counts_are_those_of_the_model(backend):
    """Each group apart; packing changes how many tensors there are, and nothing else."""
    apart = outputs(
        backend, "parameter_groups", {**SIZES, "packed": False}, ("groups", "total", "tensors")
    )
    packed = outputs(
        backend, "parameter_groups", {**SIZES, "packed": True}, ("groups", "total", "tensors")
    )
    assert {name: int(item) for name, item in under(apart, "groups").items()} == {
        "token_embedding": 110,
        "position_embedding": 90,
        "attention": 1200,
        "feed_forward_weights": 840,
        "feed_forward_biases": 72,
        "block_norms": 120,
        "final_norm": 20,
        "head": 110,
    }
    assert (apart["total"], apart["tensors"]) == (2562, 41)
    assert packed["tensors"] == 41 - 6
    assert {k: v for k, v in packed.items() if k != "tensors"} == {
        k: v for k, v in apart.items() if k != "tensors"
    }
    assert set(map(group, plain.MODEL)) == set(under(apart, "groups"))


def test_large_numbers_are_counted_exactly(backend):
    """Beyond what a double, or 32 bits, can count; nothing is allocated for it."""
    flops = {"parameters": 107776, "tokens": 10**12 + 1}
    found = outputs(backend, "training_flops", flops, ("flops",))
    assert found["flops"] == 6 * 107776 * (10**12 + 1)
    assert found["flops"].dtype == np.int64
    given = {"parameters": 19320, "bytes_per_number": 4}
    assert outputs(backend, "training_bytes", given, ("bytes",))["bytes"] == 309120
    given = {"batch": 2, "length": 3, "n_heads": 5, "vocab_size": 7}
    found = outputs(backend, "activation_elements", given, ("scores", "logits"))
    assert (found["scores"], found["logits"]) == (90, 42)
    large = {"vocab_size": 10**6, "block_size": 10**5, "d_model": 10**4, "n_layers": 1, "d_ff": 1}
    found = outputs(backend, "parameter_groups", {**large, "packed": False}, ("total",))
    assert found["total"] > 2 * 10**10
