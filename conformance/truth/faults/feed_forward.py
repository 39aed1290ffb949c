"""Mistakes of the feed-forward network."""

from __future__ import annotations

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.reverse import adjoints
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import average


class ActivationForgotten(Fault):
    """There was no activation between the two maps."""

    breaks = "FF-ACTIVATION"
    sources = ("C-15",)
    mend = "Apply GELU to the output of the first map."

    def activation(self, x: Node) -> Node:
        return x


class ActivationAfterSecondMap(Fault):
    """The activation stood after the second map instead of between the two."""

    breaks = "FF-ACTIVATION"
    also = ("FF-COMPOSITION",)
    mend = "Apply GELU to the output of the first map, and nothing to that of the second."

    def feed_forward(self, x: Node, w_1: Node, b_1: Node, w_2: Node, b_2: Node) -> Node:
        return self.activation(self.linear(self.linear(x, w_1, b_1), w_2, b_2))


class ActivationTwice(Fault):
    """The activation was applied to the output of the second map as well."""

    breaks = "FF-COMPOSITION"
    mend = "Apply GELU once, between the two maps."

    def feed_forward(self, x: Node, w_1: Node, b_1: Node, w_2: Node, b_2: Node) -> Node:
        return self.activation(super().feed_forward(x, w_1, b_1, w_2, b_2))


class ActivationSlopeForgotten(Fault):
    """The gradient passed the activation as if its slope were one."""

    breaks = "FF-GRADIENT"
    mend = "Multiply by the derivative of GELU at the output of the first map."

    def activation(self, x: Node) -> Node:
        return super().activation(x).with_rule((x,), lambda g: (g,))


class ActivationSlopeOfOutput(Fault):
    """The slope of the activation was taken at its output instead of at its input."""

    breaks = "FF-GRADIENT"
    mend = "Keep the output of the first map, and take the derivative of GELU there."

    def activation(self, x: Node) -> Node:
        y = super().activation(x)
        kept = y.detach()
        again = super().activation(kept)
        return y.with_rule((x,), lambda g: (adjoints(again, g)[id(kept)],))


class FirstBiasForgotten(Fault):
    """The bias of the first map was not added."""

    breaks = "FF-BIASES"
    mend = "Add b_1 before the activation."

    def feed_forward(self, x: Node, w_1: Node, b_1: Node, w_2: Node, b_2: Node) -> Node:
        return self.linear(self.activation(self.linear(x, w_1)), w_2, b_2)


class SecondBiasForgotten(Fault):
    """The bias of the second map was not added."""

    breaks = "FF-BIASES"
    mend = "Add b_2 after the second map."

    def feed_forward(self, x: Node, w_1: Node, b_1: Node, w_2: Node, b_2: Node) -> Node:
        return self.linear(self.activation(self.linear(x, w_1, b_1)), w_2)


class FirstBiasAfterActivation(Fault):
    """The bias of the first map was added after the activation."""

    breaks = "FF-BIASES"
    also = ("FF-COMPOSITION",)
    mend = "Add b_1 before the activation."

    def feed_forward(self, x: Node, w_1: Node, b_1: Node, w_2: Node, b_2: Node) -> Node:
        return self.linear(self.activation(self.linear(x, w_1)) + b_1, w_2, b_2)


class FeedForwardWithTrunk(Fault):
    """The feed-forward network added its input to its output by itself."""

    breaks = "FF-COMPOSITION"
    mend = "Leave the trunk to the residual addition; the network returns the increment alone."

    def feed_forward(self, x: Node, w_1: Node, b_1: Node, w_2: Node, b_2: Node) -> Node:
        return x + super().feed_forward(x, w_1, b_1, w_2, b_2)


class TimeMixed(Fault):
    """The feed-forward network saw the average over the positions of the sequence."""

    breaks = "FF-POSITIONWISE"
    sources = ("C-24",)
    mend = "Apply the network to each position by itself."

    def feed_forward(self, x: Node, w_1: Node, b_1: Node, w_2: Node, b_2: Node) -> Node:
        mixed = average(x, (-2,)).broadcast_to(x.shape) if x.ndim > 1 else x
        return super().feed_forward(mixed, w_1, b_1, w_2, b_2)
