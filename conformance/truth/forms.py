"""Other honest ways to compute the same mathematics.

A bound must hold for every implementation that is right, and shipped kernels do not all round in
the same places. Each form here is equal to the reference in exact arithmetic; a bound is the
largest over the forms. They differ in three places, and every combination is a form:

* the normal distribution function by ``erf`` or by ``erfc``;
* layer norm differentiated step by step, or its gradient written by hand: from the standardised
  values, or folded into sums over x, with the values folded into scale and shift as well;
* and every one of them may begin a sum with what is added to it, and take running statistics.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.truth.functions import erfc
from conformance.truth.reference import Reference
from conformance.truth.tape import Node


class Accumulating(Reference):
    """Sums that begin at the bias, or at the trunk, and take up the products from there.

    Each partial sum then holds the bias or the trunk, so that its rounding counts once for every
    term: n u |b| and f u |x| more than a sum that adds them last. ``addmm`` of the frameworks and
    most handwritten kernels do this. Running means and variances accumulate likewise.
    """

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        y = super().linear(x, weight, bias)
        if bias is None:
            return y
        return y.allowing(weight.shape[0], lambda: np.broadcast_to(bias.magnitude(), y.shape))

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        mean, variance = self.moments(x)
        return self.affine((x - mean) / self.root(variance, eps), gamma, beta)

    def moments(self, x: Node) -> tuple[Node, Node]:
        """Mean and variance, the variance as far off as Welford's one pass over the features.

        His running mean is off by up to about n u mean|x| at any feature. That error enters the
        sum of squares to first order, times the deviation of the feature from the mean, so that
        the variance is off by up to 2 sqrt(2) n u mean|x| sigma (Cauchy and Schwarz over the
        features). 3 (n + 1) covers it together with the rounding of the update.
        """
        mean = self.mean(x)
        variance = self.variance(x - mean)
        width = x.shape[-1]

        def extent() -> np.ndarray:
            typical = x.magnitude().sum(-1, keepdims=True) / width
            return np.asarray(np.sqrt(variance.magnitude()) * typical)

        return mean, variance.allowing(3 * (width + 1), extent)

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
        y = super().feed_forward_sublayer(x, gamma, beta, w_1, b_1, w_2, b_2, eps=eps)
        return y.allowing(w_2.shape[0], x.magnitude)


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
