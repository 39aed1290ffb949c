"""Honest gradients: vector-Jacobian products by hand, each rounded in places of its own.

They go with ``honest_kernels.py``. Each takes the upstream gradient ``g`` and gives the gradients
by argument name.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.honest_kernels import Array, Function, Product, Sum, erf, erfc, linear

# -------------------------------------------------------------------------------------- linear


def linear_vjp(
    g: Array, x: Array, weight: Array, *, product: Product, total: Sum
) -> dict[str, Array]:
    positions, upstream = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    return {
        "x": product(upstream, weight.T).reshape(x.shape),
        "weight": product(positions.T, upstream),
        "bias": total(upstream.T),
    }


# ---------------------------------------------------------------------------------- layer norm


def standard(g: Array, x: Array, mean: Array, root: Array, gamma: Array, total: Sum) -> Array:
    """r (a - mean a - z mean(a z)), a = g gamma, z = (x - mean) r."""
    n, r, a = x.shape[-1], 1 / root, g * gamma
    z = (x - mean) * r
    return np.asarray(r * (a - total(a)[..., None] / n - z * (total(a * z)[..., None] / n)))


def folded(g: Array, x: Array, mean: Array, root: Array, gamma: Array, total: Sum) -> Array:
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


def reverse_mode(
    g: Array, x: Array, mean: Array, root: Array, gamma: Array, total: Sum
) -> Array:
    """What differentiating mean, variance and root one after the other gives."""
    n, centred, dz = x.shape[-1], x - mean, g * gamma
    droot = total(-dz * centred / (root * root))[..., None]
    dvariance = droot / (2 * root)
    dcentred = dz / root + 2 * centred * (dvariance / n)
    return np.asarray(dcentred - total(dcentred)[..., None] / n)


#: The gradient with respect to x from mean and root, sqrt(variance + eps).
NORM_GRADIENTS: dict[str, Callable[[Array, Array, Array, Array, Array, Sum], Array]] = {
    "standard": standard,
    "folded": folded,
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


# ---------------------------------------------------------------------------------------- gelu


def cdf_by_erf(s: Array) -> Array:
    return np.asarray(0.5 * (1 + erf(s)))


def cdf_by_erfc(s: Array) -> Array:
    return np.asarray(0.5 * erfc(-s))


CDFS: dict[str, Function] = {"erf": cdf_by_erf, "erfc": cdf_by_erfc}


def density(x: Array, _: Array) -> Array:
    """exp(-x^2 / 2) / sqrt(2 pi)."""
    return np.exp(x * x * -0.5) * x.dtype.type(1 / math.sqrt(2 * math.pi))


def density_of_argument(_: Array, s: Array) -> Array:
    """The same from s = x / sqrt 2, with the constants in three factors."""
    slope = np.exp(-(s * s)) * s.dtype.type(2 / math.sqrt(math.pi))
    return np.asarray(slope * s.dtype.type(math.sqrt(0.5)) * 0.5)


DENSITIES: dict[str, Callable[[Array, Array], Array]] = {
    "of x": density,
    "of argument": density_of_argument,
}


def gelu_vjp(
    g: Array,
    x: Array,
    *,
    argument: Function,
    cdf: Function,
    density: Callable[[Array, Array], Array],
) -> Array:
    s = argument(x)
    return np.asarray(g * (cdf(s) + x * density(x, s)))


def gelu_vjp_apart(
    g: Array,
    x: Array,
    *,
    argument: Function,
    cdf: Function,
    density: Callable[[Array, Array], Array],
) -> Array:
    """Both paths multiplied by the upstream gradient before they meet."""
    s = argument(x)
    return np.asarray(g * cdf(s) + g * x * density(x, s))


GELU_GRADIENTS: dict[str, Callable[..., Array]] = {
    "together": gelu_vjp,
    "apart": gelu_vjp_apart,
}


def feed_forward_vjp(  # noqa: PLR0913 -- as many arguments as its formula
    g: Array,
    x: Array,
    w_1: Array,
    b_1: Array,
    w_2: Array,
    *,
    product: Product,
    total: Sum,
    gelu: Function,
    gelu_gradient: Callable[[Array, Array], Array],
) -> dict[str, Array]:
    z = linear(x, w_1, b_1, product=product)
    second = linear_vjp(g, gelu(z), w_2, product=product, total=total)
    first = linear_vjp(gelu_gradient(second["x"], z), x, w_1, product=product, total=total)
    return {
        "x": first["x"],
        "w_1": first["weight"],
        "b_1": first["bias"],
        "w_2": second["weight"],
        "b_2": second["bias"],
    }
