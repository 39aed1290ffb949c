"""JAX: everything of a block, from the linear layer to both sublayers."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from conformance import Adapter

from ._parameters import ATTENTION, FEED_FORWARD, chosen
from ._rejections import check_attention, check_linear, check_same_shape


class JaxLayers(Adapter):
    """The functions of ``jax.nn`` and what is written in ``jax.numpy``, with exact GELU."""

    def linear(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """``x [..., d_in]``, ``weight [d_in, d_out]``, ``bias [d_out]`` -> ``y [..., d_out]``.

        y = x W + b. Raises ``Rejected`` for each kind that ``linear`` rejects.
        """
        check_linear(x, weight, bias)
        y = x @ weight
        return y if bias is None else y + bias

    def layer_norm(self, x: Array, gamma: Array, beta: Array, *, eps: float) -> Array:
        """``x [..., d]``, ``gamma [d]``, ``beta [d]`` -> ``y [..., d]``.

        y = gamma (x - mean) / sqrt(variance + eps) + beta, over the last axis; the population
        variance, taken of the centred values, so that a large mean costs no digits.
        """
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return gamma * (centred / jnp.sqrt(variance + eps)) + beta

    def gelu(self, x: Array) -> Array:
        """``x [...]`` -> ``y [...]``: ``jax.nn.gelu`` without the tanh formula, its default."""
        return jax.nn.gelu(x, approximate=False)

    def residual_add(self, x: Array, increment: Array) -> Array:
        """``x [...]``, ``increment`` of the same shape -> ``y [...]``: y = x + increment.

        Raises ``Rejected("shape-mismatch")``.
        """
        check_same_shape(x, increment)
        return x + increment

    def feed_forward(self, x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array) -> Array:
        """``x [..., d]``, ``w_1 [d, f]``, ``b_1 [f]``, ``w_2 [f, d]``, ``b_2 [d]`` -> ``[..., d]``.

        y = gelu(x w_1 + b_1) w_2 + b_2. Raises ``Rejected`` as ``linear``.
        """
        return self.linear(self.gelu(self.linear(x, w_1, b_1)), w_2, b_2)

    def feed_forward_sublayer(
        self,
        x: Array,
        gamma: Array,
        beta: Array,
        w_1: Array,
        b_1: Array,
        w_2: Array,
        b_2: Array,
        *,
        eps: float,
    ) -> Array:
        """``x [..., d]`` and the parameters of ``layer_norm`` and ``feed_forward`` -> ``[..., d]``.

        y = x + feed_forward(layer_norm(x)). Raises ``Rejected`` as ``linear``, ``residual_add``.
        """
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        return self.residual_add(x, self.feed_forward(normalised, w_1, b_1, w_2, b_2))

    def softmax(self, x: Array) -> Array:
        """``x [..., n]`` -> ``y [..., n]``: ``jax.nn.softmax`` over the last axis."""
        return jax.nn.softmax(x, axis=-1)

    def causal_attention(
        self, x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array, *, heads: int
    ) -> Array:
        """``x [B, T, d]``, each weight ``[d, d]`` -> ``y [B, T, d]``.

        y = merge(softmax(mask(q k^T / sqrt(d_head))) v) w_o, where q, k, v = x w_q, x w_k, x w_v,
        each split into heads: head k has the features from k d_head on. Written out, because
        ``jax.nn.dot_product_attention`` takes its softmax in float32 whatever it is given. Raises
        ``Rejected("input-rank")``, ``Rejected("heads")``, then as ``linear``.
        """
        check_attention(x, heads)
        q, k, v = (_split_heads(self.linear(x, weight), heads) for weight in (w_q, w_k, w_v))
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        visible = jnp.tri(x.shape[1], dtype=bool)
        weights = self.softmax(jnp.where(visible, scores, -jnp.inf))
        return self.linear(_merge_heads(weights @ v), w_o)

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
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        increment = self.causal_attention(normalised, w_q, w_k, w_v, w_o, heads=heads)
        return self.residual_add(x, increment)

    def block(self, x: Array, parameters: Mapping[str, Array], *, heads: int, eps: float) -> Array:
        """``x [B, T, d]`` and the parameters of a block by name -> ``y [B, T, d]``.

        y = feed_forward_sublayer(u) with u = attention_sublayer(x): the second branch reads and
        adds to what the first one gave. Raises ``Rejected`` as the sublayers.
        """
        u = self.attention_sublayer(x, **chosen(parameters, ATTENTION), heads=heads, eps=eps)
        return self.feed_forward_sublayer(u, **chosen(parameters, FEED_FORWARD), eps=eps)


def _split_heads(x: Array, heads: int) -> Array:
    """``[B, T, d] -> [B, heads, T, d_head]``."""
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).swapaxes(1, 2)


def _merge_heads(x: Array) -> Array:
    """``[B, heads, T, d_head] -> [B, T, d]``, the inverse of ``_split_heads``."""
    batch, heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * width)
