"""Mistakes in which targets are scored, and in what their losses are divided by."""

from __future__ import annotations

import numpy as np

from conformance.truth.arithmetic.functions import log
from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault

#: A target that none is: nothing is left out.
_NONE = int(np.iinfo(np.int64).min)

# ------------------------------------------------------------------------------------ the mean


class LossSummed(Fault):
    """The losses were summed, and not divided."""

    breaks = "CE-MEAN"
    sources = ("C-44",)
    mend = "Divide the sum by the number of scored targets."

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        return losses.sum(0)


class LossOverAllPositions(Fault):
    """The sum was divided by the number of all positions, those that are left out included."""

    breaks = "CE-MEAN"
    also = ("CE-IGNORE", "DEC-PADDING")
    sources = ("C-44", "BUG-CE-01")
    mend = "Divide the sum by the number of scored targets."

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        return losses.sum(0) / int(targets.size)


class LossOverBatch(Fault):
    """The sum was divided by the number of sequences."""

    breaks = "CE-MEAN"
    sources = ("C-44",)
    mend = "Divide the sum by the number of scored targets."

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        return losses.sum(0) / int(targets.shape[0])


class LossOverVocabulary(Fault):
    """The mean was divided by the size of the vocabulary once more."""

    breaks = "CE-MEAN"
    sources = ("C-43",)
    mend = "Divide the sum by the number of scored targets, and by nothing else."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        loss = super().cross_entropy(logits, targets, ignore_index=ignore_index)
        return loss / logits.shape[-1]


class MeanOfMeans(Fault):
    """Each sequence got a mean of its own, and the loss was the mean of these."""

    breaks = "CE-MEAN"
    sources = ("C-44",)
    mend = "Divide the sum over all sequences by the number of all scored targets."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        scored = self.scored(targets, ignore_index)
        losses = self.losses(take(logits, np.nonzero(scored)), targets[scored])
        counts = scored.reshape((-1, scored.shape[-1])).sum(-1)
        counts = counts[counts > 0]
        shares = losses / losses.tape.floats(np.repeat(counts, counts))
        return shares.sum(0) / len(counts)


class LossUnreduced(Fault):
    """One loss came for each position instead of their mean."""

    breaks = "CE-MEAN"
    mend = "Return the mean, of rank 0."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        scored = self.scored(targets, ignore_index)
        kept = scored.astype(np.float64).reshape(-1)
        losses = self.losses(logits.rows(), np.where(scored, targets, 0).reshape(-1))
        return (losses * losses.tape.floats(kept)).reshape(targets.shape)


# --------------------------------------------------------------------------- what is left out


class IgnoredScoredAsFirst(Fault):
    """Targets that are to be left out were scored as token 0."""

    breaks = "CE-IGNORE"
    sources = ("C-45",)
    mend = "Leave out the targets that are ignore_index."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        taken = np.where(targets == ignore_index, 0, targets)
        return super().cross_entropy(logits, taken, ignore_index=_NONE)


class IgnoredScoredFromTheEnd(Fault):
    """Targets that are to be left out were scored as a token counted from the end."""

    breaks = "CE-IGNORE"
    sources = ("C-45",)
    mend = "Leave out the targets that are ignore_index; indexing takes it for another token."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        taken = np.where(targets == ignore_index, targets % logits.shape[-1], targets)
        return super().cross_entropy(logits, taken, ignore_index=_NONE)


class IgnoredScoredAsNone(Fault):
    """Targets that are to be left out were scored with the log-sum-exp alone."""

    breaks = "CE-IGNORE"
    sources = ("C-45",)
    mend = "Leave out the targets that are ignore_index, their log-sum-exp included."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        scored, everywhere = self.scored(targets, ignore_index), np.ones(logits.shape[-1])
        peak = take(self.peak(logits, everywhere), (..., 0))
        total = log(self.exponentials(logits, everywhere).sum(-1)) + peak
        own = take(logits, (*np.nonzero(scored), targets[scored]))
        return (total.reshape((-1,)).sum(0) - own.sum(0)) / targets.size


class IgnoreIndexWiredIn(Fault):
    """The targets -100 were left out, whatever was asked for."""

    breaks = "CE-IGNORE"
    mend = "Leave out the targets that are ignore_index, an argument."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        return super().cross_entropy(logits, targets, ignore_index=-100)


class FirstTokenLeftOut(Fault):
    """Targets that are token 0, taken for padding, were left out as well."""

    breaks = "CE-IGNORE"
    mend = "Leave out the targets that are ignore_index, and no others."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        fewer = np.where(targets == 0, ignore_index, targets)
        return super().cross_entropy(logits, fewer, ignore_index=ignore_index)


# ------------------------------------------------------------------------------ what is aligned


class TargetsShiftedInside(Fault):
    """Logits were scored against the target of the position after their own."""

    breaks = "LOSS-ALIGNED"
    sources = ("C-40", "BUG-CE-05")
    mend = "Score the logits at t against the target at t: the targets come shifted already."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        if targets.ndim == 0:
            return super().cross_entropy(logits, targets, ignore_index=ignore_index)
        earlier = take(logits, (..., slice(None, -1), slice(None)))
        return super().cross_entropy(earlier, targets[..., 1:], ignore_index=ignore_index)


class TargetsRolled(Fault):
    """Targets were rolled one position to the left, the first one to the end."""

    breaks = "LOSS-ALIGNED"
    sources = ("C-40",)
    mend = "Score the logits at t against the target at t: the targets come shifted already."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        rolled = np.roll(targets, -1, axis=-1) if targets.ndim else targets
        return super().cross_entropy(logits, rolled, ignore_index=ignore_index)
