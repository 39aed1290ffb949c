"""Layer normalisations with one mistake each, written in plain NumPy."""

from __future__ import annotations

import warnings

import numpy as np

from conformance.backends.numpy import NumpyBackend

LAST = {"axis": -1, "keepdims": True}


class Kernel(NumpyBackend):
    """(x - mean) / deviation, of which a subclass computes one part otherwise."""

    def layer_norm(self, x, gamma, beta, *, eps):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a mean over no positions
            normal = self.numerator(x) / self.deviation(x, np.array(eps, x.dtype))
        return self.scaled(normal, gamma, beta)

    def numerator(self, x):
        return x - np.mean(x, **LAST)

    def deviation(self, x, eps):
        return np.sqrt(np.var(x, **LAST) + eps)

    def scaled(self, normal, gamma, beta):
        return normal * gamma + beta


# ---------------------------------------------------------------------------- mean and variance


class ReachesForTheSample(Kernel):
    fault = "sample-variance"

    def deviation(self, x, eps):
        count = np.array(x.shape[-1] - 1, x.dtype)
        return np.sqrt(np.square(self.numerator(x)).sum(**LAST) / count + eps)


class ForgetsToDivide(Kernel):
    fault = "variance-not-divided"

    def deviation(self, x, eps):
        return np.sqrt(np.square(self.numerator(x)).sum(**LAST) + eps)


class NormalisesByRootMeanSquare(Kernel):
    fault = "mean-not-subtracted"

    def numerator(self, x):
        return x

    def deviation(self, x, eps):
        return np.sqrt(np.mean(x * x, **LAST) + eps)


class CentresTheVarianceOnly(Kernel):
    fault = "mean-kept-in-numerator"

    def numerator(self, x):
        return x


class PadsTheRow(Kernel):
    """Zeros up to a multiple of the lanes, and NumPy's own statistics over all of them."""

    fault = "padded-to-eight"
    lanes = 8

    def row(self, x):
        width = x.shape[-1]
        lanes = [(0, 0)] * (x.ndim - 1) + [(0, -width % self.lanes)]
        return np.pad(x, lanes)

    def numerator(self, x):
        return x - np.mean(self.row(x), **LAST)

    def deviation(self, x, eps):
        return np.sqrt(np.var(self.row(x), **LAST) + eps)


class PadsTheRowToSixteen(PadsTheRow):
    fault = "padded-to-sixteen"
    lanes = 16


class CountsTheLanes(Kernel):
    """The padded lanes are masked in both sums, and counted all the same."""

    fault = "padded-to-four"

    def over_lanes(self, values):
        lanes = np.array(np.ceil(values.shape[-1] / 4) * 4, values.dtype)
        return values.sum(**LAST) / lanes

    def numerator(self, x):
        return x - self.over_lanes(x)

    def deviation(self, x, eps):
        return np.sqrt(self.over_lanes(np.square(self.numerator(x))) + eps)


# -------------------------------------------------------------------------------------- epsilon


class KeepsTheDivisorFromZero(Kernel):
    fault = "eps-outside-root"

    def deviation(self, x, eps):
        return np.std(x, **LAST) + eps


class LeavesEpsilonOut(Kernel):
    fault = "eps-forgotten"

    def deviation(self, x, eps):
        return np.std(x, **LAST)


class ComesFromFlax(Kernel):
    fault = "eps-one-millionth"

    def deviation(self, x, eps):
        return np.sqrt(np.var(x, **LAST) + np.array(1e-6, x.dtype))


class ComesFromKeras(Kernel):
    fault = "eps-one-thousandth"

    def deviation(self, x, eps):
        return np.sqrt(np.var(x, **LAST) + np.array(1e-3, x.dtype))


class ComesFromOldTensorFlow(Kernel):
    fault = "eps-one-trillionth"

    def deviation(self, x, eps):
        return np.sqrt(np.var(x, **LAST) + np.array(1e-12, x.dtype))


class CopiesABlogPost(Kernel):
    fault = "eps-one-ten-thousandth"

    def deviation(self, x, eps):
        return np.sqrt(np.var(x, **LAST) + np.array(1e-4, x.dtype))


class TakesTheEpsilonOfTheBackend(NumpyBackend):
    """Forward and backward alike: as where a framework has one epsilon for everything."""

    fault = "eps-one-ten-millionth"

    def layer_norm(self, x, gamma, beta, *, eps):
        return super().layer_norm(x, gamma, beta, eps=1e-7)

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        return super().layer_norm_vjp(upstream, x, gamma, beta, eps=1e-7)


