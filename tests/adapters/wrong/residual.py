"""Residual additions with one mistake each, written in plain NumPy."""

from __future__ import annotations

import numpy as np

from conformance.backends.numpy import NumpyBackend


class Addition(NumpyBackend):
    """Refuses operands of different shapes, then leaves the sum to the subclass."""

    def residual_add(self, x, increment):
        super().residual_add(x, increment)
        return self.sum(x, increment)


class ReturnsTheIncrement(Addition):
    fault = "trunk-forgotten"

    def sum(self, x, increment):
        return increment.copy()


class ReturnsTheTrunk(Addition):
    fault = "increment-forgotten"

    def sum(self, x, increment):
        return x.copy()


class AddsTheTrunkTwice(Addition):
    fault = "trunk-twice"

    def sum(self, x, increment):
        return x + x + increment


class AddsTheIncrementTwice(Addition):
    fault = "increment-twice"

    def sum(self, x, increment):
        y = x + increment
        y += increment
        return y


class SubtractsTheIncrement(Addition):
    fault = "increment-subtracted"

    def sum(self, x, increment):
        return np.subtract(x, increment)


class AddsTheFirstIncrement(Addition):
    fault = "increment-of-first-position"

    def sum(self, x, increment):
        return x + increment[..., :1, :] if x.ndim > 1 else x + increment


class AddsTheMeanIncrement(Addition):
    fault = "increment-averaged"

    def sum(self, x, increment):
        return x + increment.mean(axis=-2, keepdims=True) if x.ndim > 1 else x + increment


class Broadcasts(NumpyBackend):
    fault = "shapes-broadcast"

    def residual_add(self, x, increment):
        return np.add(x, increment)


class KeepsTheGradientFromTheBranch(NumpyBackend):
    fault = "gradient-kept-from-increment"

    def residual_add_vjp(self, upstream, x, increment):
        self.residual_add(x, increment)  # which refuses what must be refused
        return {"x": upstream.copy()}

    def feed_forward_sublayer_vjp(self, upstream, x, **parameters):
        return {"x": upstream.copy()}


class KeepsTheGradientFromTheTrunk(NumpyBackend):
    fault = "gradient-kept-from-trunk"

    def residual_add_vjp(self, upstream, x, increment):
        self.residual_add(x, increment)  # which refuses what must be refused
        return {"increment": upstream.copy()}

    def feed_forward_sublayer_vjp(self, upstream, x, **parameters):
        both = NumpyBackend().feed_forward_sublayer_vjp(upstream, x, **parameters)
        return {**both, "x": both["x"] - upstream}


class SharesTheGradient(NumpyBackend):
    fault = "gradient-shared"

    def residual_add_vjp(self, upstream, x, increment):
        self.residual_add(x, increment)  # which refuses what must be refused
        half = np.array(0.5, upstream.dtype)
        return {"x": upstream * half, "increment": upstream * half}
