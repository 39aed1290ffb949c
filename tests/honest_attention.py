"""Honest causal attentions and their gradients.

``q``, ``k`` and ``v`` are [B, h, T, d_head]. An attention is made of parts: how the scores are
scaled and masked, their softmax, the products. Fused ones never hold all probabilities: they go
key tile by key tile, and backward they compute the probabilities again from the log-sum-exp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.honest_kernels import Array, Function, Product, Sum
from tests.honest_softmax import SoftmaxGradient, greatest

#: Scales q and k before their product, and what remains to be done to the product.
Scaling = Callable[[Array, Array], tuple[Array, Array, Function]]


def unchanged(a: Array) -> Array:
    return a


def factor(a: Array, power: float) -> np.generic:
    return a.dtype.type(a.shape[-1]) ** a.dtype.type(power)


def divided_after(q: Array, k: Array) -> tuple[Array, Array, Function]:
    return q, k, lambda s: np.asarray(s / np.sqrt(q.dtype.type(q.shape[-1])))


def multiplied_after(q: Array, k: Array) -> tuple[Array, Array, Function]:
    reciprocal = q.dtype.type(1 / math.sqrt(q.shape[-1]))
    return q, k, lambda s: np.asarray(s * reciprocal)


def queries_divided(q: Array, k: Array) -> tuple[Array, Array, Function]:
    return np.asarray(q / np.sqrt(q.dtype.type(q.shape[-1]))), k, unchanged


def queries_multiplied(q: Array, k: Array) -> tuple[Array, Array, Function]:
    return np.asarray(q * (1 / np.sqrt(q.dtype.type(q.shape[-1])))), k, unchanged


def keys_multiplied(q: Array, k: Array) -> tuple[Array, Array, Function]:
    return q, np.asarray(k * factor(k, -0.5)), unchanged


def split(q: Array, k: Array) -> tuple[Array, Array, Function]:
    """A root of the scale on either side."""
    return np.asarray(q * factor(q, -0.25)), np.asarray(k * factor(k, -0.25)), unchanged


SCALINGS: dict[str, Scaling] = {
    "divided after": divided_after,
    "multiplied after": multiplied_after,
    "queries divided": queries_divided,
    "queries multiplied": queries_multiplied,
    "keys multiplied": keys_multiplied,
    "split": split,
}

# ------------------------------------------------------------------------------------------ masks


def later(s: Array) -> Array:
    """True where a key comes after the query."""
    return np.triu(np.ones(s.shape[-2:], bool), 1)


def chosen_infinity(s: Array) -> Array:
    return np.where(later(s), s.dtype.type(-np.inf), s)


def added_infinity(s: Array) -> Array:
    return np.asarray(s + np.where(later(s), -np.inf, 0).astype(s.dtype))


def chosen_least(s: Array) -> Array:
    return np.where(later(s), np.finfo(s.dtype).min, s)


MASKS: dict[str, Function] = {
    "infinity chosen": chosen_infinity,
    "infinity added": added_infinity,
    "least number chosen": chosen_least,
}

# ------------------------------------------------------------------------- one attention, in parts


@dataclass(frozen=True)
class Parts:
    """Which kernel stands at each place; ``tile`` 0 holds all probabilities at once."""

    product: Product
    total: Sum
    scaling: Scaling
    mask: Function
    softmax: Function
    gradient: SoftmaxGradient
    tile: int
    base: str
    projected: str


def swapped(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def scores(q: Array, k: Array, parts: Parts) -> Array:
    q, k, rest = parts.scaling(q, k)
    return parts.mask(rest(parts.product(q, swapped(k))))


def attend(q: Array, k: Array, v: Array, parts: Parts) -> tuple[Array, Array]:
    """The answer, and the log-sum-exp of each query."""
    s = scores(q, k, parts)
    if parts.tile:
        return tiled(s, v, parts)
    m = greatest(s)
    return parts.product(parts.softmax(s), v), m + np.log(parts.total(np.exp(s - m)))[..., None]


def tiled(s: Array, v: Array, parts: Parts) -> tuple[Array, Array]:
    """Unnormalised answers, rescaled whenever a larger score turns up."""
    power, unit = np.exp, s.dtype.type(1)
    if parts.base == "2":
        power, unit = np.exp2, s.dtype.type(math.log2(math.e))
        with np.errstate(over="ignore"):
            s = np.asarray(s * unit)
    m = greatest(s[..., : parts.tile])
    weight, y = np.zeros_like(m), np.zeros_like(v)
    for first in range(0, s.shape[-1], parts.tile):
        keys = slice(first, first + parts.tile)
        higher = np.maximum(m, greatest(s[..., keys]))
        p = power(s[..., keys] - higher)
        shrink = power(m - higher)
        weight = weight * shrink + parts.total(p)[..., None]
        y = y * shrink + parts.product(p, v[..., keys, :])
        m = higher
    return np.asarray(y / weight), np.asarray(m / unit + np.log(weight))


def attend_vjp(g: Array, q: Array, k: Array, v: Array, parts: Parts) -> tuple[Array, Array, Array]:
    """dq, dk and dv: from the probabilities, or from answer and log-sum-exp alone."""
    scaled_q, scaled_k, rest = parts.scaling(q, k)
    s = scores(q, k, parts)
    dp = parts.product(g, swapped(v))
    if parts.tile:
        y, log_total = attend(q, k, v, parts)
        p = np.asarray(np.exp(s - log_total))
        ds = p * (dp - parts.total(g * y)[..., None])
    else:
        p = parts.softmax(s)
        ds = parts.gradient(p, s, dp, parts.total)
    ds = rest(np.asarray(ds))
    dq, dk = parts.product(ds, scaled_k), parts.product(swapped(ds), scaled_q)
    # What was done to q before the product is done to its gradient after it.
    return parts.scaling(dq, dk)[0], parts.scaling(dq, dk)[1], parts.product(swapped(p), g)


# ------------------------------------------------------------------------------------- projections


def heads_of(x: Array, heads: int) -> Array:
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def merged(x: Array) -> Array:
    batch, heads, length, width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * width)


def project(
    x: Array, w_q: Array, w_k: Array, w_v: Array, heads: int, parts: Parts
) -> tuple[Array, Array, Array]:
    if parts.projected == "together":
        found = parts.product(x, np.concatenate([w_q, w_k, w_v], axis=1))
        q, k, v = np.split(found, 3, axis=-1)
    else:
        q, k, v = (parts.product(x, weight) for weight in (w_q, w_k, w_v))
    return heads_of(q, heads), heads_of(k, heads), heads_of(v, heads)


def causal_attention(
    x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array, heads: int, parts: Parts
) -> Array:
    y, _ = attend(*project(x, w_q, w_k, w_v, heads, parts), parts)
    return parts.product(merged(y), w_o)


def causal_attention_vjp(
    g: Array, x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array, heads: int, parts: Parts
) -> dict[str, Array]:
    q, k, v = project(x, w_q, w_k, w_v, heads, parts)
    y, _ = attend(q, k, v, parts)
    dy = heads_of(parts.product(g, w_o.T), heads)
    dq, dk, dv = (merged(found) for found in attend_vjp(dy, q, k, v, parts))
    if parts.projected == "together":
        weights = np.concatenate([w_q, w_k, w_v], axis=1)
        dx = parts.product(np.concatenate([dq, dk, dv], axis=-1), weights.T)
    else:
        dx = parts.product(dq, w_q.T) + parts.product(dk, w_k.T) + parts.product(dv, w_v.T)

    def weight_gradient(a: Array, b: Array) -> Array:
        return parts.product(a.reshape(-1, a.shape[-1]).T, b.reshape(-1, b.shape[-1]))

    return {
        "x": np.asarray(dx),
        "w_q": weight_gradient(x, dq),
        "w_k": weight_gradient(x, dk),
        "w_v": weight_gradient(x, dv),
        "w_o": weight_gradient(merged(y), g),
    }
