"""The values, gradients and rejections of the three bundled adapters, against literals.

Literals are the worked examples of the documents, or were computed with 60 digits, gradients by
central differences; their 17 digits are compared to 1e-12. Every mistake named in the docstrings
moves a value by more than 1e-9; float64 itself leaves less than 1e-14.
"""

import numpy as np
import pytest

from conformance import Question
from conformance.backends.jax import JaxBackend
from conformance.backends.numpy import NumpyBackend
from conformance.backends.torch import TorchBackend

BACKENDS = (NumpyBackend, TorchBackend, JaxBackend)
BOTH = pytest.mark.parametrize("dtype", ["float64", "float32"])
close = np.testing.assert_allclose

LINEAR = {"x": [[[1, 2], [-1, 3]]], "weight": [[1, 0, -1], [2, 0.5, 1]], "bias": [0.5, -0.5, 1]}
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


@BOTH
def test_linear_has_the_values_and_gradients_of_the_documents(backend, dtype):
    """y = x W + b with W stored [in, out]; gradients are summed over positions (all exact)."""
    y = outputs(backend, "linear", LINEAR, dtype=dtype)["y"]
    assert y.tolist() == [[[5.5, 0.5, 2], [5.5, 1, 5]]]
    upstream = [[[1, 0, -1], [0.5, 2, 1]]]
    gradients = outputs(backend, "linear", LINEAR, upstream, dtype=dtype)
    assert gradients["x"].tolist() == [[[2, 1], [-0.5, 3]]]
    assert gradients["weight"].tolist() == [[0.5, -2, -2], [3.5, 6, 1]]
    assert gradients["bias"].tolist() == [1.5, 2, 0]


@BOTH
def test_a_square_weight_is_not_transposed(backend, dtype):
    """Where in and out are equally wide no shape gives the orientation away, only the values."""
    square = {"x": [1, 10], "weight": [[1, 2], [3, 4]]}
    assert outputs(backend, "linear", square, dtype=dtype)["y"].tolist() == [31, 42]
    found = outputs(backend, "linear", square, [1, 2], dtype=dtype)
    assert found["x"].tolist() == [5, 11]
    assert found["weight"].tolist() == [[1, 2], [10, 20]]


def test_a_bias_gradient_is_a_sum_over_all_leading_axes(backend):
    """Neither a mean nor the sum over the first axis alone; absent where there is no bias."""
    for upstream, bias in (
        ([[1, 0], [0, 2], [3, 4]], [4, 6]),
        (np.arange(1, 13).reshape(2, 3, 2), [36, 42]),
    ):
        x = np.ones((*np.shape(upstream)[:-1], 3))
        arguments = {"x": x, "weight": np.ones((3, 2)), "bias": [0, 0]}
        assert outputs(backend, "linear", arguments, upstream)["bias"].tolist() == bias
        del arguments["bias"]
        assert set(outputs(backend, "linear", arguments, upstream)) == {"x", "weight"}


def test_layer_norm_has_its_values(backend):
    """Population variance of centred values, eps inside the root, given and used in float64."""
    one = {"gamma": [1, 1, 1, 1], "beta": [0, 0, 0, 0], "eps": 1e-5}
    half = [0.44721180665630899, 1.341635419968927]
    for offset in (0, 1e9):  # mean(x^2) - mean(x)^2 has no digit left at the second
        y = outputs(backend, "layer_norm", {**one, "x": offset + np.array([1, 2, 3, 4])})["y"]
        close(y, [-half[1], -half[0], half[0], half[1]], rtol=1e-12)
    y = outputs(backend, "layer_norm", {**one, "x": [0, 0.002, 0, 0.002]})["y"]
    close(y, [-0.30151134457776362, 0.30151134457776362] * 2, rtol=1e-12)


def test_layer_norm_has_its_gradient(backend):
    """The gradient of a position comes from its own statistics, which depend on x as well."""
    x, upstream = [[1, 2, 4], [3, 0, 5]], [[1, 0, 0], [0, 0, 0]]
    dx = outputs(backend, "layer_norm", {**NORM, "x": x}, upstream, ("x",))["x"]
    close(dx[0], [0.22908229170096819, -0.34362000136861951, 0.11453770966765132], rtol=1e-12)
    assert dx[1].tolist() == [0, 0, 0]


def test_gelu_is_exact(backend):
    """GELU is x Phi(x) and its slope Phi(x) + x phi(x); the tanh formula gives neither."""
    found = outputs(backend, "gelu", {"x": [1, -3, -4, 0, 100, -100]})
    tail = [-0.0040496940948902836, -0.00012668496733247969]
    close(found["y"], [0.84134474606854295, *tail, 0, 100, 0], rtol=1e-12)
    close(outputs(backend, "gelu", {"x": [1]}, [1])["x"], [1.0833154705876863], rtol=1e-12)


