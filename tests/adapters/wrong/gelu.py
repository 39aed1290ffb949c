"""Activations with one mistake each, written in plain NumPy."""

from __future__ import annotations

import math

import numpy as np

from conformance.backends.numpy import NumpyBackend

ERF = np.vectorize(math.erf, otypes=[np.float64])
SQRT_HALF = math.sqrt(0.5)
EXACT = NumpyBackend()


def same(x, values):
    return np.asarray(values, dtype=x.dtype)


def logistic(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def logistic_slope(x, factor):
    s = logistic(factor * x)
    return s + factor * x * s * (1 - s)


def tanh_slope(x):
    c = math.sqrt(2 / math.pi)
    t = np.tanh(c * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)


class Activation(NumpyBackend):
    """Values, or slopes, that the subclass computes over doubles."""

    def gelu(self, x):
        return same(x, self.value(x.astype(np.float64), x))

    def gelu_vjp(self, upstream, x):
        return {"x": same(x, upstream * self.slope(x.astype(np.float64), x))}

    def value(self, wide, x):
        return EXACT.gelu(x)

    def slope(self, wide, x):
        return EXACT.gelu_vjp(np.ones_like(x), x)["x"]


class CopiesTheApproximation(Activation):
    fault = "tanh-gelu"

    def value(self, wide, x):
        return 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))

    def slope(self, wide, x):
        return tanh_slope(wide)


class BuildsTanhFromExponentials(Activation):
    fault = "tanh-overflow"

    def gelu(self, x):
        with np.errstate(all="ignore"):
            e = np.exp(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
            return 0.5 * x * (1 + (e - 1) / (e + 1))


class NeverChangedTheDefault(Activation):
    fault = "relu"

    def value(self, wide, x):
        return np.maximum(wide, 0)

    def slope(self, wide, x):
        return (wide > 0) * 1.0


class CutsTheNegativeSide(Activation):
    fault = "negative-side-cut"

    def value(self, wide, x):
        return np.where(x > 0, EXACT.gelu(x), 0)

    def slope(self, wide, x):
        return np.where(x > 0, super().slope(wide, x), 0)


class UsesSwish(Activation):
    fault = "silu"

    def value(self, wide, x):
        return wide * logistic(wide)

    def slope(self, wide, x):
        return logistic_slope(wide, 1.0)


class UsesTheQuickForm(Activation):
    fault = "quick-gelu"

    def value(self, wide, x):
        return wide * logistic(1.702 * wide)

    def slope(self, wide, x):
        return logistic_slope(wide, 1.702)


class DoesNothing(Activation):
    fault = "identity-for-gelu"

    def value(self, wide, x):
        return wide

    def slope(self, wide, x):
        return np.ones(wide.shape)


class ForgetsTheRootOfTwo(Activation):
    fault = "root-two-forgotten"

    def value(self, wide, x):
        return 0.5 * wide * (1 + ERF(wide))


class ForgetsTheHalf(Activation):
    fault = "half-forgotten"

    def value(self, wide, x):
        return 2 * EXACT.gelu(x)

    def slope(self, wide, x):
        return 2 * super().slope(wide, x)


class HasFloatConstants(Activation):
    fault = "float32-constants"

    def value(self, wide, x):
        narrow = float(np.float32(SQRT_HALF))
        return x * 0.5 * np.vectorize(math.erfc, otypes=[float])(-wide * narrow)


class LosesTheDensity(Activation):
    fault = "density-term-forgotten"

    def slope(self, wide, x):
        return 0.5 * (1 + ERF(wide * SQRT_HALF))


class DifferentiatesTheApproximation(Activation):
    fault = "tanh-gelu-backward"

    def slope(self, wide, x):
        return tanh_slope(wide)


class DifferentiatesTheQuickForm(Activation):
    fault = "quick-gelu-backward"

    def slope(self, wide, x):
        return logistic_slope(wide, 1.702)


class DifferentiatesRelu(Activation):
    fault = "relu-backward"

    def slope(self, wide, x):
        return np.heaviside(wide, 0.0)
