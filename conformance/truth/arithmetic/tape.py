"""Where nodes begin: the tape with its domain of numbers, and the leaves that are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from conformance.model import Number, Tensor
from conformance.precision import Precision
from conformance.truth.arithmetic.domains import Constant, Domain
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.roundings import Rounded

#: Stands for a number that no precision holds.
_NEVER_EXACT = Fraction(1, 3)


class Tape:
    """Where nodes live: the domain of their numbers, and whether each step is disturbed.

    ``disturb``, if given, maps a node to what is added to its value: the experiment that tells
    whether an error bound of first order can be trusted. A tape that does not remember keeps no
    history from one step of a training to the next.
    """

    def __init__(
        self,
        domain: Domain,
        disturb: Callable[[Node], np.ndarray] | None = None,
        *,
        remembers: bool = True,
    ) -> None:
        self.domain = domain
        self.remembers = remembers
        self._disturb = disturb

    def leaf(self, tensor: Tensor) -> Leaf:
        """A node for exact numbers that a backend is given rounded to its precision."""
        return Leaf(self, self.domain.array(tensor.data, tensor.shape), tensor.data)

    def floats(self, values: np.ndarray) -> Leaf:
        """A node for doubles that a backend is given as they are."""
        return Leaf(self, self.domain.from_floats(values), None)

    def constant(self, name: Constant) -> Leaf:
        """A node for an irrational constant, rounded once by every implementation."""
        return Leaf(self, self.domain.constant(name), (_NEVER_EXACT,))

    def settle(self, node: Node) -> Node:
        """``node``, or only its numbers on a tape that is not asked how they came about."""
        return node if self.remembers else self.floats(node.value)

    def finish(self, node: Node) -> None:
        """Called once by every new node."""
        if self._disturb is not None and node.steps:
            node.value = np.asarray(node.value + self._disturb(node))


class Leaf(Node):
    """A node without parents. ``exact`` are its true numbers, where a backend gets them rounded."""

    __slots__ = ("exact",)

    def __init__(
        self, tape: Tape, value: np.ndarray, exact: Sequence[Number | Fraction] | None
    ) -> None:
        # Not that of Node, which has its tape from its parents.
        Rounded.__init__(self, tape, value, (), factor=1.0, steps=0 if exact is None else 1)
        self.pullback = self.rule = lambda _: ()
        self.exact = exact
        tape.finish(self)

    def find_zero(self) -> np.ndarray:
        """The zeros that are given."""
        return np.asarray(self.magnitude() == 0)

    def allowance(self, precision: Precision) -> np.ndarray:
        """One rounding of each number that the precision can't hold, none of the others."""
        if self.exact is None:
            return np.zeros(self.shape)
        inexact = [not _representable(number, precision) for number in self.exact]
        return np.asarray(np.reshape(inexact, self.shape) * super().allowance(precision))


class Whole(Leaf):
    """A node for whole numbers that are a result, exactly: counts, shapes, ids."""

    __slots__ = ("numbers",)

    def __init__(self, tape: Tape, numbers: np.ndarray) -> None:
        data = tuple(int(number) for number in numbers.reshape(-1))
        super().__init__(tape, tape.domain.array(data, numbers.shape), None)
        self.numbers = numbers


@lru_cache(maxsize=1 << 16)
def _representable(number: Number | Fraction, precision: Precision) -> bool:
    exact = Fraction(number)
    if abs(exact) > precision.largest:
        return False
    return Fraction(float(np.dtype(precision.name).type(float(exact)))) == exact
