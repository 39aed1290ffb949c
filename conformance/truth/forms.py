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

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        return _by_logarithm(super().probabilities(scores, allowed))

    def attend(self, q: Node, k: Node, v: Node) -> Node:
        """Key by key, as fused kernels attend, with the gradient that they have.

        The scale may be folded into q and k before their product, so its roundings count with the
        magnitudes of the terms. Weighted values are summed before they are divided, and rescaled
        whenever a larger score turns up: for each key an exponential and a product. Backward, the
        weights are computed again, and sum(p dp) over the keys is taken as sum(g y) over the
        features of the answer, with the error that the answer was computed with.
        """
        width, length = q.shape[-1], k.shape[-2]

        def terms() -> np.ndarray:
            product = q.magnitude() @ np.swapaxes(k.magnitude(), -1, -2)
            return np.asarray(product / np.sqrt(width))

        weights = self.attention_weights(self.scores(q, k).allowing(_SCALING, terms))
        y = (weights @ v).allowing(_RESCALING * length, lambda: weights.magnitude() @ v.magnitude())

        def rule(g: Node) -> tuple[Node, Node, Node]:
            moved = weights * (g @ v.swap_last() - (g * y).sum(-1, keepdims=True))
            dq, dk = moved @ k, moved.swap_last() @ q
            return self.scale(dq, width), self.scale(dk, width), weights.swap_last() @ g

        return y.with_rule((q, k, v), rule)

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
        y = super().attention_sublayer(x, gamma, beta, w_q, w_k, w_v, w_o, heads=heads, eps=eps)
        return y.allowing(w_o.shape[0], x.magnitude)


#: The roundings of a scale that is folded into two factors: two constants and two products.
_SCALING = 4.0

#: The roundings of one rescaling: an exponential near 1, to 3 ulp, and a product.
_RESCALING = 7.0


def _by_logarithm(p: Node) -> Node:
    """Probabilities as exp(log p): an error of u |log p| in the exponent, one of exp beside it."""

    def extent() -> np.ndarray:
        size = p.magnitude()
        logarithm = np.abs(np.log(np.where(size > 0, size, 1.0)))
        return np.asarray(size * (1 + logarithm))

    return p.allowing(8.0, extent)


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
