"""Exact numbers, as fixtures have them."""

from __future__ import annotations

from array import array
from decimal import Decimal
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

TensorDtype = Literal["real", "float64", "float32", "int64", "int32", "bool"]
Number: TypeAlias = int | Decimal


#: No question, and no answer, has more numbers than this in all its arrays.
MOST_NUMBERS = 2**21


class Tensor(msgspec.Struct, frozen=True, kw_only=True, tag=True, dict=True):
    """Exact numbers with a shape, row-major. ``dtype`` ``real`` means the run's dtype."""

    shape: tuple[int, ...]
    data: tuple[Number, ...]
    dtype: TensorDtype = "real"

    @cached_property
    def doubles(self) -> bytes:
        """The numbers rounded to nearest doubles, as bytes.

        Raises OverflowError for a whole number beyond the largest.
        """
        return array("d", map(float, self.data)).tobytes()


class FromOutput(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An argument that is the output of an earlier call of the same case."""

    call: str
    output: str


class Parameters(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An argument that is many tensors, each with a name of its own."""

    tensors: dict[str, Tensor]


Given: TypeAlias = Tensor | FromOutput | Parameters | int | Decimal | bool
