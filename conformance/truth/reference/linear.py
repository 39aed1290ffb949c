"""The rules of the linear layer (linear-layer), values and gradients."""

from __future__ import annotations

from conformance.errors import Rejected
from conformance.truth.arithmetic.nodes import Node


class LinearRules:
    """y = x W + b at every position, and the three gradients that the document states."""

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
