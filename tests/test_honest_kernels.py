"""Every honest kernel stays within the bounds, wherever it rounds, and a dishonest one does not.

The inputs are adversarial and seeded. A bound that an honest kernel exceeds is wrong: what is
missing is an allowance, never a looser test. Each test tries every combination of the parameters
of ``honest_kernels``, ``honest_norm`` and ``honest_gelu``.
"""

from functools import partial
from itertools import product

import numpy as np
import pytest

from conformance.precision import DTYPES
from tests import honest_gelu as gelus
from tests import honest_kernels as kernels
from tests import honest_norm as norms
from tests.adversarial import Answers, Draw, cast, outside, proof_of, ratios

EPS = 1e-5

# -------------------------------------------------------------------------------- what is tried


def linear_answers(x, weight, bias) -> Answers:
    for name, multiply in kernels.PRODUCTS.items():
        yield "y", name, kernels.linear(x, weight, bias, product=multiply)
    yield "y", "from bias", kernels.linear_from(bias, x, weight)
    yield "y", "from bias, fused", kernels.fused_from(bias, x, weight)


def linear_gradients(g, x, weight) -> Answers:
    for (name, multiply), (by, total) in product(kernels.PRODUCTS.items(), kernels.SUMS.items()):
        found = kernels.linear_vjp(g, x, weight, product=multiply, total=total)
        yield "x", name, found["x"]
        yield "weight", name, found["weight"]
        yield "bias", by, found["bias"]


def norm_answers(x, gamma, beta) -> Answers:
    forms = product(norms.STATISTICS.items(), norms.EPS.items(), norms.NORMS.items())
    for (by, statistics), (added, add), (form, norm) in forms:
        mean, variance = statistics(x)
        yield "y", f"{by}, eps {added}, {form}", norm(x, mean, add(variance, EPS), gamma, beta)


def norm_gradients(g, x, gamma) -> Answers:
    forms = product(norms.STATISTICS.items(), norms.EPS.items(), kernels.SUMS.items())
    for (by, statistics), (added, add), (_, total) in forms:
        mean, variance = statistics(x)
        root = np.sqrt(add(variance, EPS))
        for form, gradient in norms.INPUT_GRADIENTS.items():
            name = f"{by}, eps {added}, {form}"
            yield "x", name, gradient(g, x, mean, root, gamma, total)
        for form, normalise in norms.NORMALISED.items():
            name, normalised = f"{by}, eps {added}, {form}", normalise(x, mean, root)
            for output, found in norms.affine_vjp(g, normalised, total=total).items():
                yield output, name, found


def gelu_answers(x) -> Answers:
    for (form, gelu), (by, argument) in product(gelus.GELUS.items(), gelus.ARGUMENTS.items()):
        yield "y", f"{form}, {by}", gelu(x, argument)


def gelu_gradients(g, x) -> Answers:
    parts = (gelus.GRADIENTS, gelus.ARGUMENTS, gelus.CDFS, gelus.DENSITIES)
    for named in product(*(part.items() for part in parts)):
        names, (gradient, *how) = zip(*named, strict=True)
        yield "x", ", ".join(names), gradient(g, x, *how)


def feed_forward_answers(x, w_1, b_1, w_2, b_2) -> Answers:
    for (name, multiply), (form, gelu) in product(kernels.PRODUCTS.items(), gelus.GELUS.items()):
        activation = partial(gelu, argument=gelus.by_product)
        found = kernels.feed_forward(x, w_1, b_1, w_2, b_2, product=multiply, gelu=activation)
        yield "y", f"{name}, {form}", found
    hidden = gelus.erf_form(kernels.linear_from(b_1, x, w_1), gelus.by_division)
    yield "y", "from bias", kernels.linear_from(b_2, hidden, w_2)


def feed_forward_gradients(g, x, w_1, b_1, w_2) -> Answers:
    forms = product(kernels.PRODUCTS.items(), kernels.SUMS.items(), gelus.CDFS.items())
    for (name, multiply), (by, total), (form, cdf) in forms:
        found = kernels.feed_forward_vjp(
            *(g, x, w_1, b_1, w_2),
            product=multiply,
            total=total,
            gelu=partial(gelus.GELUS[form], argument=gelus.by_product),
            gelu_gradient=lambda upstream, z, cdf=cdf: gelus.together(
                upstream, z, gelus.by_product, cdf, gelus.density
            ),
        )
        for output, array in found.items():
            yield output, f"{name}, {by}, {form}", array


