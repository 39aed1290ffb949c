"""Mistakes in how the feed-forward sublayer is put together."""

from __future__ import annotations

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault


class TrunkNormalised(Fault):
    """The branch was added to the normalised trunk instead of to the trunk itself."""

    breaks = "SUBLAYER-TRUNK"
    also = ("SUBLAYER-PRE-NORM", "SUBLAYER-GRADIENT")
    sources = ("C-18", "BUG-RES-01")
    mend = "Keep the trunk as it came in, and add the branch to it."

    def feed_forward_sublayer(
        self,
        x: Node,
        gamma: Node,
        beta: Node,
        w_1: Node,
        b_1: Node,
        w_2: Node,
        b_2: Node,
        *,
        eps: Node,
    ) -> Node:
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        increment = self.feed_forward(normalised, w_1, b_1, w_2, b_2)
        return self.residual_add(normalised, increment)


class NormAfterSum(Fault):
    """The sum of trunk and branch was normalised instead of the input of the branch."""

    breaks = "SUBLAYER-PRE-NORM"
    also = ("SUBLAYER-TRUNK", "SUBLAYER-GRADIENT")
    sources = ("C-17", "BUG-RES-01")
    mend = "Normalise at the entrance of the branch, and nothing after the addition."

    def feed_forward_sublayer(
        self,
        x: Node,
        gamma: Node,
        beta: Node,
        w_1: Node,
        b_1: Node,
        w_2: Node,
        b_2: Node,
        *,
        eps: Node,
    ) -> Node:
        total = self.residual_add(x, self.feed_forward(x, w_1, b_1, w_2, b_2))
        return self.layer_norm(total, gamma, beta, eps=eps)


class NormForgotten(Fault):
    """The branch took the trunk without normalising it."""

    breaks = "SUBLAYER-PRE-NORM"
    mend = "Normalise the trunk at the entrance of the branch."

    def feed_forward_sublayer(
        self,
        x: Node,
        gamma: Node,
        beta: Node,
        w_1: Node,
        b_1: Node,
        w_2: Node,
        b_2: Node,
        *,
        eps: Node,
    ) -> Node:
        return self.residual_add(x, self.feed_forward(x, w_1, b_1, w_2, b_2))


class NormOnBothSides(Fault):
    """The output of the branch was normalised as well as its input."""

    breaks = "SUBLAYER-PRE-NORM"
    mend = "Normalise at the entrance of the branch and nowhere else."

    def feed_forward_sublayer(
        self,
        x: Node,
        gamma: Node,
        beta: Node,
        w_1: Node,
        b_1: Node,
        w_2: Node,
        b_2: Node,
        *,
        eps: Node,
    ) -> Node:
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        increment = self.feed_forward(normalised, w_1, b_1, w_2, b_2)
        return self.residual_add(x, self.layer_norm(increment, gamma, beta, eps=eps))


class BranchDetached(Fault):
    """The branch was computed without a graph: its parameters received no gradient."""

    breaks = "SUBLAYER-GRADIENT"
    also = ("GRAD-PRESENT", "FF-GRADIENT", "LN-GRADIENT")
    sources = ("C-51",)
    mend = "Compute the branch with gradients; the one of x needs both paths."

    def feed_forward_sublayer(
        self,
        x: Node,
        gamma: Node,
        beta: Node,
        w_1: Node,
        b_1: Node,
        w_2: Node,
        b_2: Node,
        *,
        eps: Node,
    ) -> Node:
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        increment = self.feed_forward(normalised, w_1, b_1, w_2, b_2)
        return self.residual_add(x, increment.detach())