class TakesTheEpsilonOfTheOptimiser(Kernel):
    fault = "eps-one-hundred-millionth"

    def deviation(self, x, eps):
        return np.sqrt(np.var(x, **LAST) + np.array(1e-8, x.dtype))


class PassesEpsilonAsFloat16(NumpyBackend):
    fault = "eps-rounded-to-float16"

    def layer_norm(self, x, gamma, beta, *, eps):
        return super().layer_norm(x, gamma, beta, eps=float(np.array(eps).astype("f2")))

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        half = np.half(eps).item()
        return super().layer_norm_vjp(upstream, x, gamma, beta, eps=half)


class NeverPassesEpsilonOn(NumpyBackend):
    fault = "eps-one-hundred-thousandth"

    def layer_norm(self, x, gamma, beta, *, eps=1e-5):
        return super().layer_norm(x, gamma, beta, eps=1e-5)

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps=1e-5):
        return super().layer_norm_vjp(upstream, x, gamma, beta, eps=1e-5)


class ClipsTheVariance(Kernel):
    fault = "eps-as-floor"

    def deviation(self, x, eps):
        return np.sqrt(np.maximum(np.var(x, **LAST), eps))


class ClipsTheDeviation(Kernel):
    fault = "eps-as-floor-of-deviation"

    def deviation(self, x, eps):
        return np.maximum(np.std(x, **LAST), eps)


class ScalesEpsilon(Kernel):
    fault = "eps-relative"

    def deviation(self, x, eps):
        variance = np.var(x, **LAST)
        return np.sqrt(variance + variance * eps)


class PassesEpsilonAsFloat32(NumpyBackend):
    fault = "eps-rounded-to-float32"

    def layer_norm(self, x, gamma, beta, *, eps):
        return super().layer_norm(x, gamma, beta, eps=float(np.float32(eps)))

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        return super().layer_norm_vjp(upstream, x, gamma, beta, eps=float(np.float32(eps)))


class DividesByTheVariance(Kernel):
    fault = "root-forgotten"

    def deviation(self, x, eps):
        return np.var(x, **LAST) + eps


class CatchesTheDivisionByZero(Kernel):
    fault = "zero-variance-guarded"

    def deviation(self, x, eps):
        deviation = super().deviation(x, eps)
        return np.where(deviation == 0, np.ones((), x.dtype), deviation)


# ------------------------------------------------------------------------------- gamma and beta


class HasNoAffineMap(Kernel):
    fault = "affine-forgotten"

    def scaled(self, normal, gamma, beta):
        return normal


class HasNoScale(Kernel):
    fault = "gamma-forgotten"

    def scaled(self, normal, gamma, beta):
        return normal + beta


class HasNoShift(Kernel):
    fault = "beta-forgotten"

    def scaled(self, normal, gamma, beta):
        return normal * gamma


class ShiftsFirst(Kernel):
    fault = "beta-before-gamma"

    def scaled(self, normal, gamma, beta):
        return (normal + beta) * gamma


class StoresGammaLessOne(Kernel):
    fault = "gamma-plus-one"

    def scaled(self, normal, gamma, beta):
        return normal * (gamma + np.ones((), gamma.dtype)) + beta


# ------------------------------------------------------------------------------------- other axes


class Elsewhere(Kernel):
    """Statistics over the axes that the subclass names."""

    def numerator(self, x):
        return x - np.mean(x, axis=self.axes(x.ndim), keepdims=True)

    def deviation(self, x, eps):
        return np.sqrt(np.var(x, axis=self.axes(x.ndim), keepdims=True) + eps)


class NormalisesOverTime(Elsewhere):
    fault = "statistics-over-time"

    def axes(self, rank):
        return max(0, rank - 2)


class NormalisesTheSequence(Elsewhere):
    fault = "statistics-over-sequence"

    def axes(self, rank):
        return tuple(range(max(0, rank - 2), rank))


class NormalisesOverTheBatch(Elsewhere):
    fault = "statistics-over-batch"

    def axes(self, rank):
        return 0 if rank == 3 else rank - 1


class NormalisesTheBatchWithTheFeatures(Elsewhere):
    fault = "statistics-over-batch"

    def axes(self, rank):
        return (0, rank - 1) if rank > 2 else rank - 1


class IsABatchNorm(Elsewhere):
    fault = "statistics-over-all-positions"

    def axes(self, rank):
        return tuple(range(rank - 1)) if rank > 1 else 0


class ForgetsTheAxis(Kernel):
    fault = "statistics-over-everything"

    def numerator(self, x):
        return x - np.mean(x)

    def deviation(self, x, eps):
        return np.sqrt(np.var(x) + eps)


