"""Honest softmaxes over the last axis, and their gradients.

A place that is left out holds minus infinity, or the least number of the dtype; the first place
is never left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.honest_kernels import SUMS, Array, Function, Sum, fused_multiply_add, sequential

#: The input gradient from p, the scores, the upstream gradient and a sum.
SoftmaxGradient = Callable[[Array, Array, Array, Sum], Array]


def greatest(a: Array) -> Array:
    return np.asarray(a.max(axis=-1, keepdims=True))


def two_pass(total: Sum) -> Function:
    def softmax(a: Array) -> Array:
        e = np.exp(a - greatest(a))
        return np.asarray(e / total(e)[..., None])

    return softmax


def by_reciprocal(a: Array) -> Array:
    e = np.exp(a - greatest(a))
    return np.asarray(e * (1 / sequential(e)[..., None]))


def by_powers_of_two(a: Array) -> Array:
    """exp(a - m) as 2^(a c - m c) with c = log2 e, each product rounded."""
    c = a.dtype.type(math.log2(math.e))
    with np.errstate(over="ignore"):
        e = np.exp2(a * c - greatest(a) * c)
    return np.asarray(e / sequential(e)[..., None])


def by_fused_powers_of_two(a: Array) -> Array:
    """The same in a fused multiply-add, as attention kernels on accelerators have it."""
    c = np.broadcast_to(a.dtype.type(math.log2(math.e)), a.shape)
    with np.errstate(over="ignore"):
        e = np.exp2(fused_multiply_add(a, c, -greatest(a) * c))
    return np.asarray(e / sequential(e)[..., None])


def log_total(a: Array) -> Array:
    """log sum exp(a), the axis kept."""
    m = greatest(a)
    return np.asarray(m + np.log(sequential(np.exp(a - m)))[..., None])


def log_softmax(a: Array) -> Array:
    centred = a - greatest(a)
    return np.asarray(centred - np.log(sequential(np.exp(centred)))[..., None])


def by_log_total(a: Array) -> Array:
    return np.asarray(np.exp(a - log_total(a)))


def by_log_softmax(a: Array) -> Array:
    return np.asarray(np.exp(log_softmax(a)))


def generous(a: Array) -> Array:
    """An exponential that is 3 ulp too large, but right at 0."""
    e = np.exp(a)
    return np.where(a == 0, e, e + 3 * np.spacing(e))


def running(a: Array, tile: int, total: Sum, power: Function = np.exp) -> tuple[Array, Array]:
    """The largest and the sum of exp(a - largest), ``tile`` places at a time."""
    m = greatest(a[..., :tile])
    s = total(power(a[..., :tile] - m))[..., None]
    for first in range(tile, a.shape[-1], tile):
        part = a[..., first : first + tile]
        higher = np.maximum(m, greatest(part))
        s = s * power(m - higher) + total(power(part - higher))[..., None]
        m = higher
    return m, s


def online(tile: int) -> Function:
    def softmax(a: Array) -> Array:
        m, s = running(a, tile, sequential)
        return np.asarray(np.exp(a - m) / s)

    return softmax


SOFTMAXES: dict[str, Function] = {
    **{f"two-pass {name}": two_pass(total) for name, total in SUMS.items()},
    "reciprocal": by_reciprocal,
    "powers of two": by_powers_of_two,
    "fused powers of two": by_fused_powers_of_two,
    "exp(x - log total)": by_log_total,
    "exp of log-softmax": by_log_softmax,
    "online 1": online(1),
    "online 3": online(3),
}

# -------------------------------------------------------------------------------------- gradients


def together(p: Array, a: Array, g: Array, total: Sum) -> Array:
    return np.asarray(p * (g - total(p * g)[..., None]))


def apart(p: Array, a: Array, g: Array, total: Sum) -> Array:
    """p g is multiplied out before the sum is taken off."""
    moved = p * g
    return np.asarray(moved - p * total(moved)[..., None])


def step_by_step(p: Array, a: Array, g: Array, total: Sum) -> Array:
    """What differentiating exponential, sum and quotient one after the other gives."""
    e = np.exp(a - greatest(a))
    s = total(e)[..., None]
    shared = total(-g * e / (s * s))[..., None]
    return np.asarray((g / s + shared) * e)


def through_the_largest(p: Array, a: Array, g: Array, total: Sum) -> Array:
    """The same, and the largest is differentiated too: it is moved by what ought to be zero."""
    found = step_by_step(p, a, g, total)
    place = a.argmax(axis=-1)[..., None]
    moved = np.take_along_axis(found, place, -1) + total(-found)[..., None]
    np.put_along_axis(found, place, moved, -1)
    return found


SOFTMAX_GRADIENTS: dict[str, SoftmaxGradient] = {
    "together": together,
    "apart": apart,
    "step by step": step_by_step,
    "through the largest": through_the_largest,
}
