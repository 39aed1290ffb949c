"""The specification as one class of small rules, in the words of the documents.

Arguments and results are nodes of a tape: over balls the rules give the proven values, over
doubles a first explanation. A fault is a subclass with one rule done wrong, so that it reaches
every operation that uses the rule, in values and in gradients. Gradients come from the tape,
except where the documents state a rule for them (the linear layer).

Every weight is [in, out]; a name such as ``[..., d]`` is a shape with any number of leading axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.errors import Rejected
from conformance.truth.functions import erf, sqrt
from conformance.truth.tape import Node


class Reference:
    """The rules. Each method says which section of which document it comes from."""

    # ---------------------------------------------------------------- linear layer (linear-layer)

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        """y = x W + b for x [..., d_in], weight [d_in, d_out], bias [d_out] or none.

        linear-layer, "Project the last feature axis". Raises Rejected as ``check_linear`` does.
        """
        self.check_linear(x, weight, bias)
        y = self.project(x, weight)
        return y if bias is None else self.add_bias(y, bias)

    def check_linear(self, x: Node, weight: Node, bias: Node | None) -> None:
        """The errors of the linear layer in the order of its construction, then of its call."""
        if weight.ndim != 2:
            raise Rejected("weight-rank", f"the weight has rank {weight.ndim}, not 2")
        d_in, d_out = weight.shape
        if d_in == 0:
            raise Rejected("zero-input-width", "the weight has no rows")
        if d_out == 0:
            raise Rejected("zero-output-width", "the weight has no columns")
        if bias is not None:
            self.check_bias(bias, d_out)
        if x.ndim == 0:
            raise Rejected("input-rank", "the input has rank 0")
        if x.shape[-1] != d_in:
            raise Rejected("input-width", f"the input is {x.shape[-1]} wide, not {d_in}")

    def check_bias(self, bias: Node, d_out: int) -> None:
        if bias.ndim != 1:
            raise Rejected("bias-rank", f"the bias has rank {bias.ndim}, not 1")
        if bias.shape[0] != d_out:
            raise Rejected("bias-width", f"the bias is {bias.shape[0]} wide, not {d_out}")

    def project(self, x: Node, weight: Node) -> Node:
        """x W, with the three gradient rules of the documents."""
        return self.product(x, weight).with_rule(
            (x, weight), lambda g: (self.input_gradient(g, weight), self.weight_gradient(x, g))
        )

    def product(self, x: Node, weight: Node) -> Node:
        return x @ weight

    def add_bias(self, y: Node, bias: Node) -> Node:
        """y + b at every position."""
        return (y + bias).with_rule((y, bias), lambda g: (g, self.bias_gradient(g)))

    def input_gradient(self, g: Node, weight: Node) -> Node:
        """dX_p = G_p W^T at every position p."""
        return (g.rows() @ weight.swap_last()).reshape((*g.shape[:-1], weight.shape[0]))

    def weight_gradient(self, x: Node, g: Node) -> Node:
        """dW = sum over positions of X_p^T G_p."""
        return x.rows().swap_last() @ g.rows()

    def bias_gradient(self, g: Node) -> Node:
        """db = sum over positions of G_p."""
        return g.rows().sum(0)

    # --------------------------------------------------------------- layer norm (decoder-block)

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        """gamma (x - mean) / sqrt(variance + eps) + beta over the last axis of x [..., d].

        decoder-block, "Position-Wise LayerNorm: Mean, Population Variance, and Stability
        Constant".
        """
        return self.affine(self.standardise(self.centre(x), eps), gamma, beta)

    def centre(self, x: Node) -> Node:
        return x - self.mean(x)

    def mean(self, x: Node) -> Node:
        return x.sum(-1, keepdims=True) / x.shape[-1]

    def variance(self, centred: Node) -> Node:
        """The population variance: divided by d, never by d - 1."""
        return (centred * centred).sum(-1, keepdims=True) / centred.shape[-1]

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + eps)

    def standardise(self, centred: Node, eps: Node) -> Node:
        return centred / self.root(self.variance(centred), eps)

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return gamma * z + beta

    # --------------------------------------------------------------------- GELU (decoder-block)

    def gelu(self, x: Node) -> Node:
        """x Phi(x). decoder-block, "Building a Block from Two Residual Branches"."""
        return x * self.normal_cdf(x)

    def normal_cdf(self, x: Node) -> Node:
        """Phi(x) = (1 + erf(x / sqrt 2)) / 2."""
        return (1 + erf(x * x.tape.constant("sqrt_half"))) / 2

    # ------------------------------------------------- feed-forward and residual (decoder-block)

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

    # ------------------------------------------------------------------------ what is handed over

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        """The outputs (for ``vjp``: the gradients, by argument) as they are handed over.

        No rule of the documents: the place of mistakes that have nothing to do with what was
        asked, such as an answer of zeros. ``arguments`` are those of the question, by name.
        """
        del arguments
        return dict(outputs)