@pytest.mark.parametrize("backend", [NumpyBackend(), JaxBackend()], ids=lambda made: made.name)
def test_gelu_by_erfc_keeps_its_digits_in_the_tail(backend):
    """At -20, where x (1 + erf) / 2 has become zero, GELU and its slope are right."""
    close(outputs(backend, "gelu", {"x": [-20]})["y"], [-5.5072482372124674e-88], rtol=1e-12)
    slope = outputs(backend, "gelu", {"x": [-20]}, [1])["x"]
    close(slope, [-1.1014360483133464e-86], rtol=1e-12)


def test_the_sublayer_has_its_values_and_gradients(backend):
    """Every argument gets the gradient that central differences at 60 digits give it."""
    y = [
        [4.3630366291623223, -6.8662688131087555, 2.2378905363212304],
        [2.8255410843178443, -1.2394469163704253, 1.1242485094931326],
    ]
    close(outputs(backend, "feed_forward_sublayer", SUBLAYER)["y"], y, rtol=1e-12)
    expected = {
        "x": [
            [4.1041130844114314, -0.0037418076227565482, -1.6003712767886748],
            [-2.7054088871070651, 2.5755572286379405, 0.87985165846912462],
        ],
        "gamma": [4.0681330891482252, -0.49853709943489001, -5.4508512027731522],
        "beta": [0.57208050786996005, -3.2874238850997862, -0.061585630864993441],
        "w_1": [
            [4.7683246051826381, -2.9537903110143796],
            [3.7948713243949301, -3.2903939983865375],
            [5.4583144863280388, 0.1530243959495331],
        ],
        "b_1": [-0.44890924613997316, -2.0419795080198664],
        "w_2": [
            [3.0631185856712322, 1.5724056479481177, 3.2610387644651716],
            [0.51260662914110247, -0.53122467210502487, 1.2789868190832575],
        ],
        "b_2": [1.25, 1.0, 1.0],
    }
    upstream = [[1, -0.5, 2], [0.25, 1.5, -1]]
    found = outputs(backend, "feed_forward_sublayer", SUBLAYER, upstream)
    for name, gradient in expected.items():
        close(found[name], gradient, rtol=1e-12, atol=1e-14, err_msg=name)


# kind, then the shapes of x, weight and bias; the last of them break two rules or more
LINEAR_REJECTIONS = [
    *[("weight-rank", (2,), weight, None) for weight in [(), (2,), (1, 2, 3)]],
    *[("zero-input-width", (0,), weight, None) for weight in [(0, 3), (0, 0)]],
    ("zero-output-width", (2,), (2, 0), None),
    *[("bias-rank", (1, 2), (2, 3), bias) for bias in [(), (1, 3), (2, 3)]],
    *[("bias-width", (2,), (2, 3), bias) for bias in [(0,), (1,), (2,)]],
    ("input-rank", (), (2, 3), (3,)),
    *[("input-width", x, (2, 3), (3,)) for x in [(3,), (2, 3), (0,), (2, 0), (1, 2, 1)]],
    ("weight-rank", (2,), (2,), (1, 3)),
    ("zero-input-width", (2,), (0, 0), (9,)),
    ("zero-input-width", (2,), (0, 3), (9,)),
    ("zero-output-width", (2,), (2, 0), (1, 3)),
    ("bias-rank", (), (2, 3), (1, 9)),
    ("bias-width", (), (2, 3), (1,)),
]


@pytest.mark.parametrize("upstream", [None, [1.0]], ids=["evaluate", "vjp"])
@pytest.mark.parametrize(("kind", "x", "weight", "bias"), LINEAR_REJECTIONS, ids=str)
def test_linear_rejects_by_the_first_rule_that_is_broken(backend, kind, x, weight, bias, upstream):
    """Rules are checked in the order of the specification, before values or gradients."""
    arguments = {"x": np.ones(x), "weight": np.ones(weight)}
    if bias is not None:
        arguments["bias"] = np.ones(bias)
    answer = ask(backend, "linear", arguments, upstream)
    assert (answer.status, answer.kind) == ("rejected", kind)


@pytest.mark.parametrize("upstream", [None, [1.0]], ids=["evaluate", "vjp"])
def test_operands_of_a_residual_addition_are_never_broadcast(backend, upstream):
    """Two shapes that differ are rejected, even where a library would stretch one of them."""
    for x, increment in [((2, 3, 4), (2, 1, 4)), ((3,), (1,)), ((2, 3), (3,)), ((), (1,))]:
        arguments = {"x": np.ones(x), "increment": np.ones(increment)}
        answer = ask(backend, "residual_add", arguments, upstream)
        assert (answer.status, answer.kind) == ("rejected", "shape-mismatch")
