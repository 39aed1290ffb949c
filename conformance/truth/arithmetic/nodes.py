"""A tape of array operations: values, and gradients by reverse mode.

Every pullback is written in the operations of the tape itself, so a gradient is again a node that
can be differentiated. That is what the bounds need: the derivative of a gradient with respect to
every intermediate result of the computation that produced it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias
from weakref import ref

import numpy as np

from conformance.truth.arithmetic.roundings import Factor, Rounded

#: Takes the adjoint of a node; gives the adjoint of each parent (None: it has none).
Pullback: TypeAlias = Callable[["Node"], Sequence["Node | None"]]


class Node(Rounded):
    """One array on a tape. ``parents`` were combined to give ``value``.

    ``pullback`` is the derivative. ``rule`` is what the specification, or a fault, says the
    gradient is; gradients follow the rule where there is one, errors always the derivative.

    No node holds itself, so that a graph goes with the last who asks for it: a diagnosis makes
    thousands, and a collector that looks for circles would take longer than they do.
    """

    __slots__ = ("pullback", "rule")
    __array_ufunc__ = None  # NumPy arrays leave arithmetic with nodes to the nodes

    parents: tuple[Node, ...]

    def __init__(
        self,
        value: np.ndarray,
        parents: tuple[Node, ...],
        pullback: Pullback,
        *,
        factor: Factor = 0.0,
        extent: Callable[[], np.ndarray] | None = None,
        steps: int = 0,
        rule: Pullback | None = None,
        zero: Callable[[], np.ndarray] | None = None,
    ) -> None:
        super().__init__(
            parents[0].tape, value, parents, factor=factor, extent=extent, steps=steps, zero=zero
        )
        self.pullback = pullback
        self.rule = rule or pullback
        self.tape.finish(self)

    # Arithmetic. Numbers on the other side must be whole: they are exact everywhere.

    def __add__(self, other: Node | int) -> Node:
        return add(self, self._node(other))

    def __radd__(self, other: int) -> Node:
        return add(self._node(other), self)

    def __sub__(self, other: Node | int) -> Node:
        return add(self, -self._node(other))

    def __rsub__(self, other: int) -> Node:
        return add(self._node(other), -self)

    def __neg__(self) -> Node:
        return Node(-self.value, (self,), lambda g: (-g,), zero=self.zero)

    def __mul__(self, other: Node | int) -> Node:
        return multiply(self, self._node(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Node | int) -> Node:
        return divide(self, self._node(other))

    def __rtruediv__(self, other: int) -> Node:
        return divide(self._node(other), self)

    def __matmul__(self, other: Node) -> Node:
        return matmul(self, other)

    def _node(self, other: Node | int) -> Node:
        return other if isinstance(other, Node) else self.tape.floats(np.array(other))

    # Rearrangement: exact.

    def sum(self, axis: int | tuple[int, ...], *, keepdims: bool = False) -> Node:
        return add_up(self, axis, keepdims=keepdims)

    def reshape(self, shape: tuple[int, ...]) -> Node:
        before = self.shape
        return Node(
            self.value.reshape(shape),
            (self,),
            lambda g: (g.reshape((*batch_of(g, shape), *before)),),
            zero=lambda: self.zero().reshape(shape),
        )

    def swap_last(self) -> Node:
        """The last two axes exchanged."""
        return Node(
            np.swapaxes(self.value, -1, -2),
            (self,),
            lambda g: (g.swap_last(),),
            zero=lambda: np.swapaxes(self.zero(), -1, -2),
        )

    def transpose(self, axes: tuple[int, ...]) -> Node:
        """The axes in the order ``axes``."""
        back = tuple(int(axis) for axis in np.argsort(axes))

        def pullback(g: Node) -> tuple[Node]:
            first = g.ndim - len(back)
            return (g.transpose((*range(first), *(first + axis for axis in back))),)

        return Node(
            self.value.transpose(axes), (self,), pullback, zero=lambda: self.zero().transpose(axes)
        )

    def broadcast_to(self, shape: tuple[int, ...]) -> Node:
        before = self.shape
        value = np.broadcast_to(self.value, shape)
        return Node(
            value,
            (self,),
            lambda g: (_unbroadcast(g, shape, before),),
            zero=lambda: np.broadcast_to(self.zero(), shape),
        )

    def rows(self) -> Node:
        """All leading axes as one: ``[..., d]`` as ``[n, d]``."""
        width = self.shape[-1]
        count = math.prod(self.shape[:-1])
        return self.reshape((count, width))

    def with_rule(self, operands: tuple[Node, ...], rule: Pullback) -> Node:
        """The same value, whose gradients with respect to ``operands`` are given by ``rule``."""
        return Node(
            self.value,
            (self, *operands),
            lambda g: (g, *(None for _ in operands)),
            rule=lambda g: (None, *rule(g)),
            zero=self.zero,
        )

    def allowing(self, factor: float, extent: Callable[[], np.ndarray]) -> Node:
        """The same value, with further roundings that an honest kernel may make on the way."""
        return Node(self.value, (self,), lambda g: (g,), factor=factor, extent=extent, steps=1)

    def detach(self) -> Node:
        """The same value, through which no gradient flows."""
        return self.with_rule((), lambda _: ())


def alive(node: Node) -> Callable[[], Node]:
    """Gives ``node``, and does not hold it: for a pullback in whose formula it stands itself."""
    found = ref(node)

    def itself() -> Node:
        own = found()
        assert own is not None  # whoever asks for its pullback holds it
        return own

    return itself


def add(a: Node, b: Node) -> Node:
    """a + b. The operands may have been stored apart, so each counts with its own magnitude."""
    value = np.asarray(a.value + b.value)
    out = value.shape
    return Node(
        value,
        (a, b),
        lambda g: (_unbroadcast(g, out, a.shape), _unbroadcast(g, out, b.shape)),
        factor=1.0,
        extent=lambda: a.magnitude() + b.magnitude(),
        steps=1,
        zero=lambda: np.asarray(a.zero() & b.zero()),
    )


def multiply(a: Node, b: Node) -> Node:
    """a * b, element by element."""
    value = np.asarray(a.value * b.value)
    out = value.shape
    return Node(
        value,
        (a, b),
        lambda g: (_unbroadcast(g * b, out, a.shape), _unbroadcast(g * a, out, b.shape)),
        factor=1.0,
        steps=1,
        zero=lambda: np.asarray(a.zero() | b.zero()),
    )


def divide(a: Node, b: Node) -> Node:
    """a / b, to 2.5 ulp."""
    with np.errstate(all="ignore"):
        value = np.asarray(a.value / b.value)

    def pullback(g: Node) -> tuple[Node, Node]:
        share, quotient = g / b, itself()
        out = quotient.shape
        return _unbroadcast(share, out, a.shape), _unbroadcast(-(share * quotient), out, b.shape)

    quotient = Node(
        value,
        (a, b),
        pullback,
        factor=5.0,
        steps=1,
        zero=lambda: np.asarray(a.zero() & ~b.zero()),
    )
    itself = alive(quotient)
    return quotient


def matmul(a: Node, b: Node) -> Node:
    """a @ b, with a of rank 1 or more and b of rank 2 or more."""

    def pullback(g: Node) -> tuple[Node, Node]:
        if a.ndim == 1:
            column, row = a.reshape((*a.shape, 1)), g.reshape((*g.shape[:-1], 1, g.shape[-1]))
            return g @ b.swap_last(), column @ row
        stack = value.shape[:-2]
        return (
            _unbroadcast(g @ b.swap_last(), stack + a.shape[-2:], a.shape),
            _unbroadcast(a.swap_last() @ g, stack + b.shape[-2:], b.shape),
        )

    terms = a.shape[-1]
    value = a.tape.domain.matmul(a.value, b.value)
    return Node(
        value,
        (a, b),
        pullback,
        factor=terms + 1.0,
        extent=lambda: np.asarray(a.magnitude() @ b.magnitude()),
        steps=2 * terms + 1,
    )


def add_up(a: Node, axis: int | tuple[int, ...], *, keepdims: bool = False) -> Node:
    """The sum over ``axis``."""
    axes = tuple(sorted(x % a.ndim for x in ((axis,) if isinstance(axis, int) else axis)))
    kept = tuple(1 if x in axes else size for x, size in enumerate(a.shape))
    terms = math.prod(a.shape[x] for x in axes)

    def pullback(g: Node) -> tuple[Node]:
        batch = batch_of(g, value.shape)
        return (g.reshape((*batch, *kept)).broadcast_to((*batch, *a.shape)),)

    if terms:
        value = np.asarray(a.value.sum(axis=axes, keepdims=keepdims))
    else:  # NumPy's sum of no objects is the integer 0
        value = a.tape.domain.from_floats(np.zeros(a.shape).sum(axis=axes, keepdims=keepdims))
    return Node(
        value,
        (a,),
        pullback,
        factor=terms + 1.0,
        extent=lambda: np.asarray(a.magnitude().sum(axis=axes, keepdims=keepdims)),
        steps=terms + 1,
        zero=lambda: np.asarray(a.zero().all(axis=axes, keepdims=keepdims)),
    )


# A pullback may be given many adjoints at once, stacked along axes before those of the node: the
# bounds ask for the derivatives of every element of an output in one sweep.


def batch_of(g: Node, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The leading axes along which adjoints of a node of ``shape`` are stacked."""
    return g.shape[: g.ndim - len(shape)]


def _unbroadcast(g: Node, out: tuple[int, ...], shape: tuple[int, ...]) -> Node:
    """The adjoint of an operand of ``shape`` that was broadcast to ``out``."""
    if out == shape:
        return g
    first = g.ndim - len(out)
    leading = tuple(range(first, first + len(out) - len(shape)))
    if leading:
        g = g.sum(leading)
    stretched = tuple(
        first + axis for axis, size in enumerate(shape) if size == 1 and g.shape[first + axis] != 1
    )
    return g.sum(stretched, keepdims=True) if stretched else g
