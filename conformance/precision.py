"""The floating-point formats a backend is judged in (IEEE 754 binary64 and binary32)."""

from __future__ import annotations

import math
from typing import Literal, get_args

import msgspec

Dtype = Literal["float64", "float32"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)


class Precision(msgspec.Struct, frozen=True):
    """One format: ``digits`` significand bits, exponents from ``minimum_exponent`` up."""

    name: Dtype
    digits: int
    minimum_exponent: int
    largest: float

    @property
    def unit_roundoff(self) -> float:
        """u, half the distance from 1 to the next number: the relative error of one rounding."""
        return 2.0**-self.digits

    @property
    def smallest_normal(self) -> float:
        """The absolute error that flushing subnormal results to zero may cause."""
        return 2.0**self.minimum_exponent

    @property
    def decimal_digits(self) -> float:
        """As many decimal digits as one rounding leaves right: -log10 u."""
        return self.digits * math.log10(2)

    def ulp(self, value: float) -> float:
        """The distance between neighbouring numbers at ``value`` (at 0: the smallest subnormal)."""
        exponent = math.frexp(value)[1] - 1 if value else self.minimum_exponent
        return 2.0 ** (max(exponent, self.minimum_exponent) - self.digits + 1)


PRECISIONS: dict[str, Precision] = {
    "float64": Precision("float64", 53, -1022, 1.7976931348623157e308),
    "float32": Precision("float32", 24, -126, 3.4028234663852886e38),
}
