"""NumPy: the decoder from tokens to loss, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ._numpy_attention import NumpyAttention
from ._numpy_layers import Array, Gradients
from ._parameters import blocks
from ._rejections import check_targets, check_tokens

Indices: TypeAlias = npt.NDArray[np.integer[Any]]


class Trunk(NamedTuple):
    """The way through the blocks: the input and the parameters of each, and what the last gave.

    Inputs and ``last`` are ``[B, T, d]``.
    """

    read: list[tuple[Array, dict[str, Array]]]
    last: Array


class Scored(NamedTuple):
    """Of the positions with a target that is not ignored, n of them.

    ``where`` they are, ``[...]``; their targets ``own [n]``; their logits less the largest of the
    row, ``z [n, V]``, so that exp can't overflow; and ``powers [n, V]``, exp(z).
    """

    where: npt.NDArray[np.bool_]
    own: Indices
    z: Array
    powers: Array


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
        trunk = self._once(self._trunk, tokens, parameters, heads=heads, eps=eps)
        normalised = self._once(self._final_norm, trunk.last, parameters, eps=eps)
        return self.linear(normalised, parameters["head"])

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
        trunk = self._once(self._trunk, tokens, parameters, heads=heads, eps=eps)
        normalised = self._once(self._final_norm, trunk.last, parameters, eps=eps)
        gamma, beta = parameters["final_norm.gamma"], parameters["final_norm.beta"]
        head = self.linear_vjp(upstream, normalised, parameters["head"])
        norm = self.layer_norm_vjp(head["x"], trunk.last, gamma, beta, eps=eps)
        gradients = {
            "head": head["weight"],
            "final_norm.gamma": norm["gamma"],
            "final_norm.beta": norm["beta"],
        }
        g = norm["x"]
        for k, (x, each) in reversed([*enumerate(trunk.read)]):
            found = self.block_vjp(g, x, each, heads=heads, eps=eps)
            g = found.pop("x")
            gradients |= {f"blocks.{k}.{name}": item for name, item in found.items()}
        tables = parameters["token_embedding"], parameters["position_embedding"]
        return gradients | self.embed_vjp(g, tokens, *tables)

    def _trunk(
        self, tokens: Indices, parameters: Mapping[str, Array], *, heads: int, eps: float
    ) -> Trunk:
        tables = parameters["token_embedding"], parameters["position_embedding"]
        x, read = self.embed(tokens, *tables), []
        for each in blocks(parameters):
            read.append((x, each))
            x = self.block(x, each, heads=heads, eps=eps)
        return Trunk(read, x)

    def _final_norm(self, x: Array, parameters: Mapping[str, Array], *, eps: float) -> Array:
        gamma, beta = parameters["final_norm.gamma"], parameters["final_norm.beta"]
        return self.layer_norm(x, gamma, beta, eps=eps)

    def cross_entropy(self, logits: Array, targets: Indices, *, ignore_index: int) -> Array:
        """``logits [..., V]``, ``targets [...]`` -> ``loss []``.

        The mean of log sum exp(z) - z[target] over the positions, with logits z, whose target is
        not ``ignore_index``. Raises ``Rejected`` for each kind that ``cross_entropy`` rejects.
        """
        _, own, z, powers = self._once(_scored, logits, targets, ignore_index=ignore_index)
        losses = np.log(powers.sum(axis=-1)) - z[np.arange(len(own)), own]
        return np.asarray(losses.mean())

    def cross_entropy_vjp(
        self, upstream: Array, logits: Array, targets: Indices, *, ignore_index: int
    ) -> Gradients:
        """``upstream []`` -> the gradient of ``logits``; raises as the operation.

        G (softmax(z) - y) / N at each of the N positions that are scored, y being one at the
        target and zero elsewhere; zeros at the others.
        """
        where, own, _, powers = self._once(_scored, logits, targets, ignore_index=ignore_index)
        difference = powers / powers.sum(axis=-1, keepdims=True)
        difference[np.arange(len(own)), own] -= 1.0
        gradient = np.zeros_like(logits)
        gradient[where] = upstream * difference / len(own)
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
        logits = self._once(self.decoder, tokens, parameters, heads=heads, eps=eps)
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
        with self._remembering():
            logits = self._once(self.decoder, tokens, parameters, heads=heads, eps=eps)
            g = self.cross_entropy_vjp(upstream, logits, targets, ignore_index=ignore_index)
            return self.decoder_vjp(g["logits"], tokens, parameters, heads=heads, eps=eps)


def _scored(logits: Array, targets: Indices, *, ignore_index: int) -> Scored:
    """Raises ``Rejected`` for each kind that ``cross_entropy`` rejects."""
    check_targets(targets, logits.shape, ignore_index)
    where = targets != ignore_index
    kept = logits[where]
    z = kept - kept.max(axis=-1, keepdims=True)
    return Scored(where, targets[where], z, np.exp(z))
