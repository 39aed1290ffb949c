"""The arithmetic of a real implementation: NumPy in the precision of the question.

Mistakes of rounding do not exist over exact numbers. A fault that is ``native`` is evaluated in
this domain, where each step is rounded once, as it is in the implementation that makes the mistake.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance.model import Number
from conformance.precision import Dtype
from conformance.truth.arithmetic.domains import CONSTANTS, Constant, Doubles, Function, largest


class Native:
    """The domain whose numbers are those of ``dtype``."""

    def __init__(self, dtype: Dtype) -> None:
        self.dtype = np.dtype(dtype)

    def array(self, numbers: Sequence[Number], shape: tuple[int, ...]) -> np.ndarray:
        """Exact ``numbers``, each as a question carries it."""
        return Doubles().array(numbers, shape).astype(self.dtype)

    def from_floats(self, values: np.ndarray) -> np.ndarray:
        """Doubles (or integers), rounded to the precision."""
        return np.asarray(values).astype(self.dtype)

    def apply(self, function: Function, values: np.ndarray) -> np.ndarray:
        """The function of doubles, rounded once: as good as a library can be."""
        exact = Doubles().apply(function, values.astype(np.float64))
        return np.asarray(exact).astype(self.dtype)

    def constant(self, name: Constant) -> np.ndarray:
        """A constant, rounded to the precision."""
        return np.array(CONSTANTS[name], dtype=self.dtype)

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The product in the precision, each sum in the order of its terms on every machine."""
        total = np.zeros(np.matmul(np.zeros(a.shape), np.zeros(b.shape)).shape, self.dtype)
        for term in range(a.shape[-1]):
            left, right = a[..., term], b[..., term, :]
            if a.ndim > 1:
                left, right = left[..., None], right[..., None, :]
            total = total + left * right
        return np.asarray(total)

    def magnitude(self, values: np.ndarray) -> np.ndarray:
        """Absolute values as doubles."""
        return np.asarray(np.abs(values).astype(np.float64))

    def sign(self, values: np.ndarray) -> np.ndarray:
        """-1, 0 or 1 as doubles."""
        return np.asarray(np.sign(values).astype(np.float64))

    def peak(self, values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """The largest where ``allowed`` is 1, as doubles, the axis kept."""
        return largest(values.astype(np.float64), allowed)
