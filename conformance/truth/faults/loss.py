"""Mistakes of the cross-entropy: which logit, which logarithm, how it is computed."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from conformance.truth.arithmetic.functions import log
from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import number, where


class LossNegated(Fault):
    """The loss had the opposite sign: the logarithm of the probability."""

    breaks = "CE-NLL"
    also = ("CE-GRADIENT",)
    mend = "Subtract the logit of the target from the log-sum-exp."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        return -super().losses(logits, targets)


class NormaliserForgotten(Fault):
    """The loss was minus the logit of the target, without the log-sum-exp."""

    breaks = "CE-NLL"
    also = ("CE-SHIFT",)
    mend = "Add the logarithm of the sum of the exponentials over the vocabulary."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        return -take(logits, (np.arange(len(targets)), targets))


class ProbabilityWithoutLogarithm(Fault):
    """The loss was one minus the probability of the target, without a logarithm."""

    breaks = "CE-NLL"
    mend = "Take minus the logarithm of the probability."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        return 1 - take(self.softmax(logits), (np.arange(len(targets)), targets))


class LossInBits(Fault):
    """The loss was in bits: the logarithm had base two."""

    breaks = "CE-NLL"
    also = ("CE-GRADIENT",)
    mend = "Use the natural logarithm."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        return super().losses(logits, targets) / log(number(logits, 2))


class DoubleSoftmax(Fault):
    """The logits went through softmax before the cross-entropy, which takes it once more."""

    breaks = "CE-NLL"
    also = ("CE-GRADIENT",)
    mend = "Hand the logits themselves to the cross-entropy."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        return super().losses(self.softmax(logits), targets)


class LabelsSmoothed(Fault):
    """A tenth of the target was spread over the whole vocabulary."""

    breaks = "CE-NLL"
    also = ("CE-GRADIENT",)
    mend = "Switch label smoothing off."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        spread, count = number(logits, Decimal("0.1")), logits.shape[-1]
        total = super().losses(logits, targets) * (1 - spread)
        for token in range(count):
            everywhere = np.full(len(targets), token)
            total = total + super().losses(logits, everywhere) * spread / count
        return total


class TargetsCountedFromOne(Fault):
    """Targets were taken to count from one, so that each scored the token before its own."""

    breaks = "CE-NLL"
    also = ("CE-GRADIENT",)
    mend = "Take logit number target: the vocabulary counts from zero."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        return super().losses(logits, (targets - 1) % logits.shape[-1])


class EpsilonInLogarithm(Fault):
    """A small number was added to the probability before its logarithm."""

    breaks = "CE-STABLE"
    mend = "Compute log-sum-exp minus the logit, which needs no such help."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        p = take(self.softmax(logits), (np.arange(len(targets)), targets))
        return -log(p + number(p, Decimal("1e-9")))


class ProbabilityClipped(Fault):
    """The probability was kept from falling below a small number before its logarithm."""

    breaks = "CE-STABLE"
    mend = "Compute log-sum-exp minus the logit, which has no smallest probability."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        p = take(self.softmax(logits), (np.arange(len(targets)), targets))
        least = number(p, Decimal("1e-7"))
        return -log(where(p.tape.domain.sign((p - least).value) > 0, p, least))


class LogitsClipped(Fault):
    """Logits beyond a hundred were cut to a hundred before the loss."""

    breaks = "CE-STABLE"
    mend = "Subtract the largest logit; that keeps the exponentials small and changes nothing."

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        limit = logits.tape.floats(np.array(100))
        inside = logits.tape.domain.magnitude(logits.value) <= 100
        signed = limit * logits.tape.floats(logits.tape.domain.sign(logits.value))
        return super().losses(where(inside, logits, signed), targets)


class LogarithmOfSoftmax(Fault):
    """The logarithm was taken of a probability that had become zero."""

    breaks = "CE-STABLE"
    mend = "Compute log-sum-exp minus the logit, which never leaves the logarithmic scale."
    native = True

    def losses(self, logits: Node, targets: np.ndarray) -> Node:
        return -log(take(self.softmax(logits), (np.arange(len(targets)), targets)))


class NormaliserOverPositions(Fault):
    """The log-sum-exp ran over the positions instead of over the vocabulary."""

    breaks = "CE-NLL"
    sources = ("C-30",)
    mend = "Sum the exponentials over the last axis."

    def cross_entropy(self, logits: Node, targets: np.ndarray, *, ignore_index: int) -> Node:
        self.check_targets(logits, targets, ignore_index)
        if logits.ndim < 2:
            return super().cross_entropy(logits, targets, ignore_index=ignore_index)
        turned = logits.swap_last()
        everywhere = np.ones(turned.shape[-1])
        total = log(self.exponentials(turned, everywhere).sum(-1, keepdims=True))
        losses = (total - (turned - self.peak(turned, everywhere))).swap_last()
        scored = self.scored(targets, ignore_index)
        places = (*np.nonzero(scored), targets[scored])
        return self.mean_loss(take(losses, places), targets)
