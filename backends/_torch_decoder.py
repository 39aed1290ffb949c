"""PyTorch: the decoder from tokens to loss."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional

from ._parameters import blocks
from ._rejections import check_targets, check_tokens
from ._torch_layers import TorchLayers


class TorchDecoder(TorchLayers):
    """Tables and blocks between the tokens and the loss; parameters are a mapping by name."""

    def embed(self, tokens: Tensor, token_embedding: Tensor, position_embedding: Tensor) -> Tensor:
        """``tokens [B, T]``, tables ``[V, d]`` and ``[C, d]`` -> ``y [B, T, d]``.

        y = token_embedding[tokens] + position_embedding[0..T-1], the first by
        ``torch.nn.functional.embedding``. Raises ``Rejected`` for each kind that ``embed`` rejects.
        """
        check_tokens(tokens, len(token_embedding), len(position_embedding))
        positions = position_embedding[: tokens.shape[1]]
        return functional.embedding(tokens, token_embedding) + positions

    def decoder(
        self, tokens: Tensor, parameters: Mapping[str, Tensor], *, heads: int, eps: float
    ) -> Tensor:
        """``tokens [B, T]`` and the parameters of a decoder by name -> ``logits [B, T, V]``.

        embed, each block in order, the final layer norm, and the head, which has no bias. Raises
        ``Rejected`` as ``embed``, then as ``block``.
        """
        p = parameters
        x = self.embed(tokens, p["token_embedding"], p["position_embedding"])
        for each in blocks(p):
            x = self.block(x, each, heads=heads, eps=eps)
        x = self.layer_norm(x, p["final_norm.gamma"], p["final_norm.beta"], eps=eps)
        return self.linear(x, p["head"])

    def cross_entropy(self, logits: Tensor, targets: Tensor, *, ignore_index: int) -> Tensor:
        """``logits [..., V]``, ``targets [...]`` -> ``loss []``.

        ``torch.nn.functional.cross_entropy``, which takes one axis of positions: the mean over
        those whose target is not ``ignore_index``. Raises ``Rejected`` for each kind that
        ``cross_entropy`` rejects.
        """
        check_targets(targets, logits.shape, ignore_index)
        rows = logits.reshape(-1, logits.shape[-1])
        return functional.cross_entropy(rows, targets.reshape(-1), ignore_index=ignore_index)

    def decoder_loss(
        self,
        tokens: Tensor,
        targets: Tensor,
        parameters: Mapping[str, Tensor],
        *,
        heads: int,
        eps: float,
        ignore_index: int,
    ) -> Tensor:
        """``tokens [B, T]``, ``targets [B, T]``, the parameters of a decoder -> ``loss []``.

        The cross-entropy of the decoder's logits. Raises ``Rejected`` as ``decoder``, then as
        ``cross_entropy``.
        """
        logits = self.decoder(tokens, parameters, heads=heads, eps=eps)
        return self.cross_entropy(logits, targets, ignore_index=ignore_index)
