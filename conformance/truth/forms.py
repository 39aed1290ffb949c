"""Other honest ways to compute the same mathematics.

A bound must hold for every implementation that is right, and shipped kernels do not all round in
the same places. Each form here is equal to the reference in exact arithmetic; a bound is the
largest over the forms. They differ in three places, and every combination is a form:

* the normal distribution function by ``erf`` or by ``erfc``;
* layer norm centred, folded into scale and shift, or folded with gamma and beta;
* and every one of them may begin a sum with what is added to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.truth.functions import erfc, sqrt
from conformance.truth.reference import Reference
from conformance.truth.tape import Node


class Accumulating(Reference):
    """Sums that begin at the bias, or at the trunk, and take up the products from there.

    Each partial sum then holds the bias or the trunk, so that its rounding counts once for every
    term: n u |b| and f u |x| more than a sum that adds them last. ``addmm`` of the frameworks and
    most handwritten kernels do this.
    """

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        y = super().linear(x, weight, bias)
        if bias is None:
            return y
        return y.allowing(weight.shape[0], lambda: np.broadcast_to(bias.magnitude(), y.shape))

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


class FoldedNorm(Reference):
    """x * scale + shift with scale = 1 / root and shift = -mean / root, as fused CPU kernels do.

    Differentiating this form gives their folded backward as well: sums over x and not over the
    centred values.
    """

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        mean = self.mean(x)
        scale = 1 / sqrt(self.variance(x - mean) + eps)
        return (x * scale - mean * scale) * gamma + beta


class FoldedAffine(Reference):
    """x * (gamma / root) + (beta - mean * gamma / root): the affine map folded in too."""

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        mean = self.mean(x)
        scale = gamma / sqrt(self.variance(x - mean) + eps)
        return x * scale + (beta - mean * scale)


def _combined(*parts: Any) -> type[Reference]:
    return type("".join(part.__name__ for part in parts), parts, {})


FORMS: tuple[type[Reference], ...] = tuple(
    _combined(Accumulating, *cdf, *norm)
    for cdf in ((), (ComplementaryError,))
    for norm in ((), (FoldedNorm,), (FoldedAffine,))
)
