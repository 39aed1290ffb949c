"""Mistakes of the embedding: which rows are looked up, and what is added."""

from __future__ import annotations

import numpy as np

from conformance.truth.arithmetic.functions import sqrt
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault

# ------------------------------------------------------------------------------- the token rows


class TokenRowsForgotten(Fault):
    """The position rows came back alone, the same for every token."""

    breaks = "EMB-SUM"
    mend = "Add the row of the token to that of the position."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        y = super().embed(tokens, token_embedding, position_embedding)
        positions = self.positions(tokens.shape[1], position_embedding.shape[0])
        return self.position_rows(position_embedding, positions).broadcast_to(y.shape)


class TokenIdsCountedFromOne(Fault):
    """Token ids were taken to count from one, so that each met the row before its own."""

    breaks = "EMB-SUM"
    mend = "Look up row number id: ids count from zero."

    def token_rows(self, token_embedding: Node, tokens: np.ndarray) -> Node:
        return super().token_rows(token_embedding, (tokens - 1) % token_embedding.shape[0])


class TokenRowsScaled(Fault):
    """The token rows were multiplied by the square root of their width."""

    breaks = "EMB-SUM"
    mend = "Add the row of the table as it is; this decoder does not scale it."

    def token_rows(self, token_embedding: Node, tokens: np.ndarray) -> Node:
        rows = super().token_rows(token_embedding, tokens)
        return rows * sqrt(rows.tape.floats(np.array(rows.shape[-1])))


# ---------------------------------------------------------------------------- the position rows


class PositionsForgotten(Fault):
    """No position row was added."""

    breaks = "EMB-POSITIONS"
    also = ("EMB-SUM",)
    sources = ("C-84",)
    mend = "Add row t of the position table to the token at place t."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        super().embed(tokens, token_embedding, position_embedding)
        return self.token_rows(token_embedding, tokens)


class PositionsConstant(Fault):
    """Every place got the first position row."""

    breaks = "EMB-POSITIONS"
    sources = ("C-84",)
    mend = "Add row t of the position table to the token at place t."

    def positions(self, length: int, context: int) -> np.ndarray:
        return np.zeros(length, dtype=np.int64)


class PositionsFromOne(Fault):
    """Positions were counted from one, so that the first position row was never used."""

    breaks = "EMB-POSITIONS"
    sources = ("C-84",)
    mend = "Count positions from zero: every window starts at position 0."

    def positions(self, length: int, context: int) -> np.ndarray:
        return np.arange(1, length + 1)


class PositionsReversed(Fault):
    """Positions were counted from the end of the sequence."""

    breaks = "EMB-POSITIONS"
    also = ("DEC-PADDING",)
    mend = "Count positions from the start of the sequence."

    def positions(self, length: int, context: int) -> np.ndarray:
        return np.arange(length)[::-1]


class PositionsAtTheEnd(Fault):
    """The last position rows of the table were used instead of the first ones."""

    breaks = "EMB-POSITIONS"
    also = ("DEC-PADDING",)
    mend = "Start at row 0 of the position table, however short the sequence is."

    def positions(self, length: int, context: int) -> np.ndarray:
        return np.arange(context - length, context)


class PositionsOfSequences(Fault):
    """Every place got the position row with the number of its sequence in the batch."""

    breaks = "EMB-POSITIONS"
    mend = "Number the places along the axis of time, the second one of the tokens."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        self.check_tokens(tokens, token_embedding.shape[0], position_embedding.shape[0])
        numbers = np.broadcast_to(np.arange(tokens.shape[0])[:, None], tokens.shape)
        rows = self.position_rows(position_embedding, numbers)
        return self.token_rows(token_embedding, tokens) + rows


class PositionsAcrossSequences(Fault):
    """Positions went on counting from one sequence to the next, and wrapped at the end."""

    breaks = "EMB-POSITIONS"
    mend = "Start every sequence of the batch at position 0."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        self.check_tokens(tokens, token_embedding.shape[0], position_embedding.shape[0])
        numbers = np.arange(tokens.size).reshape(tokens.shape) % position_embedding.shape[0]
        rows = self.position_rows(position_embedding, numbers)
        return self.token_rows(token_embedding, tokens) + rows
