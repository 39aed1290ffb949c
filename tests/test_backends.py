"""The three bundled adapters, asked as the kit asks them: what comes back, and from where.

Their values are in ``test_backend_values.py``, what is peculiar to PyTorch and to JAX in
``test_backend_processes.py``.
"""

import numpy as np
import pytest
import yaml

from conformance import Question
from conformance.backends.jax import JaxBackend
from conformance.backends.numpy import NumpyBackend
from conformance.backends.torch import TorchBackend
from conformance.harness.load import load
from conformance.harness.names import bundled
from conformance.layout import BACKENDS as BUNDLED
from conformance.layout import SPEC

BACKENDS = (NumpyBackend, TorchBackend, JaxBackend)
BOTH = pytest.mark.parametrize("dtype", ["float64", "float32"])

L = "leading"  # stands for the leading axes in the shapes below
FEED_FORWARD = {"x": (L, 3), "w_1": (3, 4), "b_1": (4,), "w_2": (4, 3), "b_2": (3,)}
SHAPES = {
    "linear": {"x": (L, 3), "weight": (3, 4), "bias": (4,)},
    "layer_norm": {"x": (L, 3), "gamma": (3,), "beta": (3,)},
    "gelu": {"x": (L, 3)},
    "softmax": {"x": (L, 3)},
    "residual_add": {"x": (L, 3), "increment": (L, 3)},
    "feed_forward": FEED_FORWARD,
    "feed_forward_sublayer": {"gamma": (3,), "beta": (3,), **FEED_FORWARD},
}
NORM = {"gamma": [1, 1, 1], "beta": [0, 0, 0], "eps": 1e-5}
SUBLAYER = {
    "x": [[1, -2, 0.5], [0.5, 3, -1]],
    "gamma": [1.5, -0.5, 1],
    "beta": [0.25, 1, -0.5],
    "w_1": [[1, -0.5], [0.5, 1.5], [-1, 0.25]],
    "b_1": [0.25, -1],
    "w_2": [[1, -2, 0.5], [0.5, 1, -1]],
    "b_2": [0.5, -0.25, 1],
    "eps": 0.25,
}


@pytest.fixture(scope="module", params=BACKENDS, ids=lambda cls: cls.name)
def backend(request):
    return request.param()


def ask(backend, operation, arguments, upstream=None, wrt=None, dtype="float64"):
    """The answer to one question; with ``upstream`` the question is for gradients."""
    given = {k: v if k == "eps" else np.asarray(v, dtype) for k, v in arguments.items()}
    if upstream is None:
        asked = {"mode": "evaluate", "outputs": ("y",)}
    else:
        wrt = wrt or tuple(name for name in given if name != "eps")
        asked = {"mode": "vjp", "upstream": {"y": np.asarray(upstream, dtype)}, "wrt": wrt}
    return backend.answer(Question(operation=operation, dtype=dtype, arguments=given, **asked))


def outputs(*question, **more):
    answer = ask(*question, **more)
    assert answer.status == "outputs", answer.message
    return answer.outputs


def filled(operation, leading, dtype):
    """Arguments with uneven values, and an upstream gradient to go with them."""
    draw = np.random.default_rng(19)
    shape = {name: leading + axes[1:] if L in axes else axes
             for name, axes in SHAPES[operation].items()}  # fmt: skip
    arguments = {name: draw.normal(size=axes).astype(dtype) for name, axes in shape.items()}
    upstream = draw.normal(size=(*leading, 4 if operation == "linear" else 3)).astype(dtype)
    return arguments | ({"eps": 1e-5} if "gamma" in shape else {}), upstream


def test_every_operation_of_the_specification_has_a_method(backend):
    """A bundled adapter has each operation that the specification names, and no other."""
    specified = yaml.safe_load((SPEC / "operations.yaml").read_text())["operations"]
    description = backend.describe()
    assert sorted(description.operations) == sorted(specified)
    assert description.name in description.versions


@pytest.mark.parametrize("cls", BACKENDS, ids=lambda cls: cls.name)
def test_a_bundled_adapter_can_be_named_by_its_file(cls, monkeypatch):
    """Its path, relative or not, means the same backend as its name; its parts are no backends."""
    monkeypatch.chdir(BUNDLED)
    for path in (
        f"{cls.name}.py",
        str(BUNDLED / f"{cls.name}.py"),
        f"{cls.name}.py:{cls.__name__}",
    ):
        assert type(load(path)) is cls
    assert set(bundled()) == {"numpy", "torch", "jax"}


@pytest.mark.parametrize("leading", [(), (2,), (2, 5), (0,), (2, 0)], ids=str)
@pytest.mark.parametrize("operation", SHAPES)
@BOTH
def test_outputs_keep_the_dtype_and_the_leading_axes(backend, operation, leading, dtype):
    """Any number of leading axes, none and empty ones included, and the dtype, are kept."""
    arguments, upstream = filled(operation, leading, dtype)
    (y,) = outputs(backend, operation, arguments, dtype=dtype).values()
    assert (y.shape, y.dtype) == (upstream.shape, dtype)
    gradients = outputs(backend, operation, arguments, upstream, dtype=dtype)
    real = {name: item for name, item in arguments.items() if name != "eps"}
    assert {k: (v.shape, v.dtype) for k, v in gradients.items()} == {
        name: (item.shape, dtype) for name, item in real.items()
    }
    if 0 in leading:  # a sum over no positions is zero, not missing and not whatever was there
        assert not any(item.any() for item in gradients.values())


