"""NumPy: softmax, causal attention, its sublayer, and the block of two sublayers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ._numpy_layers import Array, Gradients, NumpyLayers
from ._parameters import ATTENTION, FEED_FORWARD, chosen
from ._rejections import check_attention


class Attended(NamedTuple):
    """What attention computes before its last weight.

    ``[B, heads, T, d_head]`` but for ``scores`` and ``weights``, ``[B, heads, T, T]``, and
    ``merged``, ``[B, T, d]``.
    """

    q: Array
    k: Array
    v: Array
    scores: Array
    weights: Array
    merged: Array


class NumpyAttention(NumpyLayers):
    """Where positions meet: every position sees itself and what came before it."""

    def softmax(self, x: Array) -> Array:
        """``x [..., n]`` -> ``y [..., n]``: y = exp(x) / sum exp(x), over the last axis.

        The largest is subtracted first, which changes nothing but keeps exp from overflowing.
        """
        return self._once(_softmax, x)

    def softmax_vjp(self, upstream: Array, x: Array) -> Gradients:
        """``upstream [..., n]`` -> the gradient of ``x``: y (G - sum(y G)).

        The sum is there because each x moves every y.
        """
        y = self._once(_softmax, x)
        return {"x": y * (upstream - np.add.reduce(y * upstream, axis=-1, keepdims=True))}

    def causal_attention(
        self, x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array, *, heads: int
    ) -> Array:
        """``x [B, T, d]``, each weight ``[d, d]`` -> ``y [B, T, d]``.

        y = merge(softmax(mask(q k^T / sqrt(d_head))) v) w_o, where q, k, v = x w_q, x w_k, x w_v,
        each split into heads: head k has the features from k d_head on. Raises
        ``Rejected("input-rank")``, ``Rejected("heads")``, then as ``linear``.
        """
        check_attention(x, heads)
        attended = self._once(self._attended, x, w_q, w_k, w_v, heads=heads)
        return self.linear(attended.merged, w_o)

    def causal_attention_vjp(
        self,
        upstream: Array,
        x: Array,
        w_q: Array,
        w_k: Array,
        w_v: Array,
        w_o: Array,
        *,
        heads: int,
    ) -> Gradients:
        """``upstream [B, T, d]`` -> the gradients of all five arguments; raises as the operation.

        x gets the sum of three gradients: through the queries, the keys and the values.
        """
        check_attention(x, heads)
        q, k, v, scores, weights, merged = self._once(self._attended, x, w_q, w_k, w_v, heads=heads)
        output = self.linear_vjp(upstream, merged, w_o)
        context = _split_heads(output["x"], heads)
        of_scores = self.softmax_vjp(context @ v.swapaxes(-1, -2), scores)["x"]
        of_q, of_k = _scores_vjp(of_scores, q, k)
        of_v = weights.swapaxes(-1, -2) @ context
        queries = self.linear_vjp(_merge_heads(of_q), x, w_q)
        keys = self.linear_vjp(_merge_heads(of_k), x, w_k)
        values = self.linear_vjp(_merge_heads(of_v), x, w_v)
        return {
            "x": queries["x"] + keys["x"] + values["x"],
            "w_q": queries["weight"],
            "w_k": keys["weight"],
            "w_v": values["weight"],
            "w_o": output["weight"],
        }

    def _attended(self, x: Array, w_q: Array, w_k: Array, w_v: Array, *, heads: int) -> Attended:
        q, k, v = (_split_heads(self.linear(x, weight), heads) for weight in (w_q, w_k, w_v))
        scores = _scores(q, k)
        weights = self.softmax(scores)
        return Attended(q, k, v, scores, weights, _merge_heads(weights @ v))

    def attention_sublayer(
        self,
        x: Array,
        gamma: Array,
        beta: Array,
        w_q: Array,
        w_k: Array,
        w_v: Array,
        w_o: Array,
        *,
        heads: int,
        eps: float,
    ) -> Array:
        """``x [B, T, d]``, parameters of ``layer_norm``, ``causal_attention`` -> ``[B, T, d]``.

        y = x + causal_attention(layer_norm(x)). Raises ``Rejected`` as ``causal_attention`` and
        ``residual_add``.
        """
        check_attention(x, heads)
        normalised = self._once(self.layer_norm, x, gamma, beta, eps=eps)
        increment = self.causal_attention(normalised, w_q, w_k, w_v, w_o, heads=heads)
        return self.residual_add(x, increment)

    def attention_sublayer_vjp(
        self,
        upstream: Array,
        x: Array,
        gamma: Array,
        beta: Array,
        w_q: Array,
        w_k: Array,
        w_v: Array,
        w_o: Array,
        *,
        heads: int,
        eps: float,
    ) -> Gradients:
        """``upstream [B, T, d]`` -> the gradients of all seven arguments; raises as the operation.

        x gets one gradient along the trunk and one through the branch.
        """
        check_attention(x, heads)
        weights = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}
        normalised = self._once(self.layer_norm, x, gamma, beta, eps=eps)
        trunk = self.residual_add_vjp(upstream, x, normalised)  # the branch has this shape too
        branch = self.causal_attention_vjp(trunk["increment"], normalised, **weights, heads=heads)
        norm = self.layer_norm_vjp(branch.pop("x"), x, gamma, beta, eps=eps)
        return {**branch, **norm, "x": trunk["x"] + norm["x"]}

    def block(self, x: Array, parameters: Mapping[str, Array], *, heads: int, eps: float) -> Array:
        """``x [B, T, d]`` and the parameters of a block by name -> ``y [B, T, d]``.

        y = feed_forward_sublayer(u) with u = attention_sublayer(x): the second branch reads and
        adds to what the first one gave. Raises ``Rejected`` as the sublayers.
        """
        u = self._once(self._between, x, parameters, heads=heads, eps=eps)
        return self.feed_forward_sublayer(u, **chosen(parameters, FEED_FORWARD), eps=eps)

    def block_vjp(
        self,
        upstream: Array,
        x: Array,
        parameters: Mapping[str, Array],
        *,
        heads: int,
        eps: float,
    ) -> Gradients:
        """``upstream [B, T, d]`` -> the gradients of ``x`` and of each parameter by its name.

        Raises as the operation.
        """
        u = self._once(self._between, x, parameters, heads=heads, eps=eps)
        attention = chosen(parameters, ATTENTION)
        maps = chosen(parameters, FEED_FORWARD)
        second = self.feed_forward_sublayer_vjp(upstream, u, **maps, eps=eps)
        first = self.attention_sublayer_vjp(second["x"], x, **attention, heads=heads, eps=eps)
        return {
            "x": first["x"],
            **{name: first[argument] for argument, name in ATTENTION.items()},
            **{name: second[argument] for argument, name in FEED_FORWARD.items()},
        }

    def _between(
        self, x: Array, parameters: Mapping[str, Array], *, heads: int, eps: float
    ) -> Array:
        """``x [B, T, d]`` -> ``u [B, T, d]``, between the sublayers of a block."""
        return self.attention_sublayer(x, **chosen(parameters, ATTENTION), heads=heads, eps=eps)


def _softmax(x: Array) -> Array:
    # initial, so that there may be no x at all
    powers = np.exp(x - np.maximum.reduce(x, axis=-1, keepdims=True, initial=-np.inf))
    y: Array = powers / np.add.reduce(powers, axis=-1, keepdims=True)
    return y


def _split_heads(x: Array, heads: int) -> Array:
    """``[B, T, d] -> [B, heads, T, d_head]``."""
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).swapaxes(1, 2)


def _merge_heads(x: Array) -> Array:
    """``[B, heads, T, d_head] -> [B, T, d]``, the inverse of ``_split_heads``."""
    batch, heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * width)


def _scores(q: Array, k: Array) -> Array:
    """``[B, heads, T, d_head]`` both -> ``q k^T / sqrt(d_head)``, minus infinity at later keys."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return np.where(_visible(q.shape[-2]), scores, -np.inf)


def _scores_vjp(upstream: Array, q: Array, k: Array) -> tuple[Array, Array]:
    """``upstream [B, heads, T, T]`` -> the gradients of ``q`` and ``k``."""
    g = np.where(_visible(q.shape[-2]), upstream, 0.0) / math.sqrt(q.shape[-1])
    return g @ k, g.swapaxes(-1, -2) @ q


@lru_cache(maxsize=64)
def _visible(length: int) -> np.ndarray:
    """``[T, T]``: whether the query of the row sees the key of the column."""
    return np.tri(length, dtype=bool)
