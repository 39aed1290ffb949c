"""Honest kernels: the mathematics of the specification, each rounded in places of its own.

Every function takes arrays of one dtype (float32 or float64) and rounds each of its steps to it,
as kernels that people ship do. Which sum, which statistics and which form are parameters, so that
a test can try every combination. ``one_pass`` alone is dishonest. Gradients are in
``honest_gradients.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.floating[Any]]
#: Sums over the last axis, which it drops.
Sum: TypeAlias = Callable[[Array], Array]
#: ``x [..., n]`` times ``w [n, m]``.
Product: TypeAlias = Callable[[Array, Array], Array]
#: Mean and population variance over the last axis, which they keep with size 1.
Statistics: TypeAlias = Callable[[Array], tuple[Array, Array]]
#: An elementwise function.
Function: TypeAlias = Callable[[Array], Array]

# ---------------------------------------------------------------------------------------- sums


def sequential(a: Array) -> Array:
    total = a[..., 0]
    for k in range(1, a.shape[-1]):
        total = total + a[..., k]
    return total


def backwards(a: Array) -> Array:
    return sequential(a[..., ::-1])


def pairwise(a: Array) -> Array:
    if a.shape[-1] == 1:
        return a[..., 0]
    half = a.shape[-1] // 2
    return np.asarray(pairwise(a[..., :half]) + pairwise(a[..., half:]))


def lanes(a: Array) -> Array:
    """Eight interleaved running sums, as vector units keep them, then their pairwise sum."""
    running = [sequential(a[..., k::8]) for k in range(min(8, a.shape[-1]))]
    return pairwise(np.stack(running, axis=-1))


SUMS: dict[str, Sum] = {
    "sequential": sequential,
    "backwards": backwards,
    "pairwise": pairwise,
    "lanes": lanes,
    "library": lambda a: np.asarray(a.sum(axis=-1)),
}

# ------------------------------------------------------------------------------------ products


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a b + c rounded once, emulated in a wider format (where the machine has one)."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return np.asarray(a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


def summed(total: Sum) -> Product:
    """The product whose terms are rounded and then added up by ``total``."""
    return lambda x, w: total(x[..., None, :] * w.T)


def fused(x: Array, w: Array) -> Array:
    start = np.zeros((*x.shape[:-1], w.shape[1]), x.dtype)
    return fused_from(start, x, w)


def fused_from(start: Array, x: Array, w: Array) -> Array:
    total = start
    for k in range(x.shape[-1]):
        total = fused_multiply_add(x[..., k, None], w[k], total)
    return total


PRODUCTS: dict[str, Product] = {
    **{name: summed(total) for name, total in SUMS.items()},
    "fused": fused,
    "blas": np.matmul,
}

# -------------------------------------------------------------------------------------- linear


def linear(x: Array, weight: Array, bias: Array, *, product: Product) -> Array:
    return np.asarray(product(x, weight) + bias)


def linear_from_bias(x: Array, weight: Array, bias: Array) -> Array:
    """The running sum starts at the bias, as in a plain triple loop."""
    total = np.broadcast_to(bias, (*x.shape[:-1], weight.shape[1]))
    for k in range(x.shape[-1]):
        total = total + x[..., k, None] * weight[k]
    return np.asarray(total)


def linear_from_bias_fused(x: Array, weight: Array, bias: Array) -> Array:
    start = np.broadcast_to(bias, (*x.shape[:-1], weight.shape[1]))
    return fused_from(start, x, weight)


# ------------------------------------------------------------------------------ layer norm


def two_pass(total: Sum) -> Statistics:
    def statistics(x: Array) -> tuple[Array, Array]:
        n = x.shape[-1]
        mean = total(x)[..., None] / n
        centred = x - mean
        return mean, total(centred * centred)[..., None] / n

    return statistics


def by_reciprocal_width(x: Array) -> tuple[Array, Array]:
    """Multiplies by 1 / n, rounded, where others divide by n."""
    share = x.dtype.type(1) / x.dtype.type(x.shape[-1])
    mean = sequential(x)[..., None] * share
    centred = x - mean
    return mean, np.asarray(sequential(centred * centred)[..., None] * share)


def corrected(x: Array) -> tuple[Array, Array]:
    """Two passes, and what the rounded mean left in the deviations taken off the variance."""
    n = x.shape[-1]
    mean = sequential(x)[..., None] / n
    centred = x - mean
    left = sequential(centred)[..., None]
    squares = sequential(centred * centred)[..., None]
    return mean, np.maximum(squares - left * left / n, 0) / n


def welford(x: Array) -> tuple[Array, Array]:
    """One pass that updates the mean (B. P. Welford, Technometrics 4, 1962)."""
    mean, squares = np.zeros_like(x[..., 0]), np.zeros_like(x[..., 0])
    for k in range(x.shape[-1]):
        step = x[..., k] - mean
        mean = mean + step / (k + 1)
        squares = squares + step * (x[..., k] - mean)
    return mean[..., None], squares[..., None] / x.shape[-1]


def chan(x: Array) -> tuple[Array, Array]:
    """Blocks of four in two passes, merged one by one (Chan, Golub and LeVeque, 1979)."""
    count, mean, squares = 0, np.zeros_like(x[..., 0]), np.zeros_like(x[..., 0])
    for first in range(0, x.shape[-1], 4):
        block = x[..., first : first + 4]
        size = block.shape[-1]
        block_mean, block_variance = two_pass(sequential)(block)
        step = block_mean[..., 0] - mean
        count += size
        mean = mean + step * (size / count)
        between = step * step * ((count - size) * size / count)
        squares = squares + (block_variance[..., 0] * size + between)
    return mean[..., None], squares[..., None] / x.shape[-1]


def one_pass(x: Array) -> tuple[Array, Array]:
    """E[x^2] - mean^2: dishonest, the difference of two large numbers."""
    n = x.shape[-1]
    mean = sequential(x)[..., None] / n
    square = sequential(x * x)[..., None] / n
    return mean, np.maximum(square - mean * mean, 0)


STATISTICS: dict[str, Statistics] = {
    **{f"two-pass {name}": two_pass(total) for name, total in SUMS.items()},
    "reciprocal width": by_reciprocal_width,
    "corrected": corrected,
    "welford": welford,
    "chan": chan,
}


def eps_double(variance: Array, eps: float) -> Array:
    """The sum is made in double precision and rounded once."""
    return np.asarray(variance.astype(np.float64) + eps).astype(variance.dtype)


#: NumPy rounds a Python number to the dtype of the array it meets.
EPS: dict[str, Callable[[Array, float], Array]] = {"rounded": np.add, "double": eps_double}


def divided(x: Array, mean: Array, square: Array, gamma: Array, beta: Array) -> Array:
    return np.asarray((x - mean) / np.sqrt(square) * gamma + beta)


def scaled(x: Array, mean: Array, square: Array, gamma: Array, beta: Array) -> Array:
    return np.asarray((x - mean) * (1 / np.sqrt(square)) * gamma + beta)


def scaled_by_gamma(x: Array, mean: Array, square: Array, gamma: Array, beta: Array) -> Array:
    """gamma / root is computed before it meets the deviations."""
    return np.asarray((x - mean) * (gamma * (1 / np.sqrt(square))) + beta)


def folded(x: Array, mean: Array, square: Array, gamma: Array, beta: Array) -> Array:
    """x * scale + shift, the mean folded into the shift."""
    scale = 1 / np.sqrt(square)
    return np.asarray((x * scale + -mean * scale) * gamma + beta)


def folded_affine(x: Array, mean: Array, square: Array, gamma: Array, beta: Array) -> Array:
    """x * scale + shift with gamma and beta folded in as well."""
    scale = gamma * (1 / np.sqrt(square))
    return np.asarray(x * scale + (beta - mean * scale))


#: How ``variance + eps`` (``square``) and the rest become y.
NORMS: dict[str, Callable[[Array, Array, Array, Array, Array], Array]] = {
    "divided": divided,
    "scaled": scaled,
    "scaled by gamma": scaled_by_gamma,
    "folded": folded,
    "folded affine": folded_affine,
}

# ---------------------------------------------------------------------------------------- gelu


def erf(a: Array) -> Array:
    return np.array([math.erf(v) for v in a.reshape(-1)], a.dtype).reshape(a.shape)


def erfc(a: Array) -> Array:
    return np.array([math.erfc(v) for v in a.reshape(-1)], a.dtype).reshape(a.shape)


def by_product(x: Array) -> Array:
    return x * x.dtype.type(math.sqrt(0.5))


def by_division(x: Array) -> Array:
    return x / x.dtype.type(math.sqrt(2))


#: x / sqrt 2.
ARGUMENTS: dict[str, Function] = {"product": by_product, "division": by_division}


def erf_form(x: Array, argument: Function) -> Array:
    return np.asarray((0.5 * x) * (1 + erf(argument(x))))


def erfc_form(x: Array, argument: Function) -> Array:
    return np.asarray((0.5 * x) * erfc(-argument(x)))


def ndtr_form(x: Array, argument: Function) -> Array:
    return np.asarray(x * (0.5 * (1 + erf(argument(x)))))


def split_form(x: Array, argument: Function) -> Array:
    """The distribution function from erf in the middle and from erfc in both tails."""
    s = argument(x)
    tail = 0.5 * erfc(np.abs(s))
    cdf = np.where(np.abs(s) < 1, 0.5 + 0.5 * erf(s), np.where(s > 0, 1 - tail, tail))
    return np.asarray(x * cdf)


GELUS: dict[str, Callable[[Array, Function], Array]] = {
    "erf": erf_form,
    "erfc": erfc_form,
    "ndtr": ndtr_form,
    "split": split_form,
}


def feed_forward(  # noqa: PLR0913 -- as many arguments as its formula
    x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array, *, product: Product, gelu: Function
) -> Array:
    hidden = gelu(linear(x, w_1, b_1, product=product))
    return linear(hidden, w_2, b_2, product=product)
