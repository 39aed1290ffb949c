"""Linear layers with one mistake each, written in plain NumPy as their authors would have."""

from __future__ import annotations

import numpy as np

from conformance import Rejected
from conformance.backends.numpy import NumpyBackend


def summed(upstream):
    return upstream.reshape(-1, upstream.shape[-1]).sum(axis=0)


class Base(NumpyBackend):
    """Refuses what must be refused, then leaves the product and the bias to the subclass."""

    def linear(self, x, weight, bias=None):
        super().linear(x, weight, bias)
        y = self.times(x, weight)
        return y if bias is None else self.plus(y, bias)

    def times(self, x, weight):
        return np.matmul(x, weight)

    def plus(self, y, bias):
        return y + bias


# ------------------------------------------------------------------------------------ the weight


class StoresOutByIn(Base):
    fault = "transposed-weight"

    def times(self, x, weight):
        return np.einsum("...i,oi->...o", x, weight)


class ReshapesInsteadOfTransposing(Base):
    fault = "weight-reread"

    def times(self, x, weight):
        return x @ weight.ravel().reshape(weight.shape[::-1]).T


class ContractsTheTimeAxis(Base):
    fault = "positions-mixed"

    def times(self, x, weight):
        return np.matmul(np.swapaxes(x, -1, -2) if x.ndim > 1 else x, weight)


class AveragesTheBatch(Base):
    fault = "sequences-mixed"

    def times(self, x, weight):
        if x.ndim < 3:
            return x @ weight
        return np.broadcast_to(x.mean(axis=0), x.shape) @ weight


# -------------------------------------------------------------------------------------- the bias


class DropsTheBias(Base):
    fault = "bias-forgotten"

    def plus(self, y, bias):
        return y


class AddsTheBiasOnceASequence(Base):
    fault = "bias-at-first-position"

    def plus(self, y, bias):
        y = y.copy()
        y[(..., slice(1), slice(None)) if y.ndim > 1 else ...] += bias
        return y


class AddsTheBiasTwice(Base):
    fault = "bias-twice"

    def plus(self, y, bias):
        y = y + bias
        y += bias
        return y


class SubtractsTheBias(Base):
    fault = "bias-subtracted"

    def plus(self, y, bias):
        return y - bias


