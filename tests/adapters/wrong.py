"""Ten implementations, each with one mistake that someone has made, written in plain NumPy.

None uses the fault classes of the kit: each is what its author would have written.
"""

from __future__ import annotations

import math

import numpy as np

from conformance.backends.numpy import NumpyBackend


class SampleVariance(NumpyBackend):
    """The kernel of someone who reached for the sample variance."""

    name = "sample-variance"

    def layer_norm(self, x, gamma, beta, *, eps):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        squares = np.sum(np.square(centred), axis=-1, keepdims=True)
        return centred / np.sqrt(squares / np.array(x.shape[-1] - 1, x.dtype) + eps) * gamma + beta


class EpsOutsideRoot(NumpyBackend):
    """The kernel of someone who keeps the divisor from zero instead of the variance."""

    name = "eps-outside-root"

    def layer_norm(self, x, gamma, beta, *, eps):
        deviation = np.std(x, axis=-1, keepdims=True)
        return (x - np.mean(x, axis=-1, keepdims=True)) / (deviation + eps) * gamma + beta


class EpsOneMillionth(NumpyBackend):
    """The kernel of someone who wired the epsilon of another library in, forward and backward."""

    name = "eps-one-millionth"

    def layer_norm(self, x, gamma, beta, *, eps):
        return super().layer_norm(x, gamma, beta, eps=1e-6)

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        return super().layer_norm_vjp(upstream, x, gamma, beta, eps=1e-6)


class AffineForgotten(NumpyBackend):
    """The kernel of someone who normalised and thought that was all."""

    name = "affine-forgotten"

    def layer_norm(self, x, gamma, beta, *, eps):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + eps)


class TanhGelu(NumpyBackend):
    """The activation of someone who copied the approximation."""

    name = "tanh-gelu"

    def gelu(self, x):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner))


class Relu(NumpyBackend):
    """The activation of someone who never changed the default, with its gradient."""

    name = "relu"

    def gelu(self, x):
        return np.maximum(x, np.zeros((), x.dtype))

    def gelu_vjp(self, upstream, x):
        return {"x": np.where(x > 0, upstream, np.zeros((), x.dtype))}


class TransposedWeight(NumpyBackend):
    """The layer of someone whose library stores [out, in]."""

    name = "transposed-weight"

    def linear(self, x, weight, bias=None):
        super().linear(x, weight, bias)  # refuses what must be refused
        y = np.matmul(x, np.swapaxes(weight, 0, 1))
        return y if bias is None else y + bias


class BiasForgotten(NumpyBackend):
    """The layer of someone who takes a bias and drops it."""

    name = "bias-forgotten"

    def linear(self, x, weight, bias=None):
        super().linear(x, weight, bias)
        return np.einsum("...i,io->...o", x, weight)


class BiasGradientAveraged(NumpyBackend):
    """The gradient of someone who divides by the number of positions, as a mean loss would."""

    name = "bias-gradient-averaged"

    def linear_vjp(self, upstream, x, weight, bias=None):
        gradients = super().linear_vjp(upstream, x, weight, bias)
        if bias is not None and upstream.size:
            gradients["bias"] = upstream.reshape(-1, upstream.shape[-1]).mean(axis=0)
        return gradients


class WeightGradientOfLastPosition(NumpyBackend):
    """The gradient of someone who assigns in the loop over positions instead of adding."""

    name = "weight-gradient-of-last-position"

    def linear_vjp(self, upstream, x, weight, bias=None):
        gradients = super().linear_vjp(upstream, x, weight, bias)
        rows = x.reshape(-1, x.shape[-1])
        for row, g in zip(rows, upstream.reshape(-1, upstream.shape[-1]), strict=True):
            gradients["weight"] = np.outer(row, g)
        return gradients
