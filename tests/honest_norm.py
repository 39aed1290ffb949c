"""Honest layer norms and their gradients, each rounded in places of its own.

Statistics, the addition of epsilon and the form that uses them are parameters; ``one_pass`` alone
is dishonest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tests.honest_kernels import SUMS, Array, Sum, sequential

#: Mean and population variance over the last axis, which they keep with size 1.
Statistics: TypeAlias = Callable[[Array], tuple[Array, Array]]
#: Adds epsilon to the variance.
AddEps: TypeAlias = Callable[[Array, float], Array]
#: y from x, mean, variance + eps, gamma, beta.
Norm: TypeAlias = Callable[[Array, Array, Array, Array, Array], Array]
#: The input gradient from g, x, mean, root, gamma and a sum; root is sqrt(variance + eps).
InputGradient: TypeAlias = Callable[[Array, Array, Array, Array, Array, Sum], Array]

# ------------------------------------------------------------------------------------- statistics


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
EPS: dict[str, AddEps] = {"rounded": np.add, "double": eps_double}


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


NORMS: dict[str, Norm] = {
    "divided": divided,
    "scaled": scaled,
    "scaled by gamma": scaled_by_gamma,
    "folded": folded,
    "folded affine": folded_affine,
}

# -------------------------------------------------------------------------------------- gradients


def standard(g: Array, x: Array, mean: Array, root: Array, gamma: Array, total: Sum) -> Array:
    """r (a - mean a - z mean(a z)), a = g gamma, z = (x - mean) r."""
    n, r, a = x.shape[-1], 1 / root, g * gamma
    z = (x - mean) * r
    return np.asarray(r * (a - total(a)[..., None] / n - z * (total(a * z)[..., None] / n)))


def folded_gradient(
    g: Array, x: Array, mean: Array, root: Array, gamma: Array, total: Sum
) -> Array:
    """r a + b x + c from sums over a and a x, as PyTorch's CPU kernel does."""
    n, r, a = x.shape[-1], 1 / root, g * gamma
    with_x, alone = total(a * x)[..., None], total(a)[..., None]
    b = (alone * mean - with_x) * r * r * r / n
    c = -b * mean - alone * r / n
    return np.asarray(r * a + b * x + c)


def apex(g: Array, x: Array, mean: Array, root: Array, gamma: Array, total: Sum) -> Array:
    """(n a - sum a - z sum(a z)) r / n, as Apex's fused kernel does."""
    n, r, a = x.shape[-1], 1 / root, g * gamma
    z = (x - mean) * r
    inner = n * a - total(a)[..., None] - z * total(a * z)[..., None]
    return np.asarray(inner * (r / n))


def reverse_mode(g: Array, x: Array, mean: Array, root: Array, gamma: Array, total: Sum) -> Array:
    """What differentiating mean, variance and root one after the other gives."""
    n, centred, dz = x.shape[-1], x - mean, g * gamma
    droot = total(-dz * centred / (root * root))[..., None]
    dvariance = droot / (2 * root)
    dcentred = dz / root + 2 * centred * (dvariance / n)
    return np.asarray(dcentred - total(dcentred)[..., None] / n)


INPUT_GRADIENTS: dict[str, InputGradient] = {
    "standard": standard,
    "folded": folded_gradient,
    "apex": apex,
    "reverse mode": reverse_mode,
}


def from_centred(x: Array, mean: Array, root: Array) -> Array:
    return np.asarray((x - mean) * (1 / root))


def from_folded(x: Array, mean: Array, root: Array) -> Array:
    scale = 1 / root
    return np.asarray(x * scale + -mean * scale)


def from_division(x: Array, mean: Array, root: Array) -> Array:
    return np.asarray((x - mean) / root)


#: The normalised value that the gradient of gamma needs.
NORMALISED: dict[str, Callable[[Array, Array, Array], Array]] = {
    "centred": from_centred,
    "folded": from_folded,
    "division": from_division,
}


def affine_vjp(g: Array, normalised: Array, *, total: Sum) -> dict[str, Array]:
    width = g.shape[-1]
    return {
        "gamma": total((g * normalised).reshape(-1, width).T),
        "beta": total(g.reshape(-1, width).T),
    }
