"""Other honest ways to compute the same mathematics.

A bound must hold for every implementation that is right, and shipped kernels do not all round in
the same places. Each form here is equal to the reference in exact arithmetic; a bound is the
largest over the forms. They differ in three places, and every combination is a form:

* the normal distribution function by ``erf`` or by ``erfc``;
* layer norm differentiated step by step, or its gradient written by hand: from the standardised
  values, or folded into sums over x, with the values folded into scale and shift as well;
* and every one of them may begin a sum with what is added to it, take running statistics, and
  attend and score without ever storing normalised probabilities (``Accumulating``).
"""

from __future__ import annotations

from typing import Any

from conformance.truth.accumulating import Accumulating
from conformance.truth.functions import erfc
from conformance.truth.reference import Reference
from conformance.truth.tape import Node


class ComplementaryError(Reference):
    """Phi(x) = erfc(-x / sqrt 2) / 2: relatively exact in the left tail, as good libraries do."""

    def normal_cdf(self, x: Node) -> Node:
        return erfc(-(x * x.tape.constant("sqrt_half"))) / 2


class HandwrittenNorm(Accumulating):
    """A layer norm whose gradient is a formula, not the derivative of its steps.

    With z the standardised values, r = 1 / root and a = gamma G:
    dx = r (a - mean(a) - z mean(a z)), dgamma = the sum of G z, dbeta = the sum of G. Unlike the
    derivative of the steps, it keeps the error that the mean was computed with.
    """

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        mean, variance = self.moments(x)
        root = self.root(variance, eps)

        def rule(g: Node) -> tuple[Node, Node, Node]:
            scale = 1 / root
            z = self.standardised(x, mean, scale)
            dx = self.input_gradient_of_norm(g * gamma, x, mean, scale)
            return dx, (g * z).rows().sum(0), g.rows().sum(0)

        return self.values(x, mean, root, gamma, beta).with_rule((x, gamma, beta), rule)

    def values(self, x: Node, mean: Node, root: Node, gamma: Node, beta: Node) -> Node:
        return self.affine((x - mean) / root, gamma, beta)

    def standardised(self, x: Node, mean: Node, scale: Node) -> Node:
        return (x - mean) * scale

    def input_gradient_of_norm(self, a: Node, x: Node, mean: Node, scale: Node) -> Node:
        z = self.standardised(x, mean, scale)
        return scale * (a - self.mean(a) - z * self.mean(a * z))


class FoldedNorm(HandwrittenNorm):
    """x * scale + shift with scale = r and shift = -mean r, and the gradient from sums over x.

    dx = r a + b x + c with b = (mean sum(a) - sum(a x)) r^3 / d and c = -b mean - sum(a) r / d, as
    fused CPU kernels have it.
    """

    def values(self, x: Node, mean: Node, root: Node, gamma: Node, beta: Node) -> Node:
        scale = 1 / root
        return (x * scale - mean * scale) * gamma + beta

    def standardised(self, x: Node, mean: Node, scale: Node) -> Node:
        return x * scale - mean * scale

    def input_gradient_of_norm(self, a: Node, x: Node, mean: Node, scale: Node) -> Node:
        width = x.shape[-1]
        total, along_x = a.sum(-1, keepdims=True), (a * x).sum(-1, keepdims=True)
        b = (total * mean - along_x) * scale * scale * scale / width
        c = -(b * mean) - total * scale / width
        return scale * a + b * x + c


class FoldedAffine(FoldedNorm):
    """x * (gamma r) + (beta - mean gamma r): the affine map folded in too."""

    def values(self, x: Node, mean: Node, root: Node, gamma: Node, beta: Node) -> Node:
        scale = gamma / root
        return x * scale + (beta - mean * scale)


def _combined(*parts: Any) -> type[Reference]:
    return type("".join(part.__name__ for part in parts), parts, {})


FORMS: tuple[type[Reference], ...] = tuple(
    _combined(*cdf, norm)
    for cdf in ((), (ComplementaryError,))
    for norm in (Accumulating, HandwrittenNorm, FoldedNorm, FoldedAffine)
)

#: The two that errors are tried on: as the documents have it, and where most is rounded.
DISTURBED: tuple[type[Reference], ...] = (Reference, _combined(ComplementaryError, FoldedNorm))
