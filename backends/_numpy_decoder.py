"""NumPy: the decoder from tokens to loss, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ._numpy_attention import NumpyAttention
from ._numpy_layers import Array, Gradients
from ._parameters import FEED_FORWARD, blocks, chosen
from ._rejections import check_targets, check_tokens

Indices: TypeAlias = npt.NDArray[np.integer[Any]]


class Trunk(NamedTuple):
    """What was read on the way forward, ``[B, T, d]`` each.

    ``read``: for each block its input, what lies between its sublayers, and its parameters;
    ``last``: what the last block gave.
    """

    read: list[tuple[Array, Array, dict[str, Array]]]
    last: Array


class NumpyDecoder(NumpyAttention):
    """Tables and blocks between the tokens and the loss; parameters are a dict by name."""

    def embed(self, tokens: Indices, token_embedding: Array, position_embedding: Array) -> Array:
        """``tokens [B, T]``, tables ``[V, d]`` and ``[C, d]`` -> ``y [B, T, d]``.

        y = token_embedding[tokens] + position_embedding[0..T-1]. Raises ``Rejected`` for each
        kind that ``embed`` rejects.
        """
        check_tokens(tokens, len(token_embedding), len(position_embedding))
        return token_embedding[tokens] + position_embedding[: tokens.shape[1]]

    def embed_vjp(
        self, upstream: Array, tokens: Indices, token_embedding: Array, position_embedding: Array
    ) -> Gradients:
        """``upstream [B, T, d]`` -> the gradients of both tables; raises as the operation.

        A row gets the sum over the places that used it, zeros where there are none.
        """
        check_tokens(tokens, len(token_embedding), len(position_embedding))
        of_tokens = np.zeros_like(token_embedding)
        np.add.at(of_tokens, tokens, upstream)  # of_tokens[tokens] += would keep one of a repeated
        of_positions = np.zeros_like(position_embedding)
        of_positions[: tokens.shape[1]] = upstream.sum(axis=0)
        return {"token_embedding": of_tokens, "position_embedding": of_positions}

    def decoder(
        self, tokens: Indices, parameters: Mapping[str, Array], *, heads: int, eps: float
    ) -> Array:
        """``tokens [B, T]`` and the parameters of a decoder by name -> ``logits [B, T, V]``.

        embed, each block in order, the final layer norm, and the head, which has no bias. Raises
        ``Rejected`` as ``embed``, then as ``block``.
        """
        x = self._embedded(tokens, parameters)
        for each in blocks(parameters):
            x = self.block(x, each, heads=heads, eps=eps)
        return self._logits(x, parameters, eps=eps)

    def decoder_vjp(
        self,
        upstream: Array,
        tokens: Indices,
        parameters: Mapping[str, Array],
        *,
        heads: int,
        eps: float,
    ) -> Gradients:
        """``upstream [B, T, V]`` -> the gradient of each parameter; raises as the operation."""
        trunk = self._trunk(tokens, parameters, heads=heads, eps=eps)
        return self._gradients(upstream, trunk, tokens, parameters, heads=heads, eps=eps)

    def _embedded(self, tokens: Indices, parameters: Mapping[str, Array]) -> Array:
        tables = parameters["token_embedding"], parameters["position_embedding"]
        return self.embed(tokens, *tables)

    def _trunk(
        self, tokens: Indices, parameters: Mapping[str, Array], *, heads: int, eps: float
    ) -> Trunk:
        """What every sublayer reads, kept for the way back, so that nothing is done twice."""
        x, read = self._embedded(tokens, parameters), []
        for each in blocks(parameters):
            u = self._between(x, each, heads=heads, eps=eps)
            read.append((x, u, each))
            x = self.feed_forward_sublayer(u, **chosen(each, FEED_FORWARD), eps=eps)
        return Trunk(read, x)

    def _gradients(
        self,
        upstream: Array,
        trunk: Trunk,
        tokens: Indices,
        parameters: Mapping[str, Array],
        *,
        heads: int,
        eps: float,
    ) -> Gradients:
        """``upstream [B, T, V]``, what ``_trunk`` gives -> the gradient of each parameter."""
        gamma, beta = parameters["final_norm.gamma"], parameters["final_norm.beta"]
        normalised = self.layer_norm(trunk.last, gamma, beta, eps=eps)
        head = self.linear_vjp(upstream, normalised, parameters["head"])
        norm = self.layer_norm_vjp(head["x"], trunk.last, gamma, beta, eps=eps)
        gradients = {
            "head": head["weight"],
            "final_norm.gamma": norm["gamma"],
            "final_norm.beta": norm["beta"],
        }
        g = norm["x"]
        for k, (x, u, each) in reversed([*enumerate(trunk.read)]):
            found = self._block_vjp(g, x, u, each, heads=heads, eps=eps)
            g = found.pop("x")
            gradients |= {f"blocks.{k}.{name}": item for name, item in found.items()}
        tables = parameters["token_embedding"], parameters["position_embedding"]
        return gradients | self.embed_vjp(g, tokens, *tables)

    def cross_entropy(self, logits: Array, targets: Indices, *, ignore_index: int) -> Array:
        """``logits [..., V]``, ``targets [...]`` -> ``loss []``.

        The mean of log sum exp(z) - z[target] over the positions, with logits z, whose target is
        not ``ignore_index``. Raises ``Rejected`` for each kind that ``cross_entropy`` rejects.
        """
        check_targets(targets, logits.shape, ignore_index)
        scored = targets != ignore_index
        z, own = _shifted(logits[scored]), targets[scored]
        losses = np.log(np.exp(z).sum(axis=-1)) - z[np.arange(len(own)), own]
        return np.asarray(losses.mean())

    def cross_entropy_vjp(
        self, upstream: Array, logits: Array, targets: Indices, *, ignore_index: int
    ) -> Gradients:
        """``upstream []`` -> the gradient of ``logits``; raises as the operation.

        G (softmax(z) - y) / N at each of the N positions that are scored, y being one at the
        target and zero elsewhere; zeros at the others.
        """
        check_targets(targets, logits.shape, ignore_index)
        scored = targets != ignore_index
        powers, own = np.exp(_shifted(logits[scored])), targets[scored]
        difference = powers / powers.sum(axis=-1, keepdims=True)
        difference[np.arange(len(own)), own] -= 1.0
        gradient = np.zeros_like(logits)
        gradient[scored] = upstream * difference / len(own)
        return {"logits": gradient}

    def decoder_loss(
        self,
        tokens: Indices,
        targets: Indices,
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

    def decoder_loss_vjp(
        self,
        upstream: Array,
        tokens: Indices,
        targets: Indices,
        parameters: Mapping[str, Array],
        *,
        heads: int,
        eps: float,
        ignore_index: int,
    ) -> Gradients:
        """``upstream []`` -> the gradient of each parameter; raises as the operation."""
        settings: dict[str, Any] = {"heads": heads, "eps": eps, "ignore_index": ignore_index}
        return self._loss_and_gradients(upstream, tokens, targets, parameters, **settings)[1]

    def _loss_and_gradients(
        self,
        upstream: Array,
        tokens: Indices,
        targets: Indices,
        parameters: Mapping[str, Array],
        *,
        heads: int,
        eps: float,
        ignore_index: int,
    ) -> tuple[Array, Gradients]:
        """``decoder_loss`` and ``decoder_loss_vjp``, with one way forward for both."""
        trunk = self._trunk(tokens, parameters, heads=heads, eps=eps)
        logits = self._logits(trunk.last, parameters, eps=eps)
        loss = self.cross_entropy(logits, targets, ignore_index=ignore_index)
        g = self.cross_entropy_vjp(upstream, logits, targets, ignore_index=ignore_index)["logits"]
        return loss, self._gradients(g, trunk, tokens, parameters, heads=heads, eps=eps)

    def _logits(self, hidden: Array, parameters: Mapping[str, Array], *, eps: float) -> Array:
        """``[B, T, d]``, what the last block gave -> ``[B, T, V]``."""
        gamma, beta = parameters["final_norm.gamma"], parameters["final_norm.beta"]
        return self.linear(self.layer_norm(hidden, gamma, beta, eps=eps), parameters["head"])


def _shifted(logits: Array) -> Array:
    """``[n, V]``: the logits minus the largest of their row, so that exp can't overflow."""
    shifted: Array = logits - logits.max(axis=-1, keepdims=True)
    return shifted