class SumsIntoTheBias(NumpyBackend):
    """A plan is kept for each question, and its accumulator is filled when the plan is made."""

    fault = "accumulated-into-bias"

    def __init__(self):
        self.accumulators = {}

    def linear(self, x, weight, bias=None):
        y = super().linear(x, weight, bias)
        if bias is None:
            return y
        plan = (x.shape, x.dtype, x.tobytes(), weight.tobytes(), bias.tobytes())
        if plan not in self.accumulators:
            self.accumulators[plan] = np.repeat(bias[None], max(1, y.size // bias.size), axis=0)
        total = self.accumulators[plan]
        total += (x @ weight).reshape(-1, len(bias)) if y.size else 0
        return total.reshape(y.shape).copy() if y.size else y


class FillsInABias(NumpyBackend):
    fault = "bias-of-ones"

    def linear(self, x, weight, bias=None):
        if bias is None and np.ndim(weight) == 2:
            bias = np.ones(weight.shape[1], weight.dtype)
        return super().linear(x, weight, bias)


# ---------------------------------------------------------------------------------------- shapes


class KeepsTheBatchAxisItAdded(NumpyBackend):
    fault = "rank-one-lifted"

    def linear(self, x, weight, bias=None):
        y = super().linear(x, weight, bias)
        return y[None] if x.ndim == 1 else y


class FlattensTheBatch(NumpyBackend):
    fault = "leading-axes-merged"

    def linear(self, x, weight, bias=None):
        y = super().linear(x, weight, bias)
        return y.reshape(-1, y.shape[-1]) if y.ndim > 1 and y.size else y


class Squeezes(NumpyBackend):
    fault = "leading-one-dropped"

    def linear(self, x, weight, bias=None):
        y = super().linear(x, weight, bias)
        ones = tuple(axis for axis, size in enumerate(y.shape[:-1]) if size == 1)
        return y.squeeze(ones)


class RefusesAnEmptyBatch(NumpyBackend):
    fault = "empty-refused"

    def linear(self, x, weight, bias=None):
        if np.ndim(x) and 0 in x.shape[:-1]:
            raise ValueError("empty batch")
        return super().linear(x, weight, bias)

    def linear_vjp(self, upstream, x, weight, bias=None):
        if 0 in x.shape[:-1]:
            raise ValueError("empty batch")
        return super().linear_vjp(upstream, x, weight, bias)


class InsistsOnABias(NumpyBackend):
    fault = "bias-demanded"

    def linear(self, x, weight, bias=None):
        if bias is None:
            raise TypeError("bias must not be None")
        return super().linear(x, weight, bias)

    def linear_vjp(self, upstream, x, weight, bias=None):
        if bias is None:
            raise TypeError("bias must not be None")
        return super().linear_vjp(upstream, x, weight, bias)


# ------------------------------------------------------- accepted, though it must be refused


class MultipliesByAnything(NumpyBackend):
    fault = "weight-rank-accepted"

    def linear(self, x, weight, bias=None):
        if np.ndim(weight) == 2:
            return super().linear(x, weight, bias)
        y = np.dot(x, weight) if np.ndim(weight) < 2 else np.matmul(x, weight)
        return y if bias is None else y + bias


class MultipliesByNoRows(NumpyBackend):
    fault = "zero-input-width-accepted"

    def linear(self, x, weight, bias=None):
        if np.ndim(weight) != 2 or weight.shape[0]:
            return super().linear(x, weight, bias)
        y = np.zeros((*x.shape[:-1], weight.shape[1]), x.dtype)
        return y if bias is None else y + bias


class MultipliesByNoColumns(NumpyBackend):
    fault = "zero-output-width-accepted"

    def linear(self, x, weight, bias=None):
        if np.ndim(weight) != 2 or weight.shape[1] or not weight.shape[0]:
            return super().linear(x, weight, bias)
        if bias is not None:
            raise Rejected("bias-rank")
        return np.matmul(x, weight)


class BroadcastsAnyBias(NumpyBackend):
    fault = "bias-rank-accepted"

    def linear(self, x, weight, bias=None):
        if bias is not None and np.ndim(bias) != 1 and np.ndim(weight) == 2 and weight.shape[1]:
            return super().linear(x, weight) + bias
        return super().linear(x, weight, bias)


class BroadcastsABiasOfOne(NumpyBackend):
    fault = "bias-width-accepted"

    def linear(self, x, weight, bias=None):
        if np.shape(bias) == (1,) and np.ndim(weight) == 2:
            bias = np.repeat(bias, weight.shape[1])
        return super().linear(x, weight, bias)


class TakesNumbersForVectors(NumpyBackend):
    fault = "number-taken-for-vector"

    def linear(self, x, weight, bias=None):
        return super().linear(np.atleast_1d(x), weight, bias)


class CutsTheInput(NumpyBackend):
    fault = "input-width-accepted"

    def linear(self, x, weight, bias=None):
        if np.ndim(x) and np.ndim(weight) == 2 and min(x.shape[-1], weight.shape[0]) > 0:
            width = min(x.shape[-1], weight.shape[0])
            x, weight = x[..., :width], weight[:width]
        return super().linear(x, weight, bias)


# ------------------------------------------------------------------------------------- gradients


class Gradients(NumpyBackend):
    """Right gradients, of which the subclass spoils some."""

    def linear_vjp(self, upstream, x, weight, bias=None):
        gradients = super().linear_vjp(upstream, x, weight, bias)
        rows = (x.reshape(-1, x.shape[-1]), upstream.reshape(-1, upstream.shape[-1]))
        self.spoil(gradients, upstream, *rows, weight, bias)
        return gradients

    def spoil(self, gradients, upstream, x, g, weight, bias):
        raise NotImplementedError


class DividesTheWeightGradient(Gradients):
    fault = "weight-gradient-averaged"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        gradients["weight"] /= np.array(max(1, len(g)), g.dtype)


class DividesTheBiasGradient(Gradients):
    fault = "bias-gradient-averaged"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        if bias is not None and len(g):
            gradients["bias"] = g.mean(axis=0)


class TakesTheMeanOfBoth(Gradients):
    """Over no positions too, where the mean is NaN."""

    fault = "gradients-averaged"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        with np.errstate(all="ignore"):
            gradients["weight"] = (x.T @ g) / np.array(len(g), g.dtype)
            if bias is not None:
                gradients["bias"] = np.add.reduce(g) / np.array(len(g), g.dtype)


class OverwritesBoth(Gradients):
    fault = "gradients-of-last-position"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        for row, above in zip(x, g, strict=True):
            gradients["weight"] = row[:, None] * above
            if bias is not None:
                gradients["bias"] = above.copy()


class TakesTheMeanOfTheUpstream(Gradients):
    """Over no positions as well, where the mean is NaN."""

    fault = "bias-gradient-averaged"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        if bias is not None:
            with np.errstate(all="ignore"):
                gradients["bias"] = np.add.reduce(g) / np.array(len(g), g.dtype)


class OverwritesTheWeightGradient(Gradients):
    fault = "weight-gradient-of-last-position"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        for row, above in zip(x, g, strict=True):
            gradients["weight"] = np.outer(row, above)


class StopsAfterOnePosition(Gradients):
    fault = "weight-gradient-of-first-position"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        if len(x):
            gradients["weight"] = np.outer(x[0], g[0])


class OverwritesTheBiasGradient(Gradients):
    fault = "bias-gradient-of-last-position"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        if bias is not None and len(g):
            gradients["bias"] = g[-1].copy()


class KeepsTheFirstBiasGradient(Gradients):
    fault = "bias-gradient-of-first-position"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        if bias is not None and len(g):
            gradients["bias"] = g[0].copy()


class PairsPositionsBackwards(Gradients):
    fault = "positions-exchanged-in-weight-gradient"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        gradients["weight"] = np.flip(x, axis=0).T @ g


class ForgetsToTranspose(Gradients):
    fault = "input-gradient-untransposed"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        gradients["x"] = upstream @ weight


class AddsTheBiasToTheUpstream(Gradients):
    fault = "input-gradient-plus-bias"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        if bias is not None:
            gradients["x"] = (upstream + bias) @ weight.T


class ReturnsTheGradientOutByIn(Gradients):
    fault = "weight-gradient-transposed"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        gradients["weight"] = g.T @ x


class SumsTheFeatures(Gradients):
    fault = "bias-gradient-over-features"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        if bias is not None:
            gradients["bias"] = np.asarray(upstream.sum(axis=-1))


class SumsOneAxis(Gradients):
    fault = "bias-gradient-over-first-axis"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        if bias is not None:
            gradients["bias"] = upstream.sum(axis=0) if upstream.ndim > 1 else upstream.copy()


class ReturnsTheDescentStep(Gradients):
    fault = "gradients-negated"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        for name in gradients.keys() - {"x"}:
            gradients[name] = -gradients[name]


class DetachesTheOutput(NumpyBackend):
    fault = "gradients-absent"

    def linear_vjp(self, upstream, x, weight, bias=None):
        self.linear(x, weight, bias)  # which refuses what must be refused
        return {}

    def feed_forward_vjp(self, upstream, x, w_1, b_1, w_2, b_2):
        return {}

    def feed_forward_sublayer_vjp(self, upstream, x, **parameters):
        return {"x": upstream.copy()}


class FreezesTheWeight(Gradients):
    fault = "weight-gradient-absent"

    def spoil(self, gradients, upstream, x, g, weight, bias):
        del gradients["weight"]

    def feed_forward_vjp(self, upstream, x, w_1, b_1, w_2, b_2):
        right = NumpyBackend().feed_forward_vjp(upstream, x, w_1, b_1, w_2, b_2)
        return {name: right[name] for name in ("x", "b_1", "b_2")}