@BOTH
def test_a_result_of_rank_zero_is_an_array(backend, dtype):
    """Operations without a last axis take and give arrays of rank 0."""
    for operation, arguments in (("gelu", {"x": 1}), ("residual_add", {"x": 1, "increment": 2})):
        found = outputs(backend, operation, arguments, dtype=dtype)
        found |= outputs(backend, operation, arguments, 1, dtype=dtype)
        assert {(type(v), v.shape, v.dtype.name) for v in found.values()} == {
            (np.ndarray, (), dtype)
        }


@pytest.mark.parametrize("operation", SHAPES)
def test_arguments_are_neither_written_to_nor_handed_back(backend, operation):
    """What comes back shares no memory with the question, which is as it was; asked again, the
    same question gets the same bits."""
    arguments, upstream = filled(operation, (2, 5), "float64")
    given = [item for item in (*arguments.values(), upstream) if isinstance(item, np.ndarray)]
    before = [item.copy() for item in given]
    question = (backend, operation, arguments)
    found = outputs(*question) | outputs(*question, upstream)
    assert all(np.array_equal(old, new) for old, new in zip(before, given, strict=True))
    assert not any(np.shares_memory(a, b) for a in found.values() for b in given)
    again = outputs(*question) | outputs(*question, upstream)
    assert all(np.array_equal(found[name], again[name]) for name in found)


@pytest.mark.parametrize("cls", [TorchBackend, JaxBackend], ids=lambda cls: cls.name)
def test_a_library_gets_memory_of_its_own(cls):
    """What the caller does with its arrays later changes no array that the library still has."""
    kept = []

    class Keeping(cls):
        def evaluate(self, operation, arguments):
            kept.append(arguments["x"])
            return super().evaluate(operation, arguments)

    room = np.ones(64 + 16)
    start = -room.ctypes.data % 64 // 8  # at a multiple of 64 bytes JAX would copy nothing
    outputs(Keeping(), "gelu", {"x": room[start : start + 64]})
    room[:] = 7
    assert set(kept[0].tolist()) == {1}


@pytest.mark.parametrize("cls", BACKENDS, ids=lambda cls: cls.name)
def test_an_overridden_operation_changes_all_that_use_it(cls):
    """A composite goes through the methods of the adapter, so a mistake in one shows in it."""

    class Changed(cls):
        def layer_norm(self, x, gamma, beta, *, eps):
            return x * 0 + beta

        def gelu(self, x):
            return x + 1

    # beta w_1 + b_1 = (1.5, 0.25), one more is (2.5, 1.25), times w_2 plus b_2 = (3.625, -4, 1)
    y = outputs(Changed(), "feed_forward_sublayer", SUBLAYER)["y"]
    assert y.tolist() == [[4.625, -6, 1.5], [4.125, -1, 0]]


@pytest.mark.parametrize("cls", BACKENDS, ids=lambda cls: cls.name)
def test_an_overridden_gradient_changes_all_that_use_it(cls):
    """With the branch cut off at its entrance, x keeps the gradient of the trunk and no more."""

    class Cut(cls):
        if cls is NumpyBackend:  # gradients written by hand are replaced by hand

            def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
                return {"x": x * 0, "gamma": gamma * 0, "beta": beta * 0}

        else:

            def layer_norm(self, x, gamma, beta, *, eps):
                return x * 0 + gamma * 0 + beta * 0

    upstream = [[1, -0.5, 2], [0.25, 1.5, -1]]
    found = outputs(Cut(), "feed_forward_sublayer", SUBLAYER, upstream)
    assert found["x"].tolist() == upstream
    assert not found["gamma"].any()
    assert found["b_2"].tolist() == [1.25, 1, 1]


@pytest.mark.parametrize("cls", BACKENDS, ids=lambda cls: cls.name)
def test_intermediate_values_of_a_float32_run_are_float32(cls):
    """No constant, eps included, lifts a composite computation to float64 on the way."""
    seen = []

    class Watched(cls):
        def gelu(self, x):
            seen.append(str(x.dtype))
            return super().gelu(x)

        def residual_add(self, x, increment):
            seen.append(str(increment.dtype))
            return super().residual_add(x, increment)

    outputs(Watched(), "feed_forward_sublayer", SUBLAYER, dtype="float32")
    assert [name.removeprefix("torch.") for name in seen] == ["float32", "float32"]


@BOTH
def test_no_warning_passes_for_a_rejection(backend, dtype):
    """0/0 and overflow give what IEEE 754 gives; the judge decides what that is worth."""
    constant = {**NORM, "x": [2, 2, 2], "eps": 0.0}
    assert not np.isfinite(outputs(backend, "layer_norm", constant, dtype=dtype)["y"]).any()
    huge = {**NORM, "x": [1e30, -1e30, 0]}
    outputs(backend, "layer_norm", huge, dtype=dtype)
    outputs(backend, "layer_norm", huge, [1, 0, 0], dtype=dtype)
