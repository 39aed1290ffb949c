"""Mistakes in the values of layer normalisation, and with them in its gradients."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from conformance.truth.arithmetic.functions import sqrt
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import number

# ------------------------------------------------------------------------------ mean and variance


class SampleVariance(Fault):
    """The variance was divided by d - 1, as for a sample."""

    breaks = "LN-POPULATION-VARIANCE"
    sources = ("C-01", "BUG-LN-01")
    mend = "Divide the sum of squared deviations by d: the population variance."

    def variance(self, centred: Node) -> Node:
        return (centred * centred).sum(-1, keepdims=True) / (centred.shape[-1] - 1)


class VarianceNotDivided(Fault):
    """The squared deviations were summed and not divided by d."""

    breaks = "LN-POPULATION-VARIANCE"
    mend = "Divide the sum of squared deviations by d."

    def variance(self, centred: Node) -> Node:
        return (centred * centred).sum(-1, keepdims=True)


class MeanNotSubtracted(Fault):
    """The mean was not subtracted at all, as in RMS normalisation."""

    breaks = "LN-MEAN"
    also = ("LN-SHIFT", "LN-CONSTANT")
    mend = "Subtract the mean of the features before squaring and before dividing."

    def mean(self, x: Node) -> Node:
        return x.tape.floats(np.zeros((*x.shape[:-1], 1)))


class MeanKeptInNumerator(Fault):
    """The mean was subtracted for the variance and not from what is divided."""

    breaks = "LN-MEAN"
    also = ("LN-SHIFT", "LN-CONSTANT")
    mend = "Divide the centred features, x less the mean."

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        variance = self.variance(x - self.mean(x))
        return self.affine(x / self.root(variance, eps), gamma, beta)


# -------------------------------------------------------------------------------------- epsilon


class EpsOutsideRoot(Fault):
    """Epsilon was added to the standard deviation, outside the root."""

    breaks = "LN-EPS-INSIDE"
    sources = ("C-03", "BUG-LN-02")
    mend = "Add epsilon to the variance before taking the root: sqrt(variance + eps)."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance) + eps


class EpsForgotten(Fault):
    """Epsilon was left out."""

    breaks = "LN-EPS-INSIDE"
    also = ("LN-SCALE", "LN-CONSTANT", "LN-EPS-GIVEN")
    sources = ("C-02",)
    mend = "Add epsilon to the variance before taking the root."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance)


class EpsOneMillionth(Fault):
    """Epsilon was 1e-6, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    sources = ("C-04", "BUG-LN-03")
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-6")))


class RootForgotten(Fault):
    """The centred features were divided by variance + eps, not by its root."""

    breaks = "LN-EPS-INSIDE"
    also = ("LN-SCALE",)
    mend = "Divide by the square root of variance + eps."

    def root(self, variance: Node, eps: Node) -> Node:
        return variance + eps


# ---------------------------------------------------------------------------------- gamma and beta


class AffineForgotten(Fault):
    """Scale gamma and shift beta were not applied."""

    breaks = "LN-AFFINE"
    mend = "Multiply the normalised vector by gamma and add beta."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return z


class GammaForgotten(Fault):
    """The scale gamma was not applied."""

    breaks = "LN-AFFINE"
    sources = ("C-08",)
    mend = "Multiply the normalised vector by gamma before adding beta."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return z + beta


class BetaForgotten(Fault):
    """The shift beta was not added."""

    breaks = "LN-AFFINE"
    also = ("LN-CONSTANT",)
    sources = ("C-08",)
    mend = "Add beta after multiplying by gamma."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return gamma * z


class BetaBeforeGamma(Fault):
    """The shift beta was added before the scale gamma was applied."""

    breaks = "LN-AFFINE"
    also = ("LN-CONSTANT",)
    sources = ("C-08",)
    mend = "Multiply by gamma first, then add beta."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return gamma * (z + beta)


class GammaPlusOne(Fault):
    """The scale was 1 + gamma, as where gamma is stored as its difference from one."""

    breaks = "LN-AFFINE"
    mend = "Multiply by gamma itself."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return (1 + gamma) * z + beta
