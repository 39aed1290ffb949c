"""Mistakes in the form of the linear layer's gradients."""

from __future__ import annotations

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault


class InputGradientUntransposed(Fault):
    """The input gradient was multiplied by the weight instead of by its transpose."""

    breaks = "LIN-GRAD-INPUT"
    also = ("FF-GRADIENT",)
    sources = ("BUG-LIN-01",)
    mend = "Multiply the upstream gradient by the transposed weight: dX = G W^T."

    def input_gradient(self, g: Node, weight: Node) -> Node:
        return super().input_gradient(g, weight.swap_last())


class InputGradientPlusBias(Fault):
    """The input gradient was taken of the upstream gradient plus the bias."""

    breaks = "LIN-GRAD-INPUT"
    sources = ("C-81",)
    mend = "Leave the bias out of the input gradient: dX = G W^T."

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        y = super().linear(x, weight, bias)
        if bias is None:
            return y
        return y.with_rule(
            (x, weight, bias),
            lambda g: (
                self.input_gradient(g + bias, weight),
                self.weight_gradient(x, g),
                self.bias_gradient(g),
            ),
        )


class WeightGradientTransposed(Fault):
    """The weight gradient was that of a weight stored [out, in]."""

    breaks = "LIN-GRAD-WEIGHT"
    also = ("FF-GRADIENT",)
    sources = ("BUG-LIN-01",)
    mend = "The gradient has the shape of the weight, [in, out]: dW = X^T G."

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(x, g).swap_last()


class BiasGradientOverFeatures(Fault):
    """The bias gradient was summed over the features instead of over the positions."""

    breaks = "LIN-GRAD-BIAS"
    sources = ("C-71",)
    mend = "Sum the upstream gradient over all leading axes, and keep the features."

    def bias_gradient(self, g: Node) -> Node:
        return g.sum(-1)


class BiasGradientOverFirstAxis(Fault):
    """The bias gradient was summed over the first axis alone."""

    breaks = "LIN-GRAD-BIAS"
    also = ("LIN-GRAD-SUM",)
    sources = ("C-71", "BUG-LIN-02")
    mend = "Sum the upstream gradient over all leading axes."

    def bias_gradient(self, g: Node) -> Node:
        return g.sum(0) if g.ndim > 1 else g


class GradientsNegated(Fault):
    """The gradients of weight and bias had the opposite sign."""

    breaks = "LIN-GRAD-WEIGHT"
    also = ("LIN-GRAD-BIAS",)
    mend = "Give the gradient itself; the step that is subtracted is the optimiser's."

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return -super().weight_gradient(x, g)

    def bias_gradient(self, g: Node) -> Node:
        return -super().bias_gradient(g)


class GradientsAbsent(Fault):
    """The output was detached from what it was computed from, so that no gradient came."""

    breaks = "GRAD-PRESENT"
    also = ("LIN-GRAD-INPUT", "LIN-GRAD-WEIGHT", "LIN-GRAD-BIAS")
    mend = "Compute the layer inside the graph; no detach, no copy into an array without one."

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        return super().linear(x, weight, bias).detach()


class WeightGradientAbsent(Fault):
    """The weight was taken as a constant, and no gradient came for it."""

    breaks = "GRAD-PRESENT"
    also = ("LIN-GRAD-WEIGHT",)
    mend = "Register the weight as a parameter whose gradient is asked for."

    def project(self, x: Node, weight: Node) -> Node:
        return super().project(x, weight.detach())
