"""JAX: the decoder from tokens to loss."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from ._jax_layers import JaxLayers
from ._parameters import blocks

#: So many blocks are compiled one after the other; a loop over fewer takes longer to compile.
_FEW = 3


class JaxDecoder(JaxLayers):
    """Tables and blocks between the tokens and the loss; parameters are a dict by name."""

    def embed(self, tokens: Array, token_embedding: Array, position_embedding: Array) -> Array:
        """``tokens [B, T]``, tables ``[V, d]`` and ``[C, d]`` -> ``y [B, T, d]``.

        y = token_embedding[tokens] + position_embedding[0..T-1]. Tokens are checked before.
        """
        return token_embedding[tokens] + position_embedding[: tokens.shape[1]]

    def decoder(
        self, tokens: Array, parameters: Mapping[str, Array], *, heads: int, eps: float
    ) -> Array:
        """``tokens [B, T]`` and the parameters of a decoder by name -> ``logits [B, T, V]``.

        embed, each block in order, the final layer norm, and the head, which has no bias. Of many
        blocks one is compiled, and run over their parameters. Raises ``Rejected`` as ``embed``,
        then as ``block``.
        """
        p = parameters
        several = blocks(p)

        def one(x: Array, each: Mapping[str, Array]) -> tuple[Array, None]:
            return self.block(x, each, heads=heads, eps=eps), None

        x = self.embed(tokens, p["token_embedding"], p["position_embedding"])
        if len(several) > _FEW:
            x, _ = jax.lax.scan(one, x, jax.tree.map(lambda *each: jnp.stack(each), *several))
        else:
            for each in several:
                x, _ = one(x, each)
        x = self.layer_norm(x, p["final_norm.gamma"], p["final_norm.beta"], eps=eps)
        return self.linear(x, p["head"])

    def cross_entropy(self, logits: Array, targets: Array, *, ignore_index: int) -> Array:
        """``logits [..., V]``, ``targets [...]`` -> ``loss []``.

        The mean of ``-jax.nn.log_softmax(z)[target]`` over the positions, with logits z, whose
        target is not ``ignore_index``. Targets are checked before.
        """
        scored = targets != ignore_index
        own = jnp.where(scored, targets, 0)[..., None]  # any class: what it gives is not counted
        logarithms = jax.nn.log_softmax(logits, axis=-1)
        picked = jnp.take_along_axis(logarithms, own, axis=-1)[..., 0]
        return -jnp.where(scored, picked, 0.0).sum() / scored.sum()

    def decoder_loss(
        self,
        tokens: Array,
        targets: Array,
        parameters: Mapping[str, Array],
        *,
        heads: int,
        eps: float,
        ignore_index: int,
    ) -> Array:
        """``tokens [B, T]``, ``targets [B, T]``, the parameters of a decoder -> ``loss []``.

        The cross-entropy of the decoder's logits. Raises ``Rejected`` as ``decoder``, then as
        ``cross_entropy``.
        """
        logits = self.decoder(tokens, parameters, heads=heads, eps=eps)
        return self.cross_entropy(logits, targets, ignore_index=ignore_index)
