"""Mistakes of the cross-entropy about targets: what it accepts and must refuse."""

from __future__ import annotations

import math

import numpy as np

from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults.embedding_ids import whole_numbers
from conformance.truth.reference import Reference


class TargetShapeAccepted(Fault):
    """Targets of another shape were flattened, and scored in that order."""

    breaks = "CE-ERR-SHAPE"
    mend = "Refuse targets that have not the shape of the positions."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        if math.prod(targets.shape) == math.prod(logits.shape[:-1]):
            logits, targets = logits.rows(), targets.reshape((-1,))
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class NarrowTargetsAccepted(Fault):
    """Targets of another integer type were accepted."""

    breaks = "CE-ERR-DTYPE"
    mend = "Refuse targets that are not int64."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        if not isinstance(targets, Node) and targets.dtype.kind == "i":
            targets = targets.astype(np.int64)
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class RealTargetsAccepted(Fault):
    """Targets that are no whole numbers by type were cut to whole numbers."""

    breaks = "CE-ERR-DTYPE"
    mend = "Refuse targets that are not int64."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        if isinstance(targets, Node):
            targets = whole_numbers(targets)
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class _NothingScoredReturns(Reference):
    """A number is returned where nothing is scored; it has no gradient."""

    instead: float

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        if _nothing_scored(targets, ignore_index):
            return self.nothing(logits)
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)

    def nothing(self, logits: Node) -> Node:
        """The loss of no target."""
        return logits.tape.floats(np.array(self.instead))


class _ZeroReturned(_NothingScoredReturns):
    instead = 0.0


class NothingScoredIsZero(_NothingScoredReturns, Fault):
    """A loss without any scored target was zero."""

    breaks = "CE-ERR-NONE"
    sources = ("BUG-CE-02",)
    mend = "Refuse targets that are all ignore_index."
    other_ways = (_ZeroReturned,)

    def nothing(self, logits: Node) -> Node:
        """The sum over no rows, divided by one at least: every logit has the gradient zero."""
        return _sum_over_no_rows(logits)


class _NanReturned(_NothingScoredReturns):
    instead = math.nan


class _MaskedThenDivided(_NothingScoredReturns):
    def nothing(self, logits: Node) -> Node:
        """Every row times zero, and then divided by it: no logit has a number for a gradient."""
        return logits.reshape((-1,)).sum(0) * logits.tape.floats(np.array(math.nan))


class NothingScoredIsNan(_NothingScoredReturns, Fault):
    """A loss without any scored target was zero divided by zero."""

    breaks = "CE-ERR-NONE"
    sources = ("BUG-CE-02",)
    mend = "Refuse targets that are all ignore_index."
    other_ways = (_MaskedThenDivided, _NanReturned)

    def nothing(self, logits: Node) -> Node:
        """The mean over no rows: what is not scored has the gradient zero, as in a library."""
        return _sum_over_no_rows(logits) * logits.tape.floats(np.array(math.nan))


class UnknownTargetsLeftOut(Fault):
    """Targets outside the vocabulary were left out of the loss."""

    breaks = "CE-ERR-RANGE"
    mend = "Refuse a target outside the vocabulary, unless it is ignore_index."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        if not isinstance(targets, Node):
            known = (targets >= 0) & (targets < logits.shape[-1])
            targets = np.where(known, targets, np.array(ignore_index, targets.dtype))
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class NegativeTargetsWrapped(Fault):
    """Negative targets were counted from the end of the vocabulary."""

    breaks = "CE-ERR-RANGE"
    sources = ("BUG-CE-04",)
    mend = "Refuse a negative target that is not ignore_index."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        if not isinstance(targets, Node):
            size = logits.shape[-1]
            negative = (targets < 0) & (targets >= -size) & (targets != ignore_index)
            targets = np.where(negative, targets + size, targets)
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class TargetsClamped(Fault):
    """Targets outside the vocabulary were taken for the nearest token inside."""

    breaks = "CE-ERR-RANGE"
    mend = "Refuse a target outside the vocabulary, unless it is ignore_index."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        if not isinstance(targets, Node):
            inside = np.clip(targets, 0, logits.shape[-1] - 1)
            targets = np.where(targets == ignore_index, targets, inside)
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class UnknownTargetsScoreNothing(Fault):
    """Targets outside the vocabulary added nothing to the sum, and were counted all the same."""

    breaks = "CE-ERR-RANGE"
    sources = ("BUG-CE-04",)
    mend = "Refuse a target outside the vocabulary, unless it is ignore_index."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        if isinstance(targets, Node) or targets.shape != logits.shape[:-1]:
            return super().cross_entropy(logits, targets, ignore_index=ignore_index)
        scored = targets != ignore_index
        known = (targets >= 0) & (targets < logits.shape[-1]) & scored
        fewer = np.where(known, targets, np.array(ignore_index, targets.dtype))
        loss = super().cross_entropy(logits, fewer, ignore_index=ignore_index)
        return loss * int(known.sum()) / int(scored.sum())


def _nothing_scored(targets: np.ndarray | Node, ignore_index: int) -> bool:
    return (
        isinstance(targets, np.ndarray)
        and targets.dtype == np.int64
        and bool(np.all(targets == ignore_index))
    )


def _sum_over_no_rows(logits: Node) -> Node:
    """Zero, with the gradient of the logits that were left out: zeros."""
    return take(logits, (np.zeros(logits.shape, dtype=bool),)).sum(0)