def sublayer_answers(x, gamma, beta, w_1, b_1, w_2, b_2) -> Answers:
    for (by, statistics), (form, norm) in product(norms.STATISTICS.items(), norms.NORMS.items()):
        mean, variance = statistics(x)
        normalised = norm(x, mean, norms.eps_double(variance, EPS), gamma, beta)
        activation = partial(gelus.erf_form, argument=gelus.by_product)
        weights = (w_1, b_1, w_2, b_2)
        branch = kernels.feed_forward(normalised, *weights, product=np.matmul, gelu=activation)
        yield "y", f"{by}, {form}, trunk last", x + branch
        fused = kernels.sublayer_from_trunk(x, normalised, *weights, gelu=activation)
        yield "y", f"{by}, {form}, from trunk", fused


def sublayer_gradients(g, x, gamma, beta, w_1, b_1, w_2) -> Answers:
    forms = product(norms.STATISTICS.items(), norms.INPUT_GRADIENTS.items())
    for (by, statistics), (form, gradient) in forms:
        mean, variance = statistics(x)
        root = np.sqrt(norms.eps_double(variance, EPS))
        found = kernels.feed_forward_vjp(
            *(g, norms.scaled(x, mean, root * root, gamma, beta), w_1, b_1, w_2),
            product=np.matmul,
            total=kernels.sequential,
            gelu=partial(gelus.erf_form, argument=gelus.by_product),
            gelu_gradient=lambda upstream, z: gelus.together(
                upstream, z, gelus.by_product, gelus.cdf_by_erf, gelus.density
            ),
        )
        branch = gradient(found["x"], x, mean, root, gamma, kernels.sequential)
        yield "x", f"{by}, {form}", g + branch


# --------------------------------------------------------------------------------------- tests


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
        assert outside(proof, dtype, linear_answers(*cast(dtype, x, weight, bias))) == {}


@seeds(21)
def test_gradients_of_linear(seed):
    """The three gradients by every sum lie within their bounds."""
    draw = Draw(2, seed)
    outputs = int(draw.random.integers(1, 4))
    x, weight = draw.far(), draw.patterned(outputs, draw.width, scales=(1, 0.01)).T
    g = draw.patterned(draw.rows, outputs)
    proof = proof_of("linear", g, x=x, weight=weight, bias=np.zeros(outputs))
    for dtype in DTYPES:
        assert outside(proof, dtype, linear_gradients(*cast(dtype, g, x, weight))) == {}


def norm_arguments(draw):
    gamma = draw.normal(draw.width, scales=(1, 1, 0.01, 30))
    return draw.far(), gamma, draw.normal(draw.width, scales=(0, 1, 100))


@seeds(35)
def test_layer_norm(seed):
    """Two passes, updates, merged blocks; centred or folded: all lie within the bound."""
    x, gamma, beta = norm_arguments(Draw(3, seed))
    proof = proof_of("layer_norm", x=x, gamma=gamma, beta=beta)
    for dtype in DTYPES:
        assert outside(proof, dtype, norm_answers(*cast(dtype, x, gamma, beta))) == {}


@seeds(21)
def test_gradients_of_layer_norm(seed):
    """Standard, folded, fused and step by step: all gradients lie within their bounds."""
    draw = Draw(4, seed)
    x, gamma, beta = norm_arguments(draw)
    g = draw.patterned(draw.rows, draw.width)
    proof = proof_of("layer_norm", g, x=x, gamma=gamma, beta=beta)
    for dtype in DTYPES:
        assert outside(proof, dtype, norm_gradients(*cast(dtype, g, x, gamma))) == {}


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
    assert outside(proof, dtype, norm_gradients(*cast(dtype, g, x, gamma))) == {}


@seeds(21)
def test_gelu(seed):
    """By erf, by erfc or by both, from far left to far right: all lie within the bound."""
    draw = Draw(5, seed)
    x = draw.patterned(draw.rows, draw.width, scales=(0.01, 1, 2, 4, -1, -2, -4))
    proof = proof_of("gelu", x=x)
    for dtype in DTYPES:
        assert outside(proof, dtype, gelu_answers(*cast(dtype, x))) == {}


