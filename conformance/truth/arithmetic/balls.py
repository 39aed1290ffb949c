"""Ball arithmetic: every number is a midpoint and a radius that is proven to contain the value.

The balls are Arb's (F. Johansson, "Arb: efficient arbitrary-precision midpoint-radius interval
arithmetic", IEEE Trans. Computers 66, 2017), through python-flint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any

import flint
import numpy as np

from conformance.model import Number
from conformance.truth.arithmetic.domains import Constant, Function, largest

arb = flint.arb

#: Working precision in bits, and what it is raised to where 25 digits are not yet proven: where
#: the value is tiny beside the numbers it was computed from, as in the far tail of GELU.
PRECISION = 250
HIGHER_PRECISIONS = (500, 1200, 2000)

#: Below half of the smallest positive double: zero in every precision.
_INVISIBLE = Decimal("1e-330")

#: A radius that no digit of a visible number shows.
_NEGLIGIBLE = Decimal("1e-1000")


class NotProven(Exception):
    """A ball is too wide to tell the digits of its value."""


@contextmanager
def precision(bits: int = PRECISION) -> Iterator[None]:
    """Balls computed inside carry ``bits`` bits."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def _elementwise(function: Callable[[Any], Any], values: np.ndarray) -> np.ndarray:
    result = np.empty(values.shape, dtype=object)
    result.reshape(-1)[:] = [function(value) for value in np.asarray(values).reshape(-1)]
    return result


class Balls:
    """The domain whose numbers are balls, in object arrays."""

    def array(self, numbers: Sequence[Number], shape: tuple[int, ...]) -> np.ndarray:
        result = np.empty(len(numbers), dtype=object)
        result[:] = [ball(number) for number in numbers]
        return result.reshape(shape)

    def from_floats(self, values: np.ndarray) -> np.ndarray:
        return _elementwise(lambda value: arb(float(value)), np.asarray(values))

    def apply(self, function: Function, values: np.ndarray) -> np.ndarray:
        return _elementwise(lambda value: getattr(value, function)(), values)

    def constant(self, name: Constant) -> np.ndarray:
        value = {
            "sqrt_half": (arb(1) / 2).sqrt,
            "two_over_sqrt_pi": lambda: 2 / arb.pi().sqrt(),
            "sqrt_two_over_pi": (2 / arb.pi()).sqrt,
        }[name]()
        return _elementwise(lambda _: value, np.empty((), dtype=object))

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.shape[-1] == 0:  # NumPy's sum of no objects is the integer 0
            shape = np.matmul(np.zeros(a.shape), np.zeros(b.shape)).shape
            return self.from_floats(np.zeros(shape))
        return np.asarray(np.matmul(a, b), dtype=object)

    def magnitude(self, values: np.ndarray) -> np.ndarray:
        flat = [_magnitude(value) for value in np.asarray(values).reshape(-1)]
        return np.array(flat, dtype=np.float64).reshape(np.shape(values))

    def sign(self, values: np.ndarray) -> np.ndarray:
        flat = [float(value.mid().sgn()) for value in np.asarray(values).reshape(-1)]
        return np.array(flat, dtype=np.float64).reshape(np.shape(values))

    def peak(self, values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        flat = [float(value.mid()) for value in np.asarray(values).reshape(-1)]
        return largest(np.array(flat, dtype=np.float64).reshape(np.shape(values)), allowed)


def ball(number: Number) -> Any:
    """The ball of an exact number: a decimal is not exact in binary, its ball contains it."""
    return arb(number) if isinstance(number, int) else arb(format(number, "f"))


def _magnitude(value: Any) -> float:
    if not value.is_finite():
        return math.nan
    return float(abs(value.mid()))


def decimal(value: Any, digits: int = 25) -> Decimal:
    """The midpoint of a ball to ``digits`` significant digits, all proven.

    A ball that lies below the smallest positive double whatever its value is written as 0. Raises
    NotProven where the ball is too wide for that many digits, or not finite.
    """
    if not value.is_finite():
        raise NotProven(f"{value} is not a finite number")
    if value.abs_upper() < arb(str(_INVISIBLE)):  # its exponent may be beyond that of a decimal
        return Decimal(0)
    middle = _exact(value.mid())
    below = value.rad() < arb(str(_NEGLIGIBLE))  # the exponent of a radius may be beyond too
    radius = _NEGLIGIBLE if below else _exact(value.rad())
    if middle == 0:
        raise NotProven(f"{value} may be zero or not")
    rounded = Decimal(format(middle, f".{digits - 1}e"))
    if radius > Decimal(10) ** (rounded.adjusted() - digits):
        raise NotProven(f"{value} is not proven to {digits} digits")
    return rounded.normalize()


def proven(value: Any) -> bool:
    """Whether more bits can't tell more: the digits are proven, or the value is no number."""
    try:
        decimal(value)
    except NotProven:
        return not value.is_finite()
    return True


def _exact(value: Any) -> Decimal:
    """An exact ball to 60 digits, which is enough to round it and to compare radii."""
    try:
        return Decimal(value.str(60, radius=False)) if value != 0 else Decimal(0)
    except InvalidOperation:
        raise NotProven("the exponent is beyond that of a decimal") from None
