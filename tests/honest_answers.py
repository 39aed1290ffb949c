"""What honest implementations answer: every combination of the honest kernels, by name.

Each function takes arrays of one dtype and yields (output, kernel, array); gradients take the
upstream gradient ``g`` first.
"""

from functools import partial
from itertools import product

import numpy as np

from tests import honest_gelu as gelus
from tests import honest_kernels as kernels
from tests import honest_norm as norms
from tests.adversarial import Answers

EPS = 1e-5


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
