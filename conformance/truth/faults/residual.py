"""Mistakes of the residual addition and of the sublayer around it."""

from __future__ import annotations

from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import average

# -------------------------------------------------------------------------------- the addition


class TrunkForgotten(Fault):
    """The increment came back alone: the trunk was not added."""

    breaks = "RES-ADD"
    also = ("SUBLAYER-TRUNK", "RES-GRADIENT")
    sources = ("C-21",)
    mend = "Add the increment to the trunk."

    def residual_add(self, x: Node, increment: Node) -> Node:
        self.check_residual(x, increment)
        return increment


class IncrementForgotten(Fault):
    """The trunk came back as it was: the increment was not added."""

    breaks = "RES-ADD"
    also = ("RES-GRADIENT",)
    sources = ("C-21",)
    mend = "Add the increment to the trunk."

    def residual_add(self, x: Node, increment: Node) -> Node:
        self.check_residual(x, increment)
        return x


class TrunkTwice(Fault):
    """The trunk was added twice."""

    breaks = "RES-ADD"
    also = ("SUBLAYER-TRUNK", "RES-GRADIENT")
    mend = "Add the trunk once."

    def residual_add(self, x: Node, increment: Node) -> Node:
        return x + super().residual_add(x, increment)


class IncrementTwice(Fault):
    """The increment was added twice."""

    breaks = "RES-ADD"
    also = ("RES-GRADIENT",)
    mend = "Add the increment once."

    def residual_add(self, x: Node, increment: Node) -> Node:
        return super().residual_add(x, increment) + increment


class IncrementSubtracted(Fault):
    """The increment was subtracted from the trunk."""

    breaks = "RES-ADD"
    also = ("RES-GRADIENT",)
    mend = "Add the increment."

    def residual_add(self, x: Node, increment: Node) -> Node:
        return super().residual_add(x, -increment)


class IncrementOfFirstPosition(Fault):
    """The increment of the first position was added at every position of the sequence."""

    breaks = "RES-ADD"
    sources = ("C-22",)
    mend = "Add to each position its own increment."

    def residual_add(self, x: Node, increment: Node) -> Node:
        self.check_residual(x, increment)
        return x + (take(increment, (..., slice(1), slice(None))) if x.ndim > 1 else increment)


class IncrementAveraged(Fault):
    """The average increment of the positions was added at every position of the sequence."""

    breaks = "RES-ADD"
    sources = ("C-22",)
    mend = "Add to each position its own increment."

    def residual_add(self, x: Node, increment: Node) -> Node:
        self.check_residual(x, increment)
        return x + (average(increment, (-2,)) if x.ndim > 1 else increment)


class ShapesBroadcast(Fault):
    """Trunk and increment of different shapes were broadcast."""

    breaks = "RES-SAME-SHAPE"
    sources = ("C-22", "BUG-RES-03")
    mend = "Compare the two shapes, and refuse what differs."

    def check_residual(self, x: Node, increment: Node) -> None:
        return


class GradientKeptFromIncrement(Fault):
    """The increment received no gradient."""

    breaks = "RES-GRADIENT"
    also = ("SUBLAYER-GRADIENT",)
    mend = "Hand the upstream gradient to the increment as well; no detach on the branch."

    def residual_add(self, x: Node, increment: Node) -> Node:
        return super().residual_add(x, increment.detach())


class GradientKeptFromTrunk(Fault):
    """The trunk received no gradient."""

    breaks = "RES-GRADIENT"
    also = ("SUBLAYER-GRADIENT",)
    mend = "Hand the upstream gradient to the trunk as well."

    def residual_add(self, x: Node, increment: Node) -> Node:
        return super().residual_add(x.detach(), increment)


class GradientShared(Fault):
    """The upstream gradient was halved between trunk and increment."""

    breaks = "RES-GRADIENT"
    also = ("SUBLAYER-GRADIENT",)
    mend = "Hand the whole upstream gradient to each of the two."

    def residual_add(self, x: Node, increment: Node) -> Node:
        y = super().residual_add(x, increment)
        return y.with_rule((x, increment), lambda g: (g / 2, g / 2))
