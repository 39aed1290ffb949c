"""The rules of the embedding, the decoder and its loss (trainable-decoder)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from conformance.errors import Rejected
from conformance.truth.arithmetic.gathering import scatter, take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.reference.loss import LossRules


class DecoderRules(LossRules):
    """From token ids to logits, and to the loss. Parameters are a flat mapping of names."""

    # ----------------------------------------------------------------------------- embedding

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        """E[tokens] + P[0..T-1] for tokens [B, T]; every sequence has the same positions.

        trainable-decoder, "Freeze the Public Interface Before Organizing the Internals". Raises
        Rejected as ``check_tokens`` does.
        """
        self.check_tokens(tokens, token_embedding.shape[0], position_embedding.shape[0])
        positions = self.positions(tokens.shape[1], position_embedding.shape[0])
        return self.token_rows(token_embedding, tokens) + self.position_rows(
            position_embedding, positions
        )

    def check_tokens(self, tokens: np.ndarray | Node, vocabulary: int, context: int) -> None:
        """Rank, dtype, emptiness, length, then the range of the ids."""
        if tokens.ndim != 2:
            raise Rejected("token-rank", f"the tokens have rank {tokens.ndim}, not 2")
        if isinstance(tokens, Node) or tokens.dtype != np.int64:
            raise Rejected("token-dtype", "the tokens are not int64")
        if tokens.shape[1] == 0:
            raise Rejected("no-tokens", "the sequences are empty")
        if tokens.shape[1] > context:
            raise Rejected("too-long", f"{tokens.shape[1]} tokens, at most {context}")
        if tokens.size and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
            raise Rejected("token-range", f"an id outside 0..{vocabulary - 1}")

    def token_rows(self, token_embedding: Node, tokens: np.ndarray) -> Node:
        return self.rows_of(token_embedding, tokens)

    def position_rows(self, position_embedding: Node, positions: np.ndarray) -> Node:
        return self.rows_of(position_embedding, positions)

    def positions(self, length: int, context: int) -> np.ndarray:
        """0..T-1, whatever the ``context``."""
        del context
        return np.arange(length)

    def rows_of(self, table: Node, rows: np.ndarray) -> Node:
        return take(table, rows).with_rule(
            (table,), lambda g: (self.table_gradient(g, rows, table.shape),)
        )

    def table_gradient(self, g: Node, rows: np.ndarray, shape: tuple[int, ...]) -> Node:
        """Each row of the table gets the sum of the gradients of the places that used it."""
        return scatter(g, rows, shape)

    # ------------------------------------------------------------------------------- decoder

    def decoder(
        self, tokens: np.ndarray, parameters: Mapping[str, Node], *, heads: int, eps: Node
    ) -> Node:
        """Logits [B, T, V]: embedding, blocks in order, final norm, head without bias."""
        p = parameters
        x = self.embed(tokens, p["token_embedding"], p["position_embedding"])
        x = self.run_blocks(x, self.blocks(p), heads=heads, eps=eps)
        x = self.final_norm(x, p["final_norm.gamma"], p["final_norm.beta"], eps=eps)
        return self.head(x, p)

    def blocks(self, parameters: Mapping[str, Node]) -> Sequence[Mapping[str, Node]]:
        """The parameters of each block, in order, without the prefix ``blocks.K.``."""
        found: dict[int, dict[str, Node]] = {}
        for name, node in parameters.items():
            if name.startswith("blocks."):
                _, k, inner = name.split(".", 2)
                found.setdefault(int(k), {})[inner] = node
        return [found[k] for k in sorted(found)]

    def run_blocks(
        self, x: Node, blocks: Sequence[Mapping[str, Node]], *, heads: int, eps: Node
    ) -> Node:
        """Each block reads what the one before it gave."""
        for parameters in blocks:
            x = self.block(x, parameters, heads=heads, eps=eps)
        return x

    def final_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        return self.layer_norm(x, gamma, beta, eps=eps)

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        """Not tied to the embedding, and at every position."""
        return self.linear(x, parameters["head"])

    def decoder_loss(
        self,
        tokens: np.ndarray,
        targets: np.ndarray,
        parameters: Mapping[str, Node],
        *,
        heads: int,
        eps: Node,
        ignore_index: int,
    ) -> Node:
        """The cross-entropy of the decoder's logits; the targets never enter a hidden state."""
        logits = self.decoder(tokens, parameters, heads=heads, eps=eps)
        return self.cross_entropy(logits, targets, ignore_index=ignore_index)
