"""Mistakes of the embedding about token ids: what it accepts and must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import where


class TokenRankAccepted(Fault):
    """Tokens of a rank other than two were embedded all the same."""

    breaks = "EMB-ERR-RANK"
    mend = "Refuse tokens that are not [B, T]."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        if tokens.ndim in {0, 2}:
            return super().embed(tokens, token_embedding, position_embedding)
        flat = tokens.reshape((-1, tokens.shape[-1]))
        y = super().embed(flat, token_embedding, position_embedding)
        return y.reshape((*tokens.shape, y.shape[-1]))


class NarrowTokensAccepted(Fault):
    """Tokens of another integer type were accepted."""

    breaks = "EMB-ERR-DTYPE"
    mend = "Refuse tokens that are not int64."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        whole = not isinstance(tokens, Node) and tokens.dtype.kind == "i"
        ids = tokens.astype(np.int64) if whole else tokens
        return super().embed(ids, token_embedding, position_embedding)


class RealTokensAccepted(Fault):
    """Tokens that are no whole numbers by type were cut to whole numbers."""

    breaks = "EMB-ERR-DTYPE"
    sources = ("BUG-EMB-02",)
    mend = "Refuse tokens that are not int64."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        ids = whole_numbers(tokens) if isinstance(tokens, Node) else tokens
        return super().embed(ids, token_embedding, position_embedding)


class EmptySequencesAccepted(Fault):
    """Sequences without tokens were accepted."""

    breaks = "EMB-ERR-EMPTY"
    mend = "Refuse sequences without tokens."

    def check_tokens(self, tokens: np.ndarray | Node, vocabulary: int, context: int) -> None:
        if tokens.ndim != 2 or tokens.shape[1] > 0:
            super().check_tokens(tokens, vocabulary, context)


# -------------------------------------------------------------------------- too many for the table


class PositionsWrapped(Fault):
    """Beyond the end of the position table, positions began again at its start."""

    breaks = "EMB-ERR-LENGTH"
    sources = ("C-42", "BUG-EMB-04")
    mend = "Refuse sequences that are longer than the position table."

    def check_tokens(self, tokens: np.ndarray | Node, vocabulary: int, context: int) -> None:
        super().check_tokens(tokens, vocabulary, max(context, tokens.shape[-1]))

    def positions(self, length: int, context: int) -> np.ndarray:
        return np.arange(length) % context


class PositionsClamped(Fault):
    """Beyond the end of the position table, its last row was used again and again."""

    breaks = "EMB-ERR-LENGTH"
    sources = ("BUG-EMB-04",)
    mend = "Refuse sequences that are longer than the position table."

    def check_tokens(self, tokens: np.ndarray | Node, vocabulary: int, context: int) -> None:
        super().check_tokens(tokens, vocabulary, max(context, tokens.shape[-1]))

    def positions(self, length: int, context: int) -> np.ndarray:
        return np.minimum(np.arange(length), context - 1)


class FirstTokensKept(Fault):
    """Of a sequence longer than the position table only the first tokens were read."""

    breaks = "EMB-ERR-LENGTH"
    mend = "Refuse sequences that are longer than the position table; cut none."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        kept = tokens[:, : position_embedding.shape[0]] if _is_ids(tokens) else tokens
        return super().embed(kept, token_embedding, position_embedding)


class LastTokensKept(Fault):
    """Of a sequence longer than the position table only the last tokens were read."""

    breaks = "EMB-ERR-LENGTH"
    mend = "Refuse sequences that are longer than the position table; cut none."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        kept = tokens[:, -position_embedding.shape[0] :] if _is_ids(tokens) else tokens
        return super().embed(kept, token_embedding, position_embedding)


# ------------------------------------------------------------------------- beyond the vocabulary


class NegativeIdsWrapped(Fault):
    """Negative token ids were counted from the end of the table."""

    breaks = "EMB-ERR-RANGE"
    sources = ("BUG-EMB-02",)
    mend = "Refuse negative ids; indexing alone takes them for rows from the end."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        size = token_embedding.shape[0]
        ids = tokens
        if _is_ids(tokens):
            ids = np.where((tokens < 0) & (tokens >= -size), tokens + size, tokens)
        return super().embed(ids, token_embedding, position_embedding)


class IdsWrapped(Fault):
    """Token ids were taken modulo the size of the vocabulary."""

    breaks = "EMB-ERR-RANGE"
    mend = "Refuse ids outside the vocabulary."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        ids = tokens % token_embedding.shape[0] if _is_ids(tokens) else tokens
        return super().embed(ids, token_embedding, position_embedding)


class IdsClamped(Fault):
    """Token ids outside the vocabulary were taken for the nearest one inside."""

    breaks = "EMB-ERR-RANGE"
    sources = ("BUG-EMB-02",)
    mend = "Refuse ids outside the vocabulary; indexing in some libraries clamps them."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        ids = np.clip(tokens, 0, token_embedding.shape[0] - 1) if _is_ids(tokens) else tokens
        return super().embed(ids, token_embedding, position_embedding)


class UnknownIdsZero(Fault):
    """Token ids outside the vocabulary got a row of zeros."""

    breaks = "EMB-ERR-RANGE"
    sources = ("BUG-EMB-02",)
    mend = "Refuse ids outside the vocabulary; a one-hot product gives zeros for them."

    def check_tokens(self, tokens: np.ndarray | Node, vocabulary: int, context: int) -> None:
        if _is_ids(tokens):
            tokens = np.clip(tokens, 0, vocabulary - 1)
        super().check_tokens(tokens, vocabulary, context)

    def token_rows(self, token_embedding: Node, tokens: np.ndarray) -> Node:
        return _known_rows(super().token_rows, token_embedding, tokens, 0.0)


class UnknownIdsNan(Fault):
    """Token ids outside the vocabulary got a row of NaN."""

    breaks = "EMB-ERR-RANGE"
    sources = ("BUG-EMB-02",)
    mend = "Refuse ids outside the vocabulary; jax.numpy.take fills them with NaN."

    def check_tokens(self, tokens: np.ndarray | Node, vocabulary: int, context: int) -> None:
        if _is_ids(tokens):
            tokens = np.clip(tokens, 0, vocabulary - 1)
        super().check_tokens(tokens, vocabulary, context)

    def token_rows(self, token_embedding: Node, tokens: np.ndarray) -> Node:
        return _known_rows(super().token_rows, token_embedding, tokens, np.nan)


def _known_rows(
    look_up: Callable[[Node, np.ndarray], Node], table: Node, ids: np.ndarray, filling: float
) -> Node:
    """The rows of ``ids``, and rows of ``filling`` for ids that the table has no row for."""
    known = (ids >= 0) & (ids < table.shape[0])
    rows = look_up(table, np.where(known, ids, 0))
    return where(known[..., None], rows, rows.tape.floats(np.array(filling)))


def whole_numbers(node: Node) -> np.ndarray:
    """Real numbers as int64, cut towards zero."""
    domain = node.tape.domain
    return np.asarray(domain.sign(node.value) * np.floor(domain.magnitude(node.value)), np.int64)


def _is_ids(tokens: np.ndarray | Node) -> TypeGuard[np.ndarray]:
    return isinstance(tokens, np.ndarray) and tokens.dtype == np.int64 and tokens.ndim == 2
