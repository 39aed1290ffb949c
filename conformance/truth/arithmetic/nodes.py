"""A tape of array operations: values, gradients by reverse mode, and the rounding of each step.

Every pullback is written in the operations of the tape itself, so a gradient is again a node that
can be differentiated. That is what the bounds need: the derivative of a gradient with respect to
every intermediate result of the computation that produced it.

Each node knows what one honest evaluation of it may add as error, in any precision::

    allowance = factor * extent * u + steps * smallest normal

``extent`` is the largest magnitude met on the way (for a sum, the sum of the magnitudes), ``u``
the unit roundoff, ``factor`` the number of roundings. The factors are those of conformance suites
that had to hold against shipped hardware: ``exp`` (3 + 2|t|) ulp, ``log`` 5 ulp and ``erf`` 5 ulp
(TOSA), division 2.5 ulp, ``sqrt`` 1 ulp and ``erfc`` 16 ulp (OpenCL), one ulp being at most 2u;
a product or sum of n terms n + 1 roundings, in any order (N. Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

import numpy as np

from conformance.precision import Precision

if TYPE_CHECKING:
    from conformance.truth.arithmetic.tape import Tape

#: Takes the adjoint of a node; gives the adjoint of each parent (None: it has none).
Pullback: TypeAlias = Callable[["Node"], Sequence["Node | None"]]
Factor: TypeAlias = float | np.ndarray


class Node:
    """One array on a tape. ``parents`` were combined to give ``value``.

    ``pullback`` is the derivative. ``rule`` is what the specification, or a fault, says the
    gradient is; gradients follow the rule where there is one, errors always the derivative.

    No node holds itself, so that a graph goes with the last who asks for it: a diagnosis makes
    thousands, and a collector that looks for circles would take longer than they do.
    """

    __slots__ = (
        "__weakref__",
        "_extent",
        "_zero",
        "_zeros",
        "factor",
        "parents",
        "pullback",
        "rule",
        "steps",
        "tape",
        "value",
    )
    __array_ufunc__ = None  # NumPy arrays leave arithmetic with nodes to the nodes

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
        self.tape: Tape = parents[0].tape
        self.value = np.asarray(value)  # NumPy unwraps objects of rank 0
        self.parents = parents
        self.pullback = pullback
        self.factor = factor
        self._extent = extent
        self.steps = steps
        self.rule = rule or pullback
        self._zero = zero
        self._zeros: np.ndarray | None = None
        self.tape.finish(self)

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
            lambda g: (g.reshape((*_batch(g, shape), *before)),),
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


def _unasked(node: Node) -> list[Node]:
    """``node`` and all behind it whose zeros are not known yet, parents first.

    A loop and no recursion: a training is thousands of steps deep.
    """
    ordered: list[Node] = []
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
        batch = _batch(g, value.shape)
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


def take(a: Node, index: Any) -> Node:
    """``a[index]``; a gradient is added up where an element is taken more than once."""
    value = np.asarray(a.value[index])

    def pullback(g: Node) -> tuple[Node]:
        batch = _batch(g, value.shape)
        return (scatter(g, _behind(batch, index), (*batch, *a.shape)),)

    return Node(value, (a,), pullback, zero=lambda: np.asarray(a.zero()[index]))


def stack(nodes: Sequence[Node]) -> Node:
    """Nodes of one shape along a new first axis."""

    def pullback(g: Node) -> list[Node]:
        batch = _batch(g, value.shape)
        return [take(g, _behind(batch, k)) for k in range(len(nodes))]

    value = np.stack([node.value for node in nodes])
    return Node(
        value, tuple(nodes), pullback, zero=lambda: np.stack([node.zero() for node in nodes])
    )


def scatter(a: Node, index: Any, shape: tuple[int, ...]) -> Node:
    """Zeros of ``shape`` with ``a`` added at ``index``; what meets in one place is summed."""

    def spread(values: np.ndarray, onto: np.ndarray) -> np.ndarray:
        np.add.at(onto, index, values)
        return onto

    met = spread(np.ones(a.shape), np.zeros(shape))
    blank = a.tape.domain.from_floats(np.zeros(shape))
    return Node(
        spread(a.value, blank),
        (a,),
        lambda g: (take(g, _behind(_batch(g, shape), index)),),
        factor=met,
        extent=lambda: spread(a.magnitude(), np.zeros(shape)),
        steps=int(met.max(initial=1.0)),
        zero=lambda: spread((~a.zero()).astype(np.float64), np.zeros(shape)) == 0,
    )


# A pullback may be given many adjoints at once, stacked along axes before those of the node: the
# bounds ask for the derivatives of every element of an output in one sweep.


def _batch(g: Node, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The leading axes along which adjoints of a node of ``shape`` are stacked."""
    return g.shape[: g.ndim - len(shape)]


def _behind(batch: tuple[int, ...], index: Any) -> Any:
    """``index`` for an array with leading axes of the shape ``batch``."""
    inner = index if isinstance(index, tuple) else (index,)
    return (*(slice(None) for _ in batch), *inner)


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
