"""Other honest ways to compute the same mathematics.

A bound must hold for every implementation that is right, and shipped kernels do not all round in
the same places. Each form here is equal to the reference in exact arithmetic; a bound is the
largest over the forms. They differ in three places, and every combination is a form:

* the normal distribution function by ``erf`` or by ``erfc``;
* layer norm differentiated step by step, or its gradient written by hand: from the standardised
  values, or folded into sums over x, with the values folded into scale and shift as well;
* and every one of them may begin a sum with what is added to it, take running statistics, and
  attend and score without ever storing normalised probabilities (``Accumulating``);
* and step as the optimisers of libraries do (``FusedOptimiser``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.truth.arithmetic.functions import erfc, sqrt
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.proof.accumulating import Accumulating
from conformance.truth.reference import Reference


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


class FusedOptimiser(Reference):
    """AdamW and clipping with all that libraries round beside the steps of the documents.

    Not an alternative but added to the reference, so that one form covers both ways. u is the unit
    roundoff; w = 1 - beta_1 is a double in some libraries and rounded to the precision in others.
    """

    def first_moment(self, moment: Node, gradient: Node, beta_1: Node) -> Node:
        """m + (g - m) w, or g - (g - m) (1 - w) where w is at least a half, as ``lerp`` has it.

        The difference, the product and the weight are rounded: each moves the result r by up to
        u w |g - m|, with 1 - w for w in the second way, where it is no larger. The sum is rounded
        to u |r|. So r is off by up to u (|r| + 3 w |g - m|).
        """
        found = super().first_moment(moment, gradient, beta_1)
        share = (1 - beta_1).magnitude()

        def extent() -> np.ndarray:
            apart = found.tape.domain.magnitude(gradient.value - moment.value)
            return np.asarray(found.magnitude() + 3 * share * apart)

        return _also(found, 1, extent)

    def direction(self, first: Node, second: Node, eps: Node) -> Node:
        """(rate / c_1) m / (sqrt(v) / sqrt(c_2) + eps), c the corrections: a second root.

        Where the reference divides v by c_2 under the root, 2.5 ulp of v and so 1.25 of the root,
        this takes the root of c_2, 1 ulp, and divides by it, 2.5 ulp. One ulp is at most 2u, so
        the root is off by 4.5 u more. The divisions by c_1 and by the root are as many. At last
        the decay may be added to the direction before both are scaled: one rounding more.
        """
        root = sqrt(second)
        found = first / (_also(root, 4.5) + eps)
        return _also(found, 1)

    def decayed(self, parameter: Node, learning_rate: Node, weight_decay: Node) -> Node:
        """p (1 - rate decay): the factor and the product are rounded, 2u of the result."""
        kept = super().decayed(parameter, learning_rate, weight_decay)
        if weight_decay.zero().all():
            return kept
        return _also(kept, 2)

    def sum_of_squares(self, node: Node) -> Node:
        """The square of the norm of one gradient, for a norm of norms.

        Its root is off by 1 ulp, so the square by 4u; squaring rounds once more, and summing n
        squares as a reduction of its own twice at most beyond the n - 1 additions.
        """
        return _also(super().sum_of_squares(node), 7)


def _also(node: Node, factor: float, extent: Callable[[], np.ndarray] | None = None) -> Node:
    """The same value off by ``factor`` u of ``extent`` (default: its own) more.

    Zero where it is zero: what is exact in every way of computing it has nothing to round.
    """
    return Node(
        node.value,
        (node,),
        lambda g: (g,),
        factor=factor,
        extent=extent or node.magnitude,
        steps=1,
        zero=node.zero,
    )


def _combined(*parts: Any) -> type[Reference]:
    return type("".join(part.__name__ for part in parts), parts, {})


FORMS: tuple[type[Reference], ...] = tuple(
    _combined(*cdf, FusedOptimiser, norm)
    for cdf in ((), (ComplementaryError,))
    for norm in (Accumulating, HandwrittenNorm, FoldedNorm, FoldedAffine)
)

#: The two that errors are tried on: as the documents have it, and where most is rounded.
DISTURBED: tuple[type[Reference], ...] = (
    Reference,
    _combined(ComplementaryError, FusedOptimiser, FoldedNorm),
)
