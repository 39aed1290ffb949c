"""Mistakes in how the block is put together from its two branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import average
from conformance.truth.reference import Reference

_Step: TypeAlias = Callable[[Node], Node]


@dataclass(frozen=True)
class Steps:
    """What a block is made of; each takes and gives [B, T, d]."""

    first_norm: _Step
    attention: _Step
    second_norm: _Step
    feed_forward: _Step


class Assembled(Reference):
    """The block by its four steps, for what is done with them."""

    def block(self, x: Node, parameters: Mapping[str, Node], *, heads: int, eps: Node) -> Node:
        def norm(name: str) -> _Step:
            gamma, beta = (parameters[f"{name}.{part}"] for part in ("gamma", "beta"))
            return lambda trunk: self.layer_norm(trunk, gamma, beta, eps=eps)

        maps = [parameters[f"attention.w_{part}"] for part in "qkvo"]
        layers = [parameters[f"feed_forward.{part}"] for part in ("w_1", "b_1", "w_2", "b_2")]
        steps = Steps(
            first_norm=norm("attention_norm"),
            attention=lambda trunk: self.causal_attention(trunk, *maps, heads=heads),
            second_norm=norm("feed_forward_norm"),
            feed_forward=lambda trunk: self.feed_forward(trunk, *layers),
        )
        return self.assemble(x, steps)

    def first(self, x: Node, steps: Steps) -> Node:
        """U = X + A(norm(X))."""
        return self.residual_add(x, steps.attention(steps.first_norm(x)))

    def second(self, u: Node, steps: Steps) -> Node:
        """Y = U + F(norm(U))."""
        return self.residual_add(u, steps.feed_forward(steps.second_norm(u)))

    def assemble(self, x: Node, steps: Steps) -> Node:
        return self.second(self.first(x, steps), steps)


# ------------------------------------------------------------------------------ trunk and branches


class SecondBranchReadsInput(Assembled, Fault):
    """The feed-forward branch read the input of the block instead of what attention gave."""

    breaks = "BLOCK-SECOND-READS-U"
    also = ("BLOCK-GRADIENT",)
    sources = ("C-19",)
    mend = "Add the attention to the trunk first, and normalise that for the second branch."

    def assemble(self, x: Node, steps: Steps) -> Node:
        increment = steps.feed_forward(steps.second_norm(x))
        return self.residual_add(self.first(x, steps), increment)


class SecondBranchAddsToInput(Assembled, Fault):
    """The feed-forward branch was added to the input of the block: the attention was lost."""

    breaks = "BLOCK-SECOND-ADDS-TO-U"
    also = ("BLOCK-GRADIENT",)
    sources = ("C-20",)
    mend = "Add the second branch to what the first one gave."

    def assemble(self, x: Node, steps: Steps) -> Node:
        u = self.first(x, steps)
        return self.residual_add(x, steps.feed_forward(steps.second_norm(u)))


class FirstBranchForgotten(Assembled, Fault):
    """The block had no attention branch."""

    breaks = "BLOCK-SECOND-READS-U"
    also = ("BLOCK-SECOND-ADDS-TO-U", "BLOCK-GRADIENT")
    mend = "Call the attention sublayer, then the feed-forward sublayer on its result."

    def assemble(self, x: Node, steps: Steps) -> Node:
        return self.second(x, steps)


class SecondBranchForgotten(Assembled, Fault):
    """The block had no feed-forward branch."""

    breaks = "BLOCK-SECOND-ADDS-TO-U"
    also = ("BLOCK-GRADIENT",)
    mend = "Call the feed-forward sublayer on what the attention sublayer gave."

    def assemble(self, x: Node, steps: Steps) -> Node:
        return self.first(x, steps)


class BranchesExchanged(Assembled, Fault):
    """The feed-forward came first and the attention second."""

    breaks = "BLOCK-SECOND-READS-U"
    also = ("BLOCK-GRADIENT",)
    mend = "Attention first, then the feed-forward."

    def assemble(self, x: Node, steps: Steps) -> Node:
        return self.first(self.second(x, steps), steps)


class FirstTrunkForgotten(Assembled, Fault):
    """The attention branch of the block was not added to the trunk, it replaced it."""

    breaks = "BLOCK-SECOND-ADDS-TO-U"
    also = ("BLOCK-ZERO-BRANCHES", "BLOCK-GRADIENT")
    sources = ("C-21",)
    mend = "Add the attention to the input of the block."

    def first(self, x: Node, steps: Steps) -> Node:
        return steps.attention(steps.first_norm(x))


class SecondTrunkForgotten(Assembled, Fault):
    """The feed-forward branch of the block was not added to the trunk, it replaced it."""

    breaks = "BLOCK-SECOND-ADDS-TO-U"
    also = ("BLOCK-ZERO-BRANCHES", "BLOCK-GRADIENT")
    sources = ("C-21",)
    mend = "Add the feed-forward to what the attention sublayer gave."

    def second(self, u: Node, steps: Steps) -> Node:
        return steps.feed_forward(steps.second_norm(u))


class FeedForwardAveragesPositions(Assembled, Fault):
    """The feed-forward branch of the block read the average of all positions."""

    breaks = "BLOCK-POSITIONWISE"
    also = ("BLOCK-CAUSAL",)
    sources = ("C-24",)
    mend = "Apply the feed-forward at every position by itself: it acts on the last axis."

    def second(self, u: Node, steps: Steps) -> Node:
        mixed = average(steps.second_norm(u), (1,)).broadcast_to(u.shape)
        return self.residual_add(u, steps.feed_forward(mixed))


class BlockFlattened(Assembled, Fault):
    """The block gave [B T, d] back, batch and positions in one axis."""

    breaks = "BLOCK-SHAPE"
    mend = "Give the shape of the input back, [B, T, d]."

    def assemble(self, x: Node, steps: Steps) -> Node:
        return super().assemble(x, steps).rows()


# --------------------------------------------------------------------------------------- the norms


class NormsAfterSums(Assembled, Fault):
    """The block normalised each sum of trunk and branch instead of the input of each branch."""

    breaks = "BLOCK-PRE-NORM"
    also = ("BLOCK-ZERO-BRANCHES", "BLOCK-GRADIENT")
    sources = ("C-17",)
    mend = "Normalise at the entrance of each branch, and nothing after an addition."

    def first(self, x: Node, steps: Steps) -> Node:
        return steps.first_norm(self.residual_add(x, steps.attention(x)))

    def second(self, u: Node, steps: Steps) -> Node:
        return steps.second_norm(self.residual_add(u, steps.feed_forward(u)))


class BlockTrunkNormalised(Assembled, Fault):
    """The block added each branch to the normalised trunk instead of to the trunk itself."""

    breaks = "BLOCK-PRE-NORM"
    also = ("BLOCK-ZERO-BRANCHES", "BLOCK-GRADIENT")
    sources = ("C-18",)
    mend = "Keep the trunk as it came in, and add each branch to it."

    def first(self, x: Node, steps: Steps) -> Node:
        normalised = steps.first_norm(x)
        return self.residual_add(normalised, steps.attention(normalised))

    def second(self, u: Node, steps: Steps) -> Node:
        normalised = steps.second_norm(u)
        return self.residual_add(normalised, steps.feed_forward(normalised))


class BlockOutputNormalised(Assembled, Fault):
    """The block normalised its output with the second norm."""

    breaks = "BLOCK-PRE-NORM"
    also = ("BLOCK-ZERO-BRANCHES", "BLOCK-GRADIENT")
    mend = "Give the trunk back as it is; a final norm belongs to the model."

    def assemble(self, x: Node, steps: Steps) -> Node:
        return steps.second_norm(super().assemble(x, steps))


class SecondNormForgotten(Assembled, Fault):
    """The feed-forward branch of the block took the trunk without normalising it."""

    breaks = "BLOCK-PRE-NORM"
    mend = "Normalise at the entrance of each of the two branches."

    def second(self, u: Node, steps: Steps) -> Node:
        return self.residual_add(u, steps.feed_forward(u))


class FirstNormTwice(Assembled, Fault):
    """The norm of the attention branch was used for the feed-forward branch as well."""

    breaks = "BLOCK-TWO-NORMS"
    also = ("BLOCK-GRADIENT",)
    sources = ("C-23",)
    mend = "Give each branch a norm of its own, with parameters of its own."

    def second(self, u: Node, steps: Steps) -> Node:
        return self.residual_add(u, steps.feed_forward(steps.first_norm(u)))


class NormsExchanged(Assembled, Fault):
    """Each branch was normalised with the parameters of the other one."""

    breaks = "BLOCK-TWO-NORMS"
    also = ("BLOCK-GRADIENT",)
    mend = "attention_norm stands before attention, feed_forward_norm before the feed-forward."

    def first(self, x: Node, steps: Steps) -> Node:
        return self.residual_add(x, steps.attention(steps.second_norm(x)))

    def second(self, u: Node, steps: Steps) -> Node:
        return self.residual_add(u, steps.feed_forward(steps.first_norm(u)))


class FirstNormReused(Assembled, Fault):
    """The feed-forward branch read the normalised input that the attention had read."""

    breaks = "BLOCK-TWO-NORMS"
    also = ("BLOCK-SECOND-READS-U", "BLOCK-GRADIENT")
    sources = ("C-23",)
    mend = "Normalise what the attention sublayer gave, with the second norm."

    def assemble(self, x: Node, steps: Steps) -> Node:
        normalised = steps.first_norm(x)
        u = self.residual_add(x, steps.attention(normalised))
        return self.residual_add(u, steps.feed_forward(normalised))
