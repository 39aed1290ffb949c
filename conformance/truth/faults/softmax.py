"""Mistakes of softmax, alone and over the scores of attention."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from conformance.truth.arithmetic.functions import exp, log
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import gradient_where, number

#: More digits than any bound can see.
_LN_2 = Decimal("0.693147180559945309417232121458176568")

# --------------------------------------------------------------------------------------- the axis


class SoftmaxOverEverything(Fault):
    """Softmax was taken over all elements together instead of over the last axis."""

    breaks = "SOFTMAX-LAST-AXIS"
    sources = ("BUG-SM-03",)
    mend = "Name the axis: the maximum and the sum belong to the last one alone."

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        permitted = np.broadcast_to(allowed, scores.shape).reshape(-1)
        return super().probabilities(scores.reshape((-1,)), permitted).reshape(scores.shape)


class SoftmaxOverFirstAxis(Fault):
    """Softmax was taken over the first axis instead of over the last."""

    breaks = "SOFTMAX-LAST-AXIS"
    mend = "Name the axis: a library that is left to choose takes the first one."

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        axes = (*range(1, scores.ndim), 0)
        back = (scores.ndim - 1, *range(scores.ndim - 1))
        permitted = np.broadcast_to(allowed, scores.shape)
        kept = gradient_where(permitted == 1, scores)
        turned = super().probabilities(kept.transpose(axes), permitted.transpose(axes))
        return turned.transpose(back)


class SoftmaxOverPositions(Fault):
    """Softmax was taken over the last axis but one, wherever there are two."""

    breaks = "SOFTMAX-LAST-AXIS"
    also = ("ATT-OVER-KEYS",)
    mend = "Take the maximum and the sum over the last axis."

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        if scores.ndim < 2:
            return super().probabilities(scores, allowed)
        permitted = np.swapaxes(np.broadcast_to(allowed, scores.shape), -1, -2)
        return super().probabilities(scores.swap_last(), permitted).swap_last()


# ------------------------------------------------------------------------------------ the formula


class SumForgotten(Fault):
    """The exponentials were not divided by their sum."""

    breaks = "SOFTMAX-FORMULA"
    mend = "Divide by the sum over the last axis, so that it becomes one."

    def normalise(self, weights: Node) -> Node:
        return weights / 1


class OneAddedToSum(Fault):
    """One was added to the sum of the exponentials."""

    breaks = "SOFTMAX-FORMULA"
    mend = "Divide by the sum alone: the largest term is one, so that it can't be zero."

    def normalise(self, weights: Node) -> Node:
        return weights / (weights.sum(-1, keepdims=True) + 1)


class ScoreOfZeroAdded(Fault):
    """Every row had one score more, of zero, whose probability was dropped."""

    breaks = "SOFTMAX-SHIFT"
    also = ("SOFTMAX-FORMULA",)
    mend = "Sum over the scores alone; with no other score a shift changes nothing."

    def peak(self, scores: Node, allowed: np.ndarray) -> Node:
        largest = scores.tape.domain.peak(scores.value, allowed)
        return scores.tape.floats(np.maximum(largest, 0))

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        weights = self.exponentials(scores, allowed)
        rest = exp(-self.peak(scores, allowed))
        return weights / (weights.sum(-1, keepdims=True) + rest)


class DividedByLength(Fault):
    """The exponentials were divided by their number instead of by their sum."""

    breaks = "SOFTMAX-FORMULA"
    mend = "Divide by the sum over the last axis."

    def normalise(self, weights: Node) -> Node:
        return weights / weights.shape[-1]


class PowersOfTwo(Fault):
    """The exponential was that to the base two."""

    breaks = "SOFTMAX-FORMULA"
    mend = "Take exp, or multiply by log2(e) before a power of two."

    def exponentials(self, scores: Node, allowed: np.ndarray) -> Node:
        return super().exponentials(scores * number(scores, _LN_2), allowed)


class DifferenceReversed(Fault):
    """Each number was subtracted from the maximum: the smallest became the likeliest."""

    breaks = "SOFTMAX-FORMULA"
    mend = "Subtract the maximum from the numbers, not the numbers from the maximum."

    def exponentials(self, scores: Node, allowed: np.ndarray) -> Node:
        return super().exponentials(-scores, allowed)


class LogarithmReturned(Fault):
    """The logarithms of the probabilities came back."""

    breaks = "SOFTMAX-FORMULA"
    mend = "Give the probabilities; their logarithm belongs to the loss."

    def softmax(self, x: Node) -> Node:
        shifted = x - self.peak(x, np.ones(x.shape[-1]))
        return shifted - log(exp(shifted).sum(-1, keepdims=True))


# --------------------------------------------------------------------------------- its arithmetic


class MaximumForgotten(Fault):
    """The maximum was not subtracted: large numbers overflowed."""

    breaks = "SOFTMAX-STABLE"
    sources = ("C-66", "BUG-SM-01")
    mend = "Subtract the largest number of the row before the exponential."
    native = True

    def peak(self, scores: Node, allowed: np.ndarray) -> Node:
        return scores.tape.floats(np.zeros((*scores.shape[:-1], 1)))


class MaximumOfEverything(Fault):
    """The maximum of all rows was subtracted from each: rows far below it underflowed."""

    breaks = "SOFTMAX-STABLE"
    mend = "Subtract from each row its own maximum."
    native = True

    def peak(self, scores: Node, allowed: np.ndarray) -> Node:
        own = super().peak(scores, allowed).value
        return scores.tape.floats(np.full(own.shape, own.max(initial=-np.inf)))
