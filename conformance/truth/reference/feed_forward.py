"""The rules of GELU, the feed-forward network, the residual addition and their sublayer."""

from __future__ import annotations

from conformance.errors import Rejected
from conformance.truth.arithmetic.functions import erf
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.reference.linear import LinearRules
from conformance.truth.reference.normalisation import NormalisationRules


class FeedForwardRules(LinearRules, NormalisationRules):
    """decoder-block, "Building a Block from Two Residual Branches", the second branch."""

    def gelu(self, x: Node) -> Node:
        """x Phi(x). decoder-block, "Building a Block from Two Residual Branches"."""
        return x * self.normal_cdf(x)

    def normal_cdf(self, x: Node) -> Node:
        """Phi(x) = (1 + erf(x / sqrt 2)) / 2."""
        return (1 + erf(x * x.tape.constant("sqrt_half"))) / 2

    def activation(self, x: Node) -> Node:
        """What stands between the two maps of the feed-forward."""
        return self.gelu(x)

    def feed_forward(self, x: Node, w_1: Node, b_1: Node, w_2: Node, b_2: Node) -> Node:
        """gelu(x W_1 + b_1) W_2 + b_2 at every position of x [..., d]."""
        return self.linear(self.activation(self.linear(x, w_1, b_1)), w_2, b_2)

    def residual_add(self, x: Node, increment: Node) -> Node:
        """x + increment. Raises Rejected unless the shapes are equal."""
        self.check_residual(x, increment)
        return x + increment

    def check_residual(self, x: Node, increment: Node) -> None:
        if x.shape != increment.shape:
            raise Rejected("shape-mismatch", f"{x.shape} and {increment.shape} differ")

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
        """x + feed_forward(layer_norm(x)); the trunk x is not normalised."""
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        return self.residual_add(x, self.feed_forward(normalised, w_1, b_1, w_2, b_2))
