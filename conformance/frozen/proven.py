"""Proven values and bounds, as the judge needs them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from conformance.frozen.files import FrozenCase, FrozenTensor, split_key


class Decimals(Protocol):
    """A FrozenTensor, or what stands for one until its decimals are asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...

    @property
    def free(self) -> bool: ...

    @property
    def data(self) -> tuple[str, ...]: ...


class Proven:
    """The proven values of one output: ``high + low``, the decimal ``text``, the ``bounds``.

    ``dtype`` is ``real`` or that of whole numbers, whose bounds are zero. What is ``free`` has a
    shape and no values; relations between free outputs allow nothing, so its bounds are zero too.
    """

    def __init__(
        self,
        frozen: Decimals,
        high: np.ndarray,
        bounds: Mapping[str, np.ndarray],
        low: np.ndarray | None = None,
    ) -> None:
        """The values of ``frozen`` as doubles, and the bounds by dtype, all of its shape.

        ``low`` may be left out: it is what is slow to find.
        """
        self.shape = frozen.shape
        self.dtype = frozen.dtype
        self.free = frozen.free
        self.high = high
        self.bounds = bounds
        self._frozen = frozen
        self._low = low

    @cached_property
    def text(self) -> np.ndarray:
        """The decimals, as an array of texts."""
        if self.free:
            return np.full(self.shape, "free", dtype=object)
        return np.array(self._frozen.data, dtype=object).reshape(self.shape)

    @property
    def low(self) -> np.ndarray:
        """What the values are beyond ``high``, as doubles."""
        if self._low is None:
            pairs = zip(self._frozen.data, self.high.reshape(-1).tolist(), strict=not self.free)
            beyond = [float(Decimal(text) - Decimal(high)) for text, high in pairs]
            self._low = np.zeros(self.shape) if self.free else doubles(beyond, self.shape)
        return self._low

    def error(self, got: np.ndarray) -> np.ndarray:
        """How far ``got``, of the same shape, is from the values, to far below one ulp.

        NaN where a whole number is due and NaN came.
        """
        if self.dtype == "real":
            return np.asarray(np.abs((got.astype(np.float64) - self.high) - self.low))
        pairs = zip(got.reshape(-1).tolist(), self._frozen.data, strict=True)
        return doubles([_distance(number, int(text)) for number, text in pairs], self.shape)


#: By (call, output).
CaseTruth = Mapping[tuple[str, str], Proven]


def thaw_output(frozen: FrozenTensor, bounds: Mapping[str, Sequence[float | None]]) -> Proven:
    """The values of ``frozen`` and the bounds of each dtype, row-major; None is no verdict.

    Raises ValueError where their sizes differ, or where a value is no number.
    """
    if frozen.free:
        nothing = np.zeros(frozen.shape)
        return Proven(frozen, nothing, dict.fromkeys(bounds, nothing))
    return Proven(
        frozen,
        doubles([float(text) for text in frozen.data], frozen.shape),
        {
            dtype: doubles([math.inf if b is None else b for b in row], frozen.shape)
            for dtype, row in bounds.items()
        },
    )


def thaw(frozen: FrozenCase) -> dict[tuple[str, str], Proven]:
    """Everything that is frozen of one case.

    Raises ArithmeticError, LookupError or ValueError where its parts don't fit together.
    """
    return {
        split_key(key): thaw_output(
            tensor, {dtype: rows.get(key, ()) for dtype, rows in frozen.bounds.items()}
        )
        for key, tensor in frozen.values.items()
    }


def _distance(number: float, whole: int) -> float:
    """How far a number, whatever its type, is from a whole one."""
    if math.isfinite(number):
        return float(abs(Fraction(number) - whole))
    return abs(number)


def doubles(numbers: Sequence[float], shape: tuple[int, ...]) -> np.ndarray:
    """``numbers``, which must be as many as ``shape`` has elements, as an array."""
    return np.array(numbers, dtype=np.float64).reshape(shape)
