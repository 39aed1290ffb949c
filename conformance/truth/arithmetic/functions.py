"""The functions of a tape, element by element; their accuracy is explained in ``nodes``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.truth.arithmetic.domains import Function
from conformance.truth.arithmetic.nodes import Node, alive
from conformance.truth.arithmetic.roundings import Factor


def _unary(function: Function, a: Node, factor: Factor, derivative: Callable[[Node], Node]) -> Node:
    with np.errstate(all="ignore"):
        value = a.tape.domain.apply(function, a.value)
    node = Node(value, (a,), lambda g: (g * derivative(itself()),), factor=factor, steps=1)
    itself = alive(node)
    return node


def sqrt(a: Node) -> Node:
    """The square root, to 1 ulp."""
    with np.errstate(all="ignore"):
        value = a.tape.domain.apply("sqrt", a.value)

    def pullback(g: Node) -> tuple[Node]:
        # The root of an exact zero has no slope, and needs none: the zero can't be off.
        flat, root = a.zero(), itself()
        if not flat.any():
            return (g / (root + root),)
        kept = a.tape.floats((~flat).astype(np.float64))
        return (g * kept / (root + root + (1 - kept)),)

    root = Node(value, (a,), pullback, factor=2.0, steps=1, zero=a.zero)
    itself = alive(root)
    return root


def exp(a: Node) -> Node:
    """The exponential, to (3 + 2|t|) ulp."""
    return _unary("exp", a, 2 * (3 + 2 * a.magnitude()), lambda y: y)


def log(a: Node) -> Node:
    """The natural logarithm, to 5 ulp."""
    with np.errstate(all="ignore"):
        value = a.tape.domain.apply("log", a.value)
    return Node(value, (a,), lambda g: (g / a,), factor=10.0, steps=1)


def erf(a: Node) -> Node:
    """The error function, to 5 ulp."""
    return _unary("erf", a, 10.0, lambda _: exp(-(a * a)) * a.tape.constant("two_over_sqrt_pi"))


def erfc(a: Node) -> Node:
    """The complementary error function, to 16 ulp."""
    return _unary("erfc", a, 32.0, lambda _: -(exp(-(a * a)) * a.tape.constant("two_over_sqrt_pi")))


def power(a: Node, exponent: int) -> Node:
    """``a`` to a whole power, 1 or more: as many roundings as a running product makes.

    That is one for each factor but the first (N. Higham, "Accuracy and Stability of Numerical
    Algorithms", 2nd ed., section 3.1). What is flushed to zero on the way is flushed once: the
    powers that follow are smaller still. As a node of its own it is found by squaring: a training
    asks for a power at each step.
    """
    if exponent == 1:
        return a
    roundings = exponent - 1
    return Node(
        _raised(a.value, exponent),
        (a,),
        lambda g: (g * (power(a, roundings) * exponent),),
        factor=float(roundings),
        steps=1,
        zero=a.zero,
    )


def _raised(value: np.ndarray, exponent: int) -> np.ndarray:
    if exponent == 1:
        return value
    half = _raised(value, exponent // 2)
    square = half * half
    return np.asarray(square * value if exponent % 2 else square)
