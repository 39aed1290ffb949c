"""Every honest kernel stays within the bounds, wherever it rounds, and a dishonest one does not.

The inputs are adversarial and seeded. A bound that an honest kernel exceeds is wrong: what is
missing is an allowance, never a looser test.
"""

import numpy as np
import pytest

from conformance.precision import DTYPES
from tests import honest_answers as answers
from tests import honest_norm as norms
from tests.adversarial import Draw, cast, outside, proof_of, ratios


def seeds(count):
    return pytest.mark.parametrize("seed", range(count))


@seeds(28)
def test_linear(seed):
    """Every sum of products, the bias last or first, lies within the bound."""
    draw = Draw(1, seed)
    outputs = int(draw.random.integers(1, 4))
    x, weight = draw.far(), draw.patterned(outputs, draw.width, scales=(1, 0.01)).T
    bias = draw.normal(outputs, scales=(1, 1, 100, 1e4))
    proof = proof_of("linear", x=x, weight=weight, bias=bias)
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.linear_answers(*cast(dtype, x, weight, bias))) == {}


@seeds(21)
def test_gradients_of_linear(seed):
    """The three gradients by every sum lie within their bounds."""
    draw = Draw(2, seed)
    outputs = int(draw.random.integers(1, 4))
    x, weight = draw.far(), draw.patterned(outputs, draw.width, scales=(1, 0.01)).T
    g = draw.patterned(draw.rows, outputs)
    proof = proof_of("linear", g, x=x, weight=weight, bias=np.zeros(outputs))
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.linear_gradients(*cast(dtype, g, x, weight))) == {}


def norm_arguments(draw):
    gamma = draw.normal(draw.width, scales=(1, 1, 0.01, 30))
    return draw.far(), gamma, draw.normal(draw.width, scales=(0, 1, 100))


@seeds(28)
def test_layer_norm(seed):
    """Two passes, updates, merged blocks; centred or folded: all lie within the bound."""
    x, gamma, beta = norm_arguments(Draw(3, seed))
    proof = proof_of("layer_norm", x=x, gamma=gamma, beta=beta)
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.norm_answers(*cast(dtype, x, gamma, beta))) == {}


@seeds(14)
def test_gradients_of_layer_norm(seed):
    """Standard, folded, fused and step by step: all gradients lie within their bounds."""
    draw = Draw(4, seed)
    x, gamma, beta = norm_arguments(draw)
    g = draw.patterned(draw.rows, draw.width)
    proof = proof_of("layer_norm", g, x=x, gamma=gamma, beta=beta)
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.norm_gradients(*cast(dtype, g, x, gamma))) == {}


@pytest.mark.parametrize(("dtype", "steps"), [("float32", 326), ("float64", 151)])
def test_gradients_of_layer_norm_from_a_running_mean(dtype, steps):
    """A running mean that drifts along a ramp far from zero is honest, and so is its variance.

    Every update rounds the mean by up to u 300. With these steps the roundings add up, and reach
    the variance through the deviations. The upstream is orthogonal to the ramp and to a constant,
    so that the gradient shows nothing but the root.
    """
    x = (300 + np.arange(32) / steps).astype(dtype).astype(np.float64).reshape(1, 32)
    g = np.tile([1.0, -1.0, -1.0, 1.0], 8).reshape(1, 32)
    gamma, beta = np.ones(32), np.zeros(32)
    proof = proof_of("layer_norm", g, x=x, gamma=gamma, beta=beta)
    assert outside(proof, dtype, answers.norm_gradients(*cast(dtype, g, x, gamma))) == {}


@pytest.mark.parametrize(
    ("dtype", "middle", "step", "upstream"),
    [("float32", 7268, 52, (25, -8, -25)), ("float64", 7240, 6, (10, 7, -10))],
)
def test_gradients_of_layer_norm_folded_around_its_mean(dtype, middle, step, upstream):
    """Written by hand, the gradient at the mean takes over the rounding of the mean and of b x.

    With x in the middle of its two neighbours and b large, r a + b x + c is small beside b x.
    What differentiating layer norm step by step gives has neither error: there the rounding of
    the mean cancels.
    """
    x = ((middle + step * np.array([[-1, 0, 1]])) / 7).astype(dtype).astype(np.float64)
    g, gamma, beta = np.array([upstream], dtype=np.float64), np.ones(3), np.zeros(3)
    proof = proof_of("layer_norm", g, x=x, gamma=gamma, beta=beta)
    assert outside(proof, dtype, answers.norm_gradients(*cast(dtype, g, x, gamma))) == {}


def test_gradients_of_layer_norm_from_a_variance_that_vanishes():
    """Where an update may round the variance to zero, its error is not linear: no verdict.

    Two numbers one unit in the last place of float32 apart, at many positions, since the guard
    against it draws random signs.
    """
    x = np.tile([4648966.5, 4648967.0, 4648967.0], (24, 1))
    g = np.resize([1.0, -2.0, 3.0, 5.0, -1.0, 4.0, 2.0], (24, 3))
    gamma, beta = np.ones(3), np.zeros(3)
    proof = proof_of("layer_norm", g, x=x, gamma=gamma, beta=beta)
    found = answers.norm_gradients(*cast("float32", g, x, gamma))
    assert outside(proof, "float32", found) == {}