# ------------------------------------------------------------------------------------- gradients


class Backward(NumpyBackend):
    """dx from the parts that the subclass keeps."""

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        gradients = super().layer_norm_vjp(upstream, x, gamma, beta, eps=eps)
        centred = x - x.mean(**LAST)
        deviation = np.sqrt(np.mean(centred**2, **LAST) + np.array(eps, x.dtype))
        self.spoil(gradients, upstream, x, gamma, centred / deviation, deviation)
        return gradients

    def spoil(self, gradients, upstream, x, gamma, normal, deviation):
        g = upstream * gamma
        mean, slope = g.mean(**LAST), (g * normal).mean(**LAST)
        gradients["x"] = self.combined(g, mean, normal * slope) / deviation


class LosesTheMean(Backward):
    fault = "mean-term-forgotten"

    def combined(self, g, mean, slope):
        return g - slope


class SubtractsTheMeanTwice(Backward):
    fault = "mean-term-twice"

    def combined(self, g, mean, slope):
        return g - mean - mean - slope


class LosesTheVariance(Backward):
    fault = "variance-term-forgotten"

    def combined(self, g, mean, slope):
        return g - mean


class FreezesTheStatistics(Backward):
    fault = "statistics-taken-as-constants"

    def combined(self, g, mean, slope):
        return g


class Again(NumpyBackend):
    """A gradient whose author computed the normalised input again, with another deviation."""

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        centred = x - x.mean(**LAST)
        with np.errstate(all="ignore"):
            deviation = self.deviation(centred, np.array(eps, x.dtype))
            normal, g = centred / deviation, upstream * gamma
            dx = (g - g.mean(**LAST) - self.term(normal, g)) / deviation
        leading = tuple(range(x.ndim - 1))
        return {
            "x": dx,
            "gamma": (upstream * normal).sum(axis=leading),
            "beta": upstream.sum(axis=leading),
        }

    def term(self, normal, g):
        return normal * (g * normal).mean(**LAST)


class RecomputesWithoutEpsilon(Again):
    fault = "eps-forgotten-backward"

    def deviation(self, centred, eps):
        return np.sqrt(np.mean(centred**2, **LAST))


class RecomputesTheSample(Again):
    fault = "bessel-backward"

    def deviation(self, centred, eps):
        count = np.array(centred.shape[-1] - 1, centred.dtype)
        return np.sqrt(np.sum(centred**2, **LAST) / count + eps)

    def term(self, normal, g):
        count = np.array(normal.shape[-1] - 1, normal.dtype)
        return normal * (g * normal).sum(**LAST) / count


class LeavesGammaOut(Backward):
    fault = "gamma-forgotten-backward"

    def spoil(self, gradients, upstream, x, gamma, normal, deviation):
        super().spoil(gradients, upstream, x, np.ones_like(gamma), normal, deviation)

    def combined(self, g, mean, slope):
        return g - mean - slope


class SumsWithTheInput(Backward):
    fault = "gamma-gradient-of-input"

    def spoil(self, gradients, upstream, x, gamma, normal, deviation):
        gradients["gamma"] = (upstream * x).reshape(-1, x.shape[-1]).sum(axis=0)


class AveragesGammaAndBeta(Backward):
    fault = "affine-gradients-averaged"

    def spoil(self, gradients, upstream, x, gamma, normal, deviation):
        for name in ("gamma", "beta"):
            gradients[name] = gradients[name] / np.array(max(1, x.size // x.shape[-1]), x.dtype)


class OverwritesGammaAndBeta(Backward):
    fault = "affine-gradients-of-last-position"

    def spoil(self, gradients, upstream, x, gamma, normal, deviation):
        if not x.size:
            return
        gradients["gamma"] = (upstream * normal).reshape(-1, x.shape[-1])[-1].copy()
        gradients["beta"] = upstream.reshape(-1, x.shape[-1])[-1].copy()


class TakesTheRestForFeatures(Backward):
    fault = "backward-over-all-but-first-axis"

    def spoil(self, gradients, upstream, x, gamma, normal, deviation):
        rows = x.shape[0]
        if x.ndim < 3 or not x.size:
            return
        mean = x.mean(axis=-1).reshape(-1)[:rows, None]
        spread = deviation.reshape(-1)[:rows, None]
        g = (upstream * gamma).reshape(rows, -1)
        n = (x.reshape(rows, -1) - mean) / spread
        dx = (g - g.mean(**LAST) - n * (g * n).mean(**LAST)) / spread
        gradients["x"] = dx.reshape(x.shape)
