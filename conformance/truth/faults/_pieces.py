"""Pieces that mistakes are made of: a number wired in, a choice, a rounding, an average."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from conformance.model import Number, Tensor
from conformance.truth.arithmetic.functions import exp
from conformance.truth.arithmetic.nodes import Node


def number(near: Node, value: Number) -> Node:
    """A number wired into an implementation, of rank 0, on the tape of ``near``."""
    return near.tape.leaf(Tensor(shape=(), data=(Decimal(value),)))


def where(mask: np.ndarray, yes: Node, no: Node) -> Node:
    """``yes`` where ``mask`` (of bools) holds and ``no`` elsewhere, broadcast against each other.

    The gradient goes to the one that was chosen.
    """
    shape = np.broadcast_shapes(mask.shape, yes.shape, no.shape)
    left, right = yes.broadcast_to(shape), no.broadcast_to(shape)
    chosen = yes.tape.floats(np.broadcast_to(mask, shape).astype(np.float64))
    return Node(
        np.where(mask, left.value, right.value),
        (left, right),
        lambda g: (g * chosen, g * (1 - chosen)),
    )


def gradient_where(mask: np.ndarray, node: Node) -> Node:
    """``node``, of which only the places where ``mask`` (of bools) holds receive a gradient.

    The others get zero even where theirs is no number, as a library does that fills them.
    """
    nothing = node.tape.floats(np.zeros(()))
    return node.with_rule((node,), lambda g: (where(mask, g, nothing),))


def logistic(x: Node) -> Node:
    """1 / (1 + exp(-x)), by an exponential that overflows neither here nor in the gradient."""
    positive = x.tape.domain.sign(x.value) > 0
    small = exp(where(positive, -x, x))
    return where(positive, 1 / (1 + small), small / (1 + small))


def average(x: Node, axes: tuple[int, ...]) -> Node:
    """The mean over ``axes``, which stay with length one."""
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return x.sum(axes, keepdims=True) / count


def narrowed(node: Node, bits: int) -> Node:
    """``node`` rounded to ``bits`` significant bits, ties to even; gradients pass as they are.

    float32 has 24, float16 and TF32 have 11, bfloat16 has 8; the range of exponents stays. For
    arrays of floating-point numbers only: balls have no last bit.
    """
    mantissa, exponent = np.frexp(node.value)
    value = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    return Node(np.asarray(value, dtype=node.value.dtype), (node,), lambda g: (g,))


def through_float16(node: Node) -> Node:
    """``node`` rounded to float16, range included: what is too large for it is infinite.

    For arrays of floating-point numbers only; gradients pass as they are.
    """
    with np.errstate(over="ignore"):
        value = node.value.astype(np.float16).astype(node.value.dtype)
    return Node(np.asarray(value), (node,), lambda g: (g,))
