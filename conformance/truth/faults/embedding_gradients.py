"""Mistakes in the gradients of the two tables of the embedding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.truth.arithmetic.gathering import scatter, take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault


class TokenGradientOverwritten(Fault):
    """Where a token occurs more than once, its row kept the gradient of the last place alone."""

    breaks = "EMB-GRADIENT"
    sources = ("C-85", "BUG-EMB-01")
    mend = "Add the gradients of all places up; assignment by index keeps one of them."

    def table_gradient(self, g: Node, rows: np.ndarray, shape: tuple[int, ...]) -> Node:
        flat = rows.reshape(-1)
        used, from_the_end = np.unique(flat[::-1], return_index=True)
        return scatter(take(g.rows(), flat.size - 1 - from_the_end), used, shape)


class TokenGradientAveraged(Fault):
    """The gradient of a row was the average over the places that used it."""

    breaks = "EMB-GRADIENT"
    mend = "Add the gradients of all places up; don't scale them by how often a token occurs."

    def table_gradient(self, g: Node, rows: np.ndarray, shape: tuple[int, ...]) -> Node:
        counts = np.bincount(rows.reshape(-1), minlength=shape[0])
        divisor = g.tape.floats(np.maximum(counts, 1)[:, None])
        return super().table_gradient(g, rows, shape) / divisor


class FirstRowFrozen(Fault):
    """Row 0 of the table, taken for padding, received no gradient."""

    breaks = "EMB-GRADIENT"
    sources = ("C-86",)
    mend = "Build the table without a padding index: token 0 is a token like any other."

    def token_rows(self, token_embedding: Node, tokens: np.ndarray) -> Node:
        rows = super().token_rows(token_embedding, tokens)
        kept = rows.tape.floats((tokens != 0).astype(np.float64)[..., None])
        return rows.with_rule(
            (token_embedding,),
            lambda g: (self.table_gradient(g * kept, tokens, token_embedding.shape),),
        )


class TokenTableDetached(Fault):
    """The token table was taken as a constant, and no gradient came for it."""

    breaks = "EMB-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Look the rows up inside the graph."

    def token_rows(self, token_embedding: Node, tokens: np.ndarray) -> Node:
        return super().token_rows(token_embedding.detach(), tokens)


class PositionTableDetached(Fault):
    """The position table was taken as a constant, and no gradient came for it."""

    breaks = "EMB-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Register the position table as a parameter: the positions are learned."

    def position_rows(self, position_embedding: Node, positions: np.ndarray) -> Node:
        return super().position_rows(position_embedding.detach(), positions)


class PositionGradientOfFirstSequence(Fault):
    """The gradient of the position table came from the first sequence of the batch alone."""

    breaks = "EMB-GRADIENT"
    mend = "Add the gradients of all sequences up: they share the position rows."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        y = super().embed(tokens, token_embedding, position_embedding.detach())
        return _position_gradient(y, lambda g: take(g, slice(1)), position_embedding)


class PositionGradientAveraged(Fault):
    """The gradient of the position table was averaged over the batch."""

    breaks = "EMB-GRADIENT"
    mend = "Add the gradients of all sequences up; a mean belongs to the loss."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        y = super().embed(tokens, token_embedding, position_embedding.detach())
        return _position_gradient(y, lambda g: g / g.shape[0], position_embedding)


class PositionGradientCut(Fault):
    """The gradient of the position table had rows for the positions in use alone."""

    breaks = "EMB-GRADIENT"
    mend = "Give the gradient the shape of the table, with zeros in the rows that are not used."

    def position_rows(self, position_embedding: Node, positions: np.ndarray) -> Node:
        rows = super().position_rows(position_embedding, positions)
        return rows.with_rule((position_embedding,), lambda g: (g,))


def _position_gradient(y: Node, share: Callable[[Node], Node], table: Node) -> Node:
    """``y``, computed with a constant position table, with the gradient of ``share`` for it."""

    def rule(g: Node) -> tuple[Node, Node]:
        return g, scatter(share(g).sum(0), np.arange(y.shape[1]), table.shape)

    return y.with_rule((y, table), rule)
