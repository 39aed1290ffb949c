"""Other honest ways to compute the same mathematics.

A bound must hold for every implementation that is right, and shipped kernels do not all round in
the same places. Each form here is equal to the reference in exact arithmetic; a bound is the
largest over the reference and the forms.
"""

from __future__ import annotations

from conformance.truth.functions import erfc, sqrt
from conformance.truth.reference import Reference
from conformance.truth.tape import Node


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


FORMS: tuple[type[Reference], ...] = (Reference, ComplementaryError, FoldedNorm, FoldedAffine)
