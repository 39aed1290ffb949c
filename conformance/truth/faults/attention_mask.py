"""Mistakes in which positions a position attends to."""

from __future__ import annotations

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import gradient_where, number, where


class MaskForgotten(Fault):
    """Every position attended to all positions, the later ones included."""

    breaks = "ATT-CAUSAL"
    also = ("BLOCK-CAUSAL",)
    sources = ("C-28",)
    mend = "Exclude the keys after the query before softmax."

    def allowed(self, length: int) -> np.ndarray:
        return np.ones((length, length))


class MaskOneTooFar(Fault):
    """Every position attended to the next one as well."""

    breaks = "ATT-CAUSAL"
    also = ("BLOCK-CAUSAL",)
    sources = ("C-28", "BUG-ATT-01")
    mend = "Begin the mask on the diagonal above the main one."

    def allowed(self, length: int) -> np.ndarray:
        return np.tril(np.ones((length, length)), 1)


class MaskOneShort(Fault):
    """No position attended to itself, and the first to none at all."""

    breaks = "ATT-CAUSAL"
    sources = ("BUG-ATT-01",)
    mend = "Leave the main diagonal out of the mask: a position sees itself."

    def allowed(self, length: int) -> np.ndarray:
        return np.tril(np.ones((length, length)), -1)

    def attention_weights(self, scores: Node) -> Node:
        seen = self.allowed(scores.shape[-1]) == 1
        return super().attention_weights(gradient_where(seen, scores))


class MaskInverted(Fault):
    """Every position attended to the later ones alone, and the last to none at all."""

    breaks = "ATT-CAUSAL"
    also = ("BLOCK-CAUSAL",)
    sources = ("BUG-ATT-02",)
    mend = "Look up whether true means keep or drop."

    def allowed(self, length: int) -> np.ndarray:
        return np.triu(np.ones((length, length)), 1)

    def attention_weights(self, scores: Node) -> Node:
        seen = self.allowed(scores.shape[-1]) == 1
        return super().attention_weights(gradient_where(seen, scores))


class MaskTransposed(Fault):
    """Every position attended to itself and to the later ones."""

    breaks = "ATT-CAUSAL"
    also = ("BLOCK-CAUSAL",)
    sources = ("BUG-ATT-02",)
    mend = "Queries are the rows, keys the columns: a row has ones up to its diagonal."

    def allowed(self, length: int) -> np.ndarray:
        return np.triu(np.ones((length, length)))


class MaskAfterSoftmax(Fault):
    """Later positions were dropped after softmax: the weights no longer summed to one."""

    breaks = "ATT-CAUSAL"
    also = ("BLOCK-CAUSAL",)
    sources = ("C-28",)
    mend = "Exclude the later positions before softmax."

    def attention_weights(self, scores: Node) -> Node:
        length = scores.shape[-1]
        weights = self.probabilities(scores, np.ones((length, length)))
        return weights * scores.tape.floats(self.allowed(length))


class MaskedScoresZero(Fault):
    """The scores of later positions were set to zero, which is no low score."""

    breaks = "ATT-CAUSAL"
    mend = "Set them to minus infinity."

    def attention_weights(self, scores: Node) -> Node:
        length = scores.shape[-1]
        masked = scores * scores.tape.floats(self.allowed(length))
        return self.probabilities(masked, np.ones((length, length)))


class MaskedScoresFinite(Fault):
    """The scores of later positions were set to a constant such as -10000; a score may be lower."""

    breaks = "ATT-CAUSAL"
    sources = ("BUG-ATT-05",)
    mend = "Set them to minus infinity."

    def attention_weights(self, scores: Node) -> Node:
        length = scores.shape[-1]
        masked = where(self.allowed(length) == 1, scores, number(scores, -10000))
        return self.probabilities(masked, np.ones((length, length)))


class MaskAddedFinite(Fault):
    """The scores of later positions were lowered by 10000, and may still be the largest."""

    breaks = "ATT-CAUSAL"
    sources = ("BUG-ATT-05",)
    mend = "Replace them by minus infinity."

    def attention_weights(self, scores: Node) -> Node:
        length = scores.shape[-1]
        penalty = scores.tape.floats(10000 * (self.allowed(length) - 1))
        return self.probabilities(scores + penalty, np.ones((length, length)))


class MaximumOfMaskedScores(Fault):
    """The maximum that was subtracted was that of all scores, the later positions' included."""

    breaks = "SOFTMAX-STABLE"
    mend = "Mask first, then take the maximum of what is left."
    native = True

    def peak(self, scores: Node, allowed: np.ndarray) -> Node:
        return super().peak(scores, np.ones(scores.shape[-1]))


class SequencesJoined(Fault):
    """The sequences of a batch were joined to one: each saw those before it."""

    breaks = "ATT-BATCH"
    also = ("BLOCK-BATCH",)
    mend = "Keep the batch an axis of its own, or mask what belongs to another sequence."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        self.check_attention(x, heads)
        joined = x.rows().reshape((1, x.shape[0] * x.shape[1], x.shape[2]))
        y = super().causal_attention(joined, w_q, w_k, w_v, w_o, heads=heads)
        return y.reshape(x.shape)
