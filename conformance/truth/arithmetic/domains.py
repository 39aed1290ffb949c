"""What the numbers on a tape are: doubles here, balls with proven radius in ``balls``.

Both give the same operations on NumPy arrays (of ``float64``, or of objects), so that the
reference is written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from conformance.model import Number

Function = Literal["exp", "log", "sqrt", "erf", "erfc"]
Constant = Literal["sqrt_half", "two_over_sqrt_pi", "sqrt_two_over_pi"]


class Domain(Protocol):
    """The arithmetic of a tape."""

    def array(self, numbers: Sequence[Number], shape: tuple[int, ...]) -> np.ndarray:
        """Exact ``numbers``, row-major, as an array of the domain."""
        ...

    def from_floats(self, values: np.ndarray) -> np.ndarray:
        """Doubles (or integers), taken exactly."""
        ...

    def apply(self, function: Function, values: np.ndarray) -> np.ndarray:
        """A function, element by element."""
        ...

    def constant(self, name: Constant) -> np.ndarray:
        """A constant, as an array of rank 0."""
        ...

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The matrix product, zeros where nothing is summed."""
        ...

    def magnitude(self, values: np.ndarray) -> np.ndarray:
        """Absolute values as doubles, NaN where a value is not finite or not known."""
        ...

    def sign(self, values: np.ndarray) -> np.ndarray:
        """-1, 0 or 1 as doubles, by the midpoint."""
        ...

    def peak(self, values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """The largest of the last axis where ``allowed`` is 1, as doubles, the axis kept."""
        ...


CONSTANTS: dict[Constant, float] = {
    "sqrt_half": math.sqrt(0.5),
    "two_over_sqrt_pi": 2 / math.sqrt(math.pi),
    "sqrt_two_over_pi": math.sqrt(2 / math.pi),
}

_FUNCTIONS: dict[Function, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
}


class Doubles:
    """Binary64 arithmetic: good to a few roundings, fast, and without python-flint."""

    def array(self, numbers: Sequence[Number], shape: tuple[int, ...]) -> np.ndarray:
        return np.array([float(number) for number in numbers], dtype=np.float64).reshape(shape)

    def from_floats(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values, dtype=np.float64)

    def apply(self, function: Function, values: np.ndarray) -> np.ndarray:
        if values.size == 0:  # np.vectorize can't be called on nothing
            return values
        return np.asarray(_FUNCTIONS[function](values), dtype=np.float64)

    def constant(self, name: Constant) -> np.ndarray:
        return np.array(CONSTANTS[name])

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(a @ b)

    def magnitude(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.abs(values))

    def sign(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(values))

    def peak(self, values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        return largest(values, allowed)


def largest(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The largest of the last axis of doubles where ``allowed`` is 1, the axis kept."""
    permitted = np.where(allowed == 1, values, -np.inf)
    return np.asarray(permitted.max(axis=-1, keepdims=True, initial=-np.inf))
