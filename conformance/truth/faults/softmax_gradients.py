"""Mistakes in the gradient of softmax, alone and within attention."""

from __future__ import annotations

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import average, gradient_where


class SoftmaxSumTermForgotten(Fault):
    """The gradient of softmax was p g: that each number moves every probability was left out."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Subtract the sum of p g before multiplying by p."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return p * g


class SoftmaxJacobianDiagonal(Fault):
    """The gradient of softmax was p (1 - p) g: the diagonal of its Jacobian."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Add what reaches the other probabilities: p (g - sum of p g)."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return p * (1 - p) * g


class SoftmaxSumUnweighted(Fault):
    """The gradient of softmax subtracted the sum of g instead of that of p g."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Weight the sum with the probabilities: p (g - sum of p g)."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return p * (g - g.sum(-1, keepdims=True))


class SoftmaxSumAveraged(Fault):
    """The gradient of softmax subtracted the mean of p g instead of its sum."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Subtract the sum: the probabilities are weights already."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return p * (g - average(p * g, (-1,)))


class SoftmaxSumOverPositions(Fault):
    """The gradient of softmax was summed over the last axis but one, wherever there are two."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Sum p g over the axis over which softmax was taken, the last."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return p * (g - (p * g).sum(-2 if p.ndim > 1 else -1, keepdims=True))


class SoftmaxSumOverEverything(Fault):
    """The gradient of softmax subtracted the sum of p g over all rows."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Sum p g over the last axis alone."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return p * (g - (p * g).sum(tuple(range(p.ndim))))


class SoftmaxGradientUnweighted(Fault):
    """The gradient of softmax lacked its outer factor p."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Multiply the difference by the probabilities: p (g - sum of p g)."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return g - (p * g).sum(-1, keepdims=True)

    def attention_weights(self, scores: Node) -> Node:
        seen = self.allowed(scores.shape[-1]) == 1
        return super().attention_weights(gradient_where(seen, scores))


class SoftmaxGradientPassedOn(Fault):
    """The upstream gradient went through softmax unchanged."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Apply the Jacobian: p (g - sum of p g)."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return g

    def attention_weights(self, scores: Node) -> Node:
        seen = self.allowed(scores.shape[-1]) == 1
        return super().attention_weights(gradient_where(seen, scores))


class SoftmaxGradientNegated(Fault):
    """The gradient of softmax had the opposite sign."""

    breaks = "SOFTMAX-GRADIENT"
    also = ("ATT-GRADIENT",)
    mend = "Subtract the sum from the upstream gradient: p (g - sum of p g)."

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        return -super().softmax_gradient(p, g)


class SoftmaxDetached(Fault):
    """No gradient came through softmax."""

    breaks = "GRAD-PRESENT"
    also = ("SOFTMAX-GRADIENT", "ATT-GRADIENT")
    mend = "Compute the probabilities inside the graph; only the maximum may be a constant."

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        return super().probabilities(scores, allowed).detach()
