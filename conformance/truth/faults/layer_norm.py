"""Mistakes in the values of layer normalisation, and with them in its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from conformance.truth.faults import Fault
from conformance.truth.functions import sqrt
from conformance.truth.native import narrowed
from conformance.truth.tape import Node, number, where

# ------------------------------------------------------------------------------ mean and variance


class SampleVariance(Fault):
    """The variance was divided by d - 1, as for a sample."""

    breaks = "LN-POPULATION-VARIANCE"
    mend = "Divide the sum of squared deviations by d: the population variance."

    def variance(self, centred: Node) -> Node:
        return (centred * centred).sum(-1, keepdims=True) / (centred.shape[-1] - 1)


class VarianceNotDivided(Fault):
    """The squared deviations were summed and not divided by d."""

    breaks = "LN-POPULATION-VARIANCE"
    mend = "Divide the sum of squared deviations by d."

    def variance(self, centred: Node) -> Node:
        return (centred * centred).sum(-1, keepdims=True)


class OnePassVariance(Fault):
    """The variance was the mean of the squares less the square of the mean, which cancels."""

    breaks = "LN-SHIFT"
    also = ("LN-POPULATION-VARIANCE", "LN-CONSTANT")
    mend = "Subtract the mean first, then square the deviations."
    native = True

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        mean = self.mean(x)
        variance = self.mean(x * x) - mean * mean
        return self.affine((x - mean) / self.root(variance, eps), gamma, beta)


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
    mend = "Add epsilon to the variance before taking the root: sqrt(variance + eps)."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance) + eps


class EpsForgotten(Fault):
    """Epsilon was left out."""

    breaks = "LN-EPS-INSIDE"
    also = ("LN-SCALE", "LN-CONSTANT", "LN-EPS-GIVEN")
    mend = "Add epsilon to the variance before taking the root."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance)


class EpsOneMillionth(Fault):
    """Epsilon was 1e-6, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-6")))


class EpsOneThousandth(Fault):
    """Epsilon was 1e-3, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-3")))


class EpsOneTrillionth(Fault):
    """Epsilon was 1e-12, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-12")))


class EpsOneHundredThousandth(Fault):
    """Epsilon was 1e-5, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    mend = "Pass the epsilon that is given on to the normalisation instead of its default."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-5")))


class EpsAsFloor(Fault):
    """Epsilon was a floor under the variance instead of a term added to it."""

    breaks = "LN-EPS-INSIDE"
    mend = "Add epsilon to every variance, large or small."

    def root(self, variance: Node, eps: Node) -> Node:
        sign = variance.tape.domain.sign((variance - eps).value)
        return sqrt(where(sign > 0, variance, eps))


class EpsAsFloorOfDeviation(Fault):
    """Epsilon was a floor under the standard deviation."""

    breaks = "LN-EPS-INSIDE"
    mend = "Add epsilon to the variance and take the root of the sum."

    def root(self, variance: Node, eps: Node) -> Node:
        sign = variance.tape.domain.sign((variance - eps * eps).value)
        return where(sign > 0, sqrt(where(sign > 0, variance, eps)), eps)


class EpsRelative(Fault):
    """Epsilon was taken relative to the variance, so that the scale of x made no difference."""

    breaks = "LN-SCALE"
    also = ("LN-EPS-INSIDE",)
    mend = "Add epsilon as it is given, not multiplied by the variance."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + eps * variance)


class EpsRoundedToFloat32(Fault):
    """Epsilon was rounded to float32 on its way."""

    breaks = "LN-EPS-GIVEN"
    mend = "Keep epsilon in float64 where the computation is in float64."
    unseen: Mapping[str, str] = {"float32": "epsilon is given in float32 there"}

    def root(self, variance: Node, eps: Node) -> Node:
        rounded = np.float32(variance.tape.domain.magnitude(eps.value))
        return sqrt(variance + eps.tape.floats(rounded.astype(np.float64)))


class RootForgotten(Fault):
    """The centred features were divided by variance + eps, not by its root."""

    breaks = "LN-EPS-INSIDE"
    also = ("LN-SCALE",)
    mend = "Divide by the square root of variance + eps."

    def root(self, variance: Node, eps: Node) -> Node:
        return variance + eps


class ZeroVarianceGuarded(Fault):
    """Where variance + eps is zero the output was beta, as if the division had a result."""

    breaks = "LN-NO-EPS-UNDEFINED"
    mend = "Let the division by zero show, as an exception or as a value that is not finite."

    def root(self, variance: Node, eps: Node) -> Node:
        total = variance + eps
        one = total.tape.floats(np.ones(total.shape))
        return sqrt(where(total.magnitude() > 0, total, one))


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
    mend = "Multiply the normalised vector by gamma before adding beta."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return z + beta


class BetaForgotten(Fault):
    """The shift beta was not added."""

    breaks = "LN-AFFINE"
    also = ("LN-CONSTANT",)
    mend = "Add beta after multiplying by gamma."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return gamma * z


class BetaBeforeGamma(Fault):
    """The shift beta was added before the scale gamma was applied."""

    breaks = "LN-AFFINE"
    also = ("LN-CONSTANT",)
    mend = "Multiply by gamma first, then add beta."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return gamma * (z + beta)


class GammaPlusOne(Fault):
    """The scale was 1 + gamma, as where gamma is stored as its difference from one."""

    breaks = "LN-AFFINE"
    mend = "Multiply by gamma itself."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return (1 + gamma) * z + beta
