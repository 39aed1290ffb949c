"""Mistakes in the gradients of the block, its values being right."""

from __future__ import annotations

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults.block import Assembled, Steps


class BranchesDetached(Assembled, Fault):
    """Both branches of the block were computed without a graph."""

    breaks = "BLOCK-GRADIENT"
    also = ("BLOCK-JACOBIAN", "GRAD-PRESENT")
    sources = ("C-51",)
    mend = "Compute both branches with gradients."

    def first(self, x: Node, steps: Steps) -> Node:
        return self.residual_add(x, steps.attention(steps.first_norm(x)).detach())

    def second(self, u: Node, steps: Steps) -> Node:
        return self.residual_add(u, steps.feed_forward(steps.second_norm(u)).detach())


class TrunkDetachedBetweenBranches(Assembled, Fault):
    """What the attention sublayer gave was detached: nothing before it received a gradient."""

    breaks = "BLOCK-GRADIENT"
    also = ("BLOCK-JACOBIAN", "GRAD-PRESENT")
    mend = "Hand the trunk on inside the graph."

    def assemble(self, x: Node, steps: Steps) -> Node:
        return self.second(self.first(x, steps).detach(), steps)


class SecondBranchReadsDetached(Assembled, Fault):
    """The feed-forward branch read a detached trunk: its gradient did not reach the trunk."""

    breaks = "BLOCK-GRADIENT"
    also = ("BLOCK-JACOBIAN",)
    mend = "Let the gradient of the second branch flow into the trunk as well."

    def second(self, u: Node, steps: Steps) -> Node:
        return self.residual_add(u, steps.feed_forward(steps.second_norm(u.detach())))


class SecondTrunkDetached(Assembled, Fault):
    """The trunk was detached before the feed-forward was added to it."""

    breaks = "BLOCK-GRADIENT"
    also = ("BLOCK-JACOBIAN",)
    mend = "Hand the upstream gradient to the trunk as well: the Jacobian is I + J of the branch."

    def second(self, u: Node, steps: Steps) -> Node:
        return self.residual_add(u.detach(), steps.feed_forward(steps.second_norm(u)))


class TrunkJacobianForgotten(Assembled, Fault):
    """The trunk was detached before each addition: the block had the Jacobian of its branches."""

    breaks = "BLOCK-JACOBIAN"
    also = ("BLOCK-GRADIENT",)
    mend = "Hand the upstream gradient to the trunk as well: the Jacobian is I + J of the branch."

    def first(self, x: Node, steps: Steps) -> Node:
        return self.residual_add(x.detach(), steps.attention(steps.first_norm(x)))

    def second(self, u: Node, steps: Steps) -> Node:
        return self.residual_add(u.detach(), steps.feed_forward(steps.second_norm(u)))