@seeds(21)
def test_gradient_of_gelu(seed):
    """Every way to add the two terms of the derivative lies within the bound."""
    draw = Draw(6, seed)
    x = draw.patterned(draw.rows, draw.width, scales=(0.01, 1, 2, 4, -1, -2, -4))
    g = draw.patterned(draw.rows, draw.width)
    proof = proof_of("gelu", g, x=x)
    for dtype in DTYPES:
        assert outside(proof, dtype, gelu_gradients(*cast(dtype, g, x))) == {}


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
        assert outside(proof, dtype, feed_forward_answers(*cast(dtype, *given))) == {}


@seeds(7)
def test_gradients_of_feed_forward(seed):
    """The five gradients of the composition lie within their bounds."""
    draw = Draw(8, seed)
    given = (draw.patterned(draw.rows, draw.width, offsets=(0, 0, 10)), *weights(draw))
    g = draw.patterned(draw.rows, draw.width)
    proof = proof_of("feed_forward", g, **dict(zip(FEED_FORWARD, given, strict=True)))
    for dtype in DTYPES:
        answers = feed_forward_gradients(*cast(dtype, g, *given[:4]))
        assert outside(proof, dtype, answers) == {}


SUBLAYER = ("x", "gamma", "beta", *FEED_FORWARD[1:])


@seeds(7)
def test_feed_forward_sublayer(seed):
    """The trunk added last, or taken as the start of the last sum: both lie within the bound."""
    draw = Draw(9, seed)
    given = (*norm_arguments(draw), *weights(draw))
    proof = proof_of("feed_forward_sublayer", **dict(zip(SUBLAYER, given, strict=True)))
    for dtype in DTYPES:
        assert outside(proof, dtype, sublayer_answers(*cast(dtype, *given))) == {}


@seeds(5)
def test_input_gradient_of_feed_forward_sublayer(seed):
    """The gradient through the trunk and through the branch lies within its bound."""
    draw = Draw(10, seed)
    given = (*norm_arguments(draw), *weights(draw))
    g = draw.patterned(draw.rows, draw.width)
    proof = proof_of("feed_forward_sublayer", g, **dict(zip(SUBLAYER, given, strict=True)))
    for dtype in DTYPES:
        answers = sublayer_gradients(*cast(dtype, g, *given[:6]))
        assert outside(proof, dtype, answers) == {}


@pytest.mark.parametrize(("dtype", "offset"), [("float32", 1e4), ("float64", 1.5e8)])
def test_a_variance_in_one_pass_is_outside(dtype, offset):
    """Whole numbers around an offset whose square is coarser than their variance: far outside."""
    x = offset + np.arange(8.0).reshape(1, 8)
    gamma, beta = np.ones(8), np.zeros(8)
    proof = proof_of("layer_norm", x=x, gamma=gamma, beta=beta)
    assert np.all(np.isfinite(proof.bounds[dtype]["", "y"]))
    x, gamma, beta = cast(dtype, x, gamma, beta)
    mean, variance = norms.one_pass(x)
    answers = [("y", form, norm(x, mean, variance + EPS, gamma, beta)) for form, norm in FORMS]
    assert min(ratios(proof, dtype, answers).values()) > 100


FORMS = tuple(norms.NORMS.items())


@pytest.mark.parametrize(("dtype", "share"), [("float64", 0), ("float32", 0.02)])
def test_tame_inputs_receive_a_verdict(dtype, share):
    """A bound that is infinite proves nothing: of normal inputs near zero hardly any has one."""
    infinite = elements = 0
    for seed in range(7):
        draw = Draw(11, seed)
        x, gamma, beta = draw.normal(2, draw.width), draw.normal(draw.width), np.zeros(draw.width)
        for upstream in (None, draw.normal(2, draw.width)):
            found = proof_of("layer_norm", upstream, x=x, gamma=gamma, beta=beta).bounds[dtype]
            infinite += sum(int(np.isinf(bound).sum()) for bound in found.values())
            elements += sum(bound.size for bound in found.values())
    assert infinite <= share * elements
