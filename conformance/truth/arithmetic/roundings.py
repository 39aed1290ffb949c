"""What one honest evaluation of a step may add to its result as error, in any precision.

::

    allowance = factor * extent * u + steps * smallest normal

``extent`` is the largest magnitude met on the way (for a sum, the sum of the magnitudes), ``u``
the unit roundoff, ``factor`` the number of roundings. The factors are those of conformance suites
that had to hold against shipped hardware: ``exp`` (3 + 2|t|) ulp, ``log`` 5 ulp and ``erf`` 5 ulp
(TOSA), division 2.5 ulp, ``sqrt`` 1 ulp and ``erfc`` 16 ulp (OpenCL), one ulp being at most 2u;
a product or sum of n terms n + 1 roundings, in any order (N. Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., section 3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from conformance.precision import Precision

if TYPE_CHECKING:
    from conformance.truth.arithmetic.tape import Tape

Factor: TypeAlias = float | np.ndarray


class Rounded:
    """An array on a tape, computed from those of its ``parents`` with so many roundings."""

    __slots__ = (
        "__weakref__",
        "_extent",
        "_zero",
        "_zeros",
        "factor",
        "parents",
        "steps",
        "tape",
        "value",
    )

    def __init__(
        self,
        tape: Tape,
        value: np.ndarray,
        parents: tuple[Rounded, ...],
        *,
        factor: Factor = 0.0,
        extent: Callable[[], np.ndarray] | None = None,
        steps: int = 0,
        zero: Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.tape = tape
        self.value = np.asarray(value)  # NumPy unwraps objects of rank 0
        self.parents = parents
        self.factor = factor
        self._extent = extent
        self.steps = steps
        self._zero = zero
        self._zeros: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def magnitude(self) -> np.ndarray:
        """Absolute values as doubles."""
        return np.asarray(self.tape.domain.magnitude(self.value))

    def extent(self) -> np.ndarray:
        """The largest magnitude met on the way to each element, as doubles."""
        return self.magnitude() if self._extent is None else self._extent()

    def zero(self) -> np.ndarray:
        """Which elements are an exact zero in every honest evaluation, as far as is known."""
        if self._zeros is None:
            for node in _unasked(self):
                node._zeros = np.asarray(node.find_zero())  # noqa: SLF001
            assert self._zeros is not None
        return self._zeros

    def find_zero(self) -> np.ndarray:
        """What ``zero`` keeps, from that of the parents."""
        return np.zeros(self.shape, dtype=bool) if self._zero is None else self._zero()

    def allowance(self, precision: Precision) -> np.ndarray:
        """The error that one honest evaluation of this node may add, as doubles.

        None where the element is an exact zero in all of them, as a product with a zero that was
        given: there is nothing to round.
        """
        if self.steps == 0:
            return np.zeros(self.shape)
        rounding = self.factor * self.extent() * precision.unit_roundoff
        allowed = np.asarray(rounding + self.steps * precision.smallest_normal)
        return np.where(self.zero(), 0.0, allowed)

    def overflows(self, precision: Precision) -> bool:
        """Whether an intermediate result may be too large for the precision (or isn't finite)."""
        extent = self.extent()
        return bool(extent.size) and not bool(np.all(extent <= 0.99 * precision.largest))


def _unasked(node: Rounded) -> list[Rounded]:
    """``node`` and all behind it whose zeros are not known yet, parents first.

    A loop and no recursion: a training is thousands of steps deep.
    """
    ordered: list[Rounded] = []
    seen: set[int] = set()
    waiting = [(node, False)]
    while waiting:
        here, done = waiting.pop()
        if done:
            ordered.append(here)
        elif id(here) not in seen and here._zeros is None:  # noqa: SLF001
            seen.add(id(here))
            waiting.append((here, True))
            waiting.extend((parent, False) for parent in here.parents)
    return ordered