@seeds(21)
def test_gelu(seed):
    """By erf, by erfc or by both, from far left to far right: all lie within the bound."""
    draw = Draw(5, seed)
    x = draw.patterned(draw.rows, draw.width, scales=(0.01, 1, 2, 4, -1, -2, -4))
    proof = proof_of("gelu", x=x)
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.gelu_answers(*cast(dtype, x))) == {}


@seeds(21)
def test_gradient_of_gelu(seed):
    """Every way to add the two terms of the derivative lies within the bound."""
    draw = Draw(6, seed)
    x = draw.patterned(draw.rows, draw.width, scales=(0.01, 1, 2, 4, -1, -2, -4))
    g = draw.patterned(draw.rows, draw.width)
    proof = proof_of("gelu", g, x=x)
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.gelu_gradients(*cast(dtype, g, x))) == {}


def weights(draw):
    hidden = 1 + int(draw.random.integers(5))
    w_1 = draw.patterned(hidden, draw.width, scales=(1, 0.1)).T
    w_2 = draw.patterned(draw.width, hidden).T
    return w_1, draw.normal(hidden, scales=(1, 10)), w_2, draw.normal(draw.width, scales=(1, 100))


FEED_FORWARD = ("x", "w_1", "b_1", "w_2", "b_2")


@seeds(14)
def test_feed_forward(seed):
    """Two linear layers and a GELU, composed of every form, lie within the bound."""
    draw = Draw(7, seed)
    given = (draw.patterned(draw.rows, draw.width, offsets=(0, 0, 10)), *weights(draw))
    proof = proof_of("feed_forward", **dict(zip(FEED_FORWARD, given, strict=True)))
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.feed_forward_answers(*cast(dtype, *given))) == {}


@seeds(7)
def test_gradients_of_feed_forward(seed):
    """The five gradients of the composition lie within their bounds."""
    draw = Draw(8, seed)
    given = (draw.patterned(draw.rows, draw.width, offsets=(0, 0, 10)), *weights(draw))
    g = draw.patterned(draw.rows, draw.width)
    proof = proof_of("feed_forward", g, **dict(zip(FEED_FORWARD, given, strict=True)))
    for dtype in DTYPES:
        found = answers.feed_forward_gradients(*cast(dtype, g, *given[:4]))
        assert outside(proof, dtype, found) == {}


SUBLAYER = ("x", "gamma", "beta", *FEED_FORWARD[1:])


@seeds(7)
def test_feed_forward_sublayer(seed):
    """The trunk added last, or taken as the start of the last sum: both lie within the bound."""
    draw = Draw(9, seed)
    given = (*norm_arguments(draw), *weights(draw))
    proof = proof_of("feed_forward_sublayer", **dict(zip(SUBLAYER, given, strict=True)))
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.sublayer_answers(*cast(dtype, *given))) == {}


@seeds(5)
def test_input_gradient_of_feed_forward_sublayer(seed):
    """The gradient through the trunk and through the branch lies within its bound."""
    draw = Draw(10, seed)
    given = (*norm_arguments(draw), *weights(draw))
    g = draw.patterned(draw.rows, draw.width)
    proof = proof_of("feed_forward_sublayer", g, **dict(zip(SUBLAYER, given, strict=True)))
    for dtype in DTYPES:
        found = answers.sublayer_gradients(*cast(dtype, g, *given[:6]))
        assert outside(proof, dtype, found) == {}


@pytest.mark.parametrize(("dtype", "offset"), [("float32", 1e4), ("float64", 1.5e8)])
def test_a_variance_in_one_pass_is_outside(dtype, offset):
    """Whole numbers around an offset whose square is coarser than their variance: far outside."""
    x = offset + np.arange(8.0).reshape(1, 8)
    gamma, beta = np.ones(8), np.zeros(8)
    proof = proof_of("layer_norm", x=x, gamma=gamma, beta=beta)
    assert np.all(np.isfinite(proof.bounds[dtype]["", "y"]))
    x, gamma, beta = cast(dtype, x, gamma, beta)
    mean, variance = norms.one_pass(x)
    square = variance + answers.EPS
    found = [("y", form, norm(x, mean, square, gamma, beta)) for form, norm in norms.NORMS.items()]
    assert min(ratios(proof, dtype, found).values()) > 100


def test_tame_inputs_receive_a_verdict():
    """An infinite bound proves nothing: of normal numbers at most 1 % have one, in float32."""
    infinite, elements = dict.fromkeys(DTYPES, 0), dict.fromkeys(DTYPES, 0)
    for seed in range(7):
        draw = Draw(11, seed)
        x, gamma, beta = draw.normal(2, draw.width), draw.normal(draw.width), np.zeros(draw.width)
        for upstream in (None, draw.normal(2, draw.width)):
            proof = proof_of("layer_norm", upstream, x=x, gamma=gamma, beta=beta)
            for dtype, bounds in proof.bounds.items():
                infinite[dtype] += sum(int(np.isinf(bound).sum()) for bound in bounds.values())
                elements[dtype] += sum(bound.size for bound in bounds.values())
    assert infinite["float64"] == 0
    assert infinite["float32"] <= 0.01 * elements["float32"]
