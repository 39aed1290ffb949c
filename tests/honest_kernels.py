"""Honest kernels: sums, products, the linear layer and the feed-forward.

Every function takes arrays of one dtype (float32 or float64) and rounds each of its steps to it,
as kernels that people ship do. They differ in where they round: which sum, which product and
which form are parameters, so that a test can try every combination. Gradients take the upstream
gradient ``g`` first and are given by argument name. Layer norm is in ``honest_norm.py``, GELU in
``honest_gelu.py``, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.floating[Any]]
#: Sums over the last axis, which it drops.
Sum: TypeAlias = Callable[[Array], Array]
#: ``x [..., r, n]`` times ``w [..., n, m]``.
Product: TypeAlias = Callable[[Array, Array], Array]
#: An elementwise function, and its gradient from upstream and argument.
Function: TypeAlias = Callable[[Array], Array]
Gradient: TypeAlias = Callable[[Array, Array], Array]

# ------------------------------------------------------------------------------------------- sums


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

# --------------------------------------------------------------------------------------- products


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a b + c rounded once, emulated in a wider format (where the machine has one)."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return np.asarray(a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


def summed(total: Sum) -> Product:
    """The product whose terms are rounded and then added up by ``total``."""
    return lambda x, w: total(x[..., None, :] * np.swapaxes(w, -1, -2)[..., None, :, :])


def fused(x: Array, w: Array) -> Array:
    return fused_from(np.zeros(w.shape[-1], x.dtype), x, w)


def fused_from(start: Array, x: Array, w: Array) -> Array:
    """A chain of fused multiply-adds that starts at zero, or at the bias."""
    total = np.broadcast_to(start, (*x.shape[:-1], w.shape[-1]))
    for k in range(x.shape[-1]):
        total = fused_multiply_add(x[..., k, None], w[..., k, None, :], total)
    return total


PRODUCTS: dict[str, Product] = {
    **{name: summed(total) for name, total in SUMS.items()},
    "fused": fused,
    "blas": np.matmul,
}

# ----------------------------------------------------------------------------------------- linear


def linear(x: Array, weight: Array, bias: Array, *, product: Product) -> Array:
    return np.asarray(product(x, weight) + bias)


def linear_from(start: Array, x: Array, weight: Array) -> Array:
    """The running sum starts at the bias, as in a plain triple loop."""
    total = np.broadcast_to(start, (*x.shape[:-1], weight.shape[1]))
    for k in range(x.shape[-1]):
        total = total + x[..., k, None] * weight[k]
    return np.asarray(total)


def linear_vjp(
    g: Array, x: Array, weight: Array, *, product: Product, total: Sum
) -> dict[str, Array]:
    positions, upstream = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    return {
        "x": product(upstream, weight.T).reshape(x.shape),
        "weight": product(positions.T, upstream),
        "bias": total(upstream.T),
    }


# ----------------------------------------------------------------------------------- feed-forward


def feed_forward(
    x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array, *, product: Product, gelu: Function
) -> Array:
    hidden = gelu(linear(x, w_1, b_1, product=product))
    return linear(hidden, w_2, b_2, product=product)


def feed_forward_vjp(
    g: Array,
    x: Array,
    w_1: Array,
    b_1: Array,
    w_2: Array,
    *,
    product: Product,
    total: Sum,
    gelu: Function,
    gelu_gradient: Gradient,
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


def sublayer_from_trunk(
    x: Array, normalised: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array, *, gelu: Function
) -> Array:
    """x + feed_forward(normalised), the running sum of the second map started at x + b_2."""
    hidden = gelu(linear_from(b_1, normalised, w_1))
    return linear_from(x + b_2, hidden, w_2)
