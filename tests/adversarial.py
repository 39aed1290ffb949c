"""Adversarial inputs for the honest kernels, and how far an answer lies from the truth."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from conformance.model import Call, Given, Parameters, Tensor
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.proof.prove import Proof, output_of, prove
from tests.builders import OPERATIONS, case

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


def proof_of(operation: str, upstream: np.ndarray | None = None, **given: Any) -> Proof:
    """The proof of the case with these very numbers; a dict holds parameters by name.

    With an ``upstream``, of every gradient there is.
    """
    exact = {name: _exact(value) for name, value in given.items()}
    of = OPERATIONS[operation]
    if "eps" in of.attributes:
        exact["eps"] = Decimal("1e-5")
    asked = Call(given=exact)
    if upstream is not None:
        seed = {output_of(of): _tensor(upstream)}
        asked = Call(given=exact, upstream=seed, wrt=asked.differentiable(of))
    mode = "evaluate" if upstream is None else "vjp"
    return prove(case(operation, mode=mode, calls={"": asked}), of)


def _exact(value: Any) -> Given:
    if isinstance(value, dict):
        return Parameters(tensors={name: _tensor(item) for name, item in value.items()})
    return _tensor(value) if isinstance(value, np.ndarray) else value


def _tensor(value: np.ndarray) -> Tensor:
    if value.dtype.kind == "i":
        whole = tuple(int(item) for item in value.reshape(-1))
        return Tensor(shape=value.shape, data=whole, dtype="int64")
    return Tensor(shape=value.shape, data=tuple(Decimal(x) for x in value.reshape(-1).tolist()))


def cast(dtype, *arrays):
    return [array.astype(dtype) for array in arrays]


Answers = Iterator[tuple[str, str, np.ndarray]]


def ratios(proof: Proof, dtype: str, answers: Answers) -> dict[tuple[str, str], float]:
    """The worst error / bound of each kernel, by (kernel, output), where there is a verdict."""
    worst: dict[tuple[str, str], float] = {}
    pairs = {output: _pair(right) for (_, output), right in proof.values.items()}
    for output, kernel, got in answers:
        (right, rest), bound = pairs[output], proof.bounds[dtype]["", output]
        judged = np.isfinite(bound)
        assert got.dtype == dtype
        assert got.shape == right.shape
        assert np.all(np.isfinite(got[judged]))
        error = np.abs((np.nan_to_num(got).astype(np.float64) - right) - rest)
        ratio = np.divide(error, bound, out=np.where(error > 0, np.inf, 0.0), where=bound > 0)
        key = (kernel, output)
        worst[key] = max(worst.get(key, 0.0), float(np.max(ratio[judged], initial=0.0)))
    return worst


def _pair(right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two doubles whose sum is the proven value, so that a difference keeps all its digits."""
    balls = Balls()
    with precision():
        near = np.asarray(balls.sign(right) * balls.magnitude(right))
        left = right - balls.from_floats(near)
        return near, np.asarray(balls.sign(left) * balls.magnitude(left))


def outside(proof: Proof, dtype: str, answers: Answers) -> dict[tuple[str, str], float]:
    """The kernels that exceed a bound, and by how much: none may."""
    return {key: worst for key, worst in ratios(proof, dtype, answers).items() if worst > 1}
