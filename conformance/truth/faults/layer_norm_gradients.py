"""Mistakes in the gradients of layer normalisation alone; its values are right.

With n = (x - mean) / s, s = sqrt(variance + eps) and g = gamma G, the gradients are
dx = (g - mean(g) - n mean(g n)) / s, dgamma = the sum of G n and dbeta = the sum of G.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import average
from conformance.truth.faults.layer_norm import EpsForgotten, SampleVariance
from conformance.truth.reference import Reference
from conformance.truth.reference.halves import halved


class MeanTermForgotten(Fault):
    """The gradient of x lacks the term that comes through the mean."""

    breaks = "LN-GRADIENT"
    mend = "Subtract the mean of gamma times the upstream gradient over the features."

    def mean(self, x: Node) -> Node:
        return super().mean(x).detach()


class MeanTermTwice(Fault):
    """In the gradient of x the term that comes through the mean was subtracted twice."""

    breaks = "LN-GRADIENT"
    sources = ("BUG-LN-09",)
    mend = "Subtract the mean of gamma times the upstream gradient once."

    def mean(self, x: Node) -> Node:
        width = x.shape[-1]
        return super().mean(x).with_rule((x,), lambda g: (((g + g) / width).broadcast_to(x.shape),))


class VarianceTermForgotten(Fault):
    """The gradient of x lacks the term that comes through the variance."""

    breaks = "LN-GRADIENT"
    mend = "Subtract n mean(g n), n being the normalised feature: the deviation depends on x."

    def root(self, variance: Node, eps: Node) -> Node:
        return super().root(variance, eps).detach()


class StatisticsTakenAsConstants(Fault):
    """The gradient of x treats mean and deviation as constants."""

    breaks = "LN-GRADIENT"
    mend = "Differentiate through the mean and through the variance as well."

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        centred = x - self.mean(x).detach()
        root = self.root(self.variance(centred), eps).detach()
        return self.affine(centred / root, gamma, beta)


class EpsForgottenBackward(Fault):
    """Epsilon was left out in the gradient, behind a value that has it."""

    breaks = "LN-GRADIENT"
    also = ("LN-EPS-INSIDE",)
    mend = "Divide by sqrt(variance + eps) backward as forward."

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        return halved("layer_norm", Reference(), EpsForgotten(), (x, gamma, beta), {"eps": eps})


class BesselBackward(Fault):
    """The gradient divides the variance by d - 1, behind a value that divides it by d."""

    breaks = "LN-GRADIENT"
    also = ("LN-POPULATION-VARIANCE",)
    mend = "Divide the sum of squared deviations by d backward as forward."

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        return halved("layer_norm", Reference(), SampleVariance(), (x, gamma, beta), {"eps": eps})


class GammaForgottenBackward(Fault):
    """The gradient of x was taken without the scale gamma."""

    breaks = "LN-GRADIENT"
    mend = "Multiply the upstream gradient by gamma before it goes through the normalisation."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        scaled = super().affine(z.detach(), gamma, beta)
        return scaled.with_rule((scaled, z), lambda g: (g, g))


class GammaGradientOfInput(Fault):
    """The gradient of gamma was summed with the input instead of the normalised input."""

    breaks = "LN-GRADIENT"
    mend = "Sum the upstream gradient times the normalised feature over the positions."

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        y = super().layer_norm(x, gamma.detach(), beta, eps=eps)
        return y.with_rule((y, gamma), lambda g: (g, (g * x).rows().sum(0)))


class _AffineGradientsMean(Reference):
    """The mean as a library has it: over no positions it is NaN."""

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return _averaged(super().affine, z, gamma, beta, _count(z))


class AffineGradientsAveraged(Fault):
    """The gradients of gamma and beta were averaged over the positions instead of summed."""

    breaks = "LN-GRADIENT"
    mend = "Sum over all positions, without dividing by their number."
    other_ways = (_AffineGradientsMean,)

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return _averaged(super().affine, z, gamma, beta, max(1, _count(z)))


class AffineGradientsOfLastPosition(Fault):
    """The gradients of gamma and beta kept only the contribution of the last position."""

    breaks = "LN-GRADIENT"
    mend = "Add up the contributions of all positions instead of overwriting them."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        if not z.value.size:  # there is no last one
            return super().affine(z, gamma, beta)
        y = super().affine(z, gamma.detach(), beta.detach())
        return y.with_rule(
            (y, gamma, beta),
            lambda g: (g, take((g * z).rows(), -1), take(g.rows(), -1)),
        )


class BackwardOverAllButFirstAxis(Fault):
    """The gradient of x took all that follows the first axis for the features of one row."""

    breaks = "LN-GRADIENT"
    also = ("LN-LAST-AXIS",)
    sources = ("BUG-LN-08",)
    mend = "The normalised width is that of the last axis, whatever the rank."

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        if x.ndim < 3 or not x.value.size:  # what follows the first axis are the features alone
            return super().layer_norm(x, gamma, beta, eps=eps)
        y = super().layer_norm(x.detach(), gamma, beta, eps=eps)
        mean = self.mean(x)
        deviation = self.root(self.variance(x - mean), eps)
        return y.with_rule((y, x), lambda g: (g, _over_wide_rows(g * gamma, x, mean, deviation)))


def _averaged(
    affine: Callable[[Node, Node, Node], Node], z: Node, gamma: Node, beta: Node, count: int
) -> Node:
    """``affine`` with the gradients of gamma and beta divided by ``count``."""
    y = affine(z, gamma.detach(), beta.detach())
    return y.with_rule(
        (y, gamma, beta),
        lambda g: (g, (g * z).rows().sum(0) / count, g.rows().sum(0) / count),
    )


def _count(z: Node) -> int:
    return int(np.prod(z.shape[:-1], dtype=np.int64))


def _over_wide_rows(g: Node, x: Node, mean: Node, deviation: Node) -> Node:
    """dx where x counts as one row for each element of its first axis, and row r is normalised
    with the mean and the deviation of the r-th position.
    """
    count, width = x.shape[0], int(np.prod(x.shape[1:], dtype=np.int64))
    of_row = slice(count)
    centre, spread = take(mean.rows(), of_row), take(deviation.rows(), of_row)
    g, n = g.reshape((count, width)), (x.reshape((count, width)) - centre) / spread
    dx: Node = (g - average(g, (-1,)) - n * average(g * n, (-1,))) / spread
    return dx.reshape(x.shape)
