"""Every honest kernel stays within the bounds, wherever it rounds, and a dishonest one does not.

The inputs are adversarial and seeded. A bound that an honest kernel exceeds is wrong: what is
missing is an allowance, never a looser test. Each test tries every combination of the parameters
of ``honest_kernels``, ``honest_norm`` and ``honest_gelu``.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from itertools import product

import numpy as np
import pytest

from conformance.precision import DTYPES
from conformance.truth.balls import Balls, precision
from conformance.truth.prove import Proof, prove
from tests import honest_gelu as gelus
from tests import honest_kernels as kernels
from tests import honest_norm as norms
from tests.builders import OPERATIONS, call, case

EPS = 1e-5
WIDTHS = (1, 2, 3, 5, 8, 16, 33)

#: Patterns of n numbers that have broken a sum, a mean or a variance somewhere.
PATTERNS = (
    lambda r, n: r.standard_normal(n),
    lambda r, n: np.full(n, r.uniform(0.05, 3)),
    lambda r, n: np.sort(np.abs(r.standard_normal(n))),
    lambda r, n: np.sort(np.abs(r.standard_normal(n)))[::-1],
    lambda r, n: r.uniform(0.9, 1) + r.uniform(0, 1e-2) * r.standard_normal(n),
    lambda r, n: np.where(np.arange(n) % 2, 1, -1) * r.uniform(0.5, 2),
    lambda r, n: 2.0 ** r.integers(-8, 9, n),
    lambda r, n: np.where(r.uniform(size=n) < 2 / n, 100, 1) * r.standard_normal(n),
    lambda r, n: np.linspace(0.1, r.uniform(0.2, 5), n),
)


class Draw:
    """Arguments drawn from a seed: exact in both dtypes, or, every third time, only in float64."""

    def __init__(self, family: int, seed: int) -> None:
        self.random = np.random.default_rng([family, seed])
        self.exact = seed % 3 != 2
        self.width = WIDTHS[seed % len(WIDTHS)]
        self.rows = 1 + int(self.random.integers(4 if self.width < 16 else 2))

    def kept(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float32).astype(np.float64) if self.exact else values

    def normal(self, *shape: int, scales=(1,)) -> np.ndarray:
        return self.kept(self.random.standard_normal(shape) * self.random.choice(scales))

    def patterned(self, rows: int, width: int, scales=(1,), offsets=(0,)) -> np.ndarray:
        chosen = self.random.integers(len(PATTERNS), size=rows)
        values = np.array([PATTERNS[which](self.random, width) for which in chosen])
        return self.kept(values * self.random.choice(scales) + self.random.choice(offsets))

    def far(self) -> np.ndarray:
        """Rows of any size around offsets that hide their variance."""
        offsets = (0, 0, 0, 10, 300, 1e4)
        return self.patterned(self.rows, self.width, scales=(1, 0.01, 10), offsets=offsets)


def proof_of(operation: str, upstream: np.ndarray | None = None, **given: np.ndarray) -> Proof:
    """The proof of the case with these very numbers."""
    exact = {name: _decimals(value.tolist()) for name, value in given.items()}
    seed = None if upstream is None else _decimals(upstream.tolist())
    if "norm" in operation or "sublayer" in operation:
        exact["eps"] = Decimal("1e-5")
    mode = "evaluate" if upstream is None else "vjp"
    asked = call(seed, () if upstream is None else tuple(given), **exact)
    return prove(case(operation, mode=mode, calls={"": asked}), OPERATIONS[operation])


def _decimals(value):
    return [_decimals(item) for item in value] if isinstance(value, list) else Decimal(value)


def cast(dtype, *arrays):
    return [array.astype(dtype) for array in arrays]


Answers = Iterator[tuple[str, str, np.ndarray]]


def ratios(proof: Proof, dtype: str, answers: Answers) -> dict[tuple[str, str], float]:
    """The worst error / bound of each kernel, by (kernel, output), where there is a verdict."""
    worst: dict[tuple[str, str], float] = {}
    for output, kernel, got in answers:
        right, bound = proof.values["", output], proof.bounds[dtype]["", output]
        judged = np.isfinite(bound)
        assert got.dtype == dtype
        assert got.shape == right.shape
        assert np.all(np.isfinite(got[judged]))
        with precision():
            error = Balls().magnitude(Balls().from_floats(np.nan_to_num(got)) - right)
        ratio = np.divide(error, bound, out=np.where(error > 0, np.inf, 0.0), where=bound > 0)
        key = (kernel, output)
        worst[key] = max(worst.get(key, 0.0), float(np.max(ratio[judged], initial=0.0)))
    return worst


def outside(proof: Proof, dtype: str, answers: Answers) -> dict[tuple[str, str], float]:
    """The kernels that exceed a bound, and by how much: none may."""
    return {key: worst for key, worst in ratios(proof, dtype, answers).items() if worst > 1}


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
