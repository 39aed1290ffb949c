"""Mistakes in how the attention sublayer is put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.reference import Reference

_Step: TypeAlias = Callable[[Node], Node]


class _Steps(Reference):
    """The sublayer by its two steps, the norm and the attention, for what is done with them."""

    def attention_sublayer(
        self,
        x: Node,
        gamma: Node,
        beta: Node,
        w_q: Node,
        w_k: Node,
        w_v: Node,
        w_o: Node,
        *,
        heads: int,
        eps: Node,
    ) -> Node:
        def norm(trunk: Node) -> Node:
            return self.layer_norm(trunk, gamma, beta, eps=eps)

        def attention(trunk: Node) -> Node:
            return self.causal_attention(trunk, w_q, w_k, w_v, w_o, heads=heads)

        return self.put_together(x, norm, attention)

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return self.residual_add(x, attention(norm(x)))


class AttentionTrunkNormalised(_Steps, Fault):
    """The attention branch was added to the normalised trunk instead of to the trunk itself."""

    breaks = "ATT-SUBLAYER-TRUNK"
    also = ("ATT-SUBLAYER-ZERO-BRANCH", "ATT-SUBLAYER-GRADIENT")
    sources = ("C-18",)
    mend = "Keep the trunk as it came in, and add the branch to it."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        normalised = norm(x)
        return self.residual_add(normalised, attention(normalised))


class AttentionTrunkForgotten(_Steps, Fault):
    """The attention branch came back alone: the trunk was not added."""

    breaks = "ATT-SUBLAYER-TRUNK"
    also = ("ATT-SUBLAYER-ZERO-BRANCH", "ATT-SUBLAYER-GRADIENT")
    sources = ("C-21",)
    mend = "Add the branch to the trunk."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return attention(norm(x))


class AttentionTrunkTwice(_Steps, Fault):
    """The trunk was added to the attention branch twice."""

    breaks = "ATT-SUBLAYER-TRUNK"
    also = ("ATT-SUBLAYER-ZERO-BRANCH", "ATT-SUBLAYER-GRADIENT")
    mend = "Add the trunk once: the branch itself does not."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return self.residual_add(x, self.residual_add(x, attention(norm(x))))


class NormAfterAttentionSum(_Steps, Fault):
    """The sum of trunk and attention was normalised instead of the input of the attention."""

    breaks = "ATT-SUBLAYER-PRE-NORM"
    also = ("ATT-SUBLAYER-TRUNK", "ATT-SUBLAYER-ZERO-BRANCH", "ATT-SUBLAYER-GRADIENT")
    sources = ("C-17",)
    mend = "Normalise at the entrance of the branch, and nothing after the addition."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return norm(self.residual_add(x, attention(x)))


class NormBeforeAttentionForgotten(_Steps, Fault):
    """The attention took the trunk without normalising it."""

    breaks = "ATT-SUBLAYER-PRE-NORM"
    mend = "Normalise the trunk at the entrance of the branch."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return self.residual_add(x, attention(x))


class NormAroundAttention(_Steps, Fault):
    """The output of the attention was normalised as well as its input."""

    breaks = "ATT-SUBLAYER-PRE-NORM"
    mend = "Normalise at the entrance of the branch and nowhere else."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return self.residual_add(x, norm(attention(norm(x))))


class AttentionOfFirstPosition(_Steps, Fault):
    """The attention of the first position was added at every position of the sequence."""

    breaks = "ATT-SUBLAYER-TRUNK"
    sources = ("C-22",)
    mend = "Compare the two shapes before adding: [B, 1, d] broadcasts."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        first = take(attention(norm(x)), (slice(None), slice(1)))
        return self.residual_add(x, first.broadcast_to(x.shape))


class AttentionDetached(_Steps, Fault):
    """The attention branch was computed without a graph: its parameters received no gradient."""

    breaks = "ATT-SUBLAYER-GRADIENT"
    also = ("GRAD-PRESENT",)
    sources = ("C-51",)
    mend = "Compute the branch with gradients; the one of x needs both paths."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return self.residual_add(x, attention(norm(x)).detach())


class AttentionInputDetached(_Steps, Fault):
    """The attention branch read a detached trunk: x received the gradient of the trunk alone."""

    breaks = "ATT-SUBLAYER-GRADIENT"
    mend = "Let the gradient of the branch flow into x as well."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return self.residual_add(x, attention(norm(x.detach())))


class AttentionTrunkDetached(_Steps, Fault):
    """The trunk was detached before the attention was added to it."""

    breaks = "ATT-SUBLAYER-GRADIENT"
    mend = "Hand the upstream gradient to the trunk as well."

    def put_together(self, x: Node, norm: _Step, attention: _Step) -> Node:
        return self.residual_add(x.detach(), attention(norm(x)))
