"""Feed-forward networks and sublayers with one mistake each, written in plain NumPy."""

from __future__ import annotations

import numpy as np

from conformance.backends.numpy import NumpyBackend

PARTS = NumpyBackend()


class HasNoActivation(NumpyBackend):
    fault = "activation-forgotten"

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        return (x @ w_1 + b_1) @ w_2 + b_2

    def feed_forward_vjp(self, upstream, x, w_1, b_1, w_2, b_2):
        second = self.linear_vjp(upstream, self.linear(x, w_1, b_1), w_2, b_2)
        first = self.linear_vjp(second["x"], x, w_1, b_1)
        return named(first, second)


class ActivatesLast(NumpyBackend):
    fault = "activation-after-second-map"

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        return self.gelu((x @ w_1 + b_1) @ w_2 + b_2)


class ActivatesTwice(NumpyBackend):
    fault = "activation-twice"

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        return self.gelu(super().feed_forward(x, w_1, b_1, w_2, b_2))


class SkipsTheSlope(NumpyBackend):
    fault = "activation-slope-forgotten"

    def feed_forward_vjp(self, upstream, x, w_1, b_1, w_2, b_2):
        second = self.linear_vjp(upstream, self.gelu(self.linear(x, w_1, b_1)), w_2, b_2)
        return named(self.linear_vjp(second["x"], x, w_1, b_1), second)


class KeptTheOutputOnly(NumpyBackend):
    fault = "activation-slope-of-output"

    def feed_forward_vjp(self, upstream, x, w_1, b_1, w_2, b_2):
        active = self.gelu(self.linear(x, w_1, b_1))
        second = self.linear_vjp(upstream, active, w_2, b_2)
        slope = self.gelu_vjp(second["x"], active)["x"]
        return named(self.linear_vjp(slope, x, w_1, b_1), second)


class LosesTheFirstBias(NumpyBackend):
    fault = "first-bias-forgotten"

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        return self.gelu(x @ w_1) @ w_2 + b_2


class LosesTheSecondBias(NumpyBackend):
    fault = "second-bias-forgotten"

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        return self.gelu(x @ w_1 + b_1) @ w_2


class AddsTheFirstBiasLate(NumpyBackend):
    fault = "first-bias-after-activation"

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        return (self.gelu(x @ w_1) + b_1) @ w_2 + b_2


class AddsTheTrunkItself(NumpyBackend):
    fault = "feed-forward-with-trunk"

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        return x + super().feed_forward(x, w_1, b_1, w_2, b_2)


class LooksAlongTheSequence(NumpyBackend):
    fault = "time-mixed"

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        if x.ndim > 1:
            x = np.repeat(x.mean(axis=-2, keepdims=True), x.shape[-2], axis=-2)
        return super().feed_forward(x, w_1, b_1, w_2, b_2)


def named(first, second):
    return {
        "x": first["x"],
        "w_1": first["weight"],
        "b_1": first["bias"],
        "w_2": second["weight"],
        "b_2": second["bias"],
    }


# -------------------------------------------------------------------------------------- sublayers


class AddsToTheNormalised(NumpyBackend):
    fault = "trunk-normalised"

    def feed_forward_sublayer(self, x, gamma, beta, w_1, b_1, w_2, b_2, *, eps):
        x = self.layer_norm(x, gamma, beta, eps=eps)
        return x + self.feed_forward(x, w_1, b_1, w_2, b_2)


class NormalisesAfterwards(NumpyBackend):
    fault = "norm-after-sum"

    def feed_forward_sublayer(self, x, gamma, beta, w_1, b_1, w_2, b_2, *, eps):
        return self.layer_norm(x + self.feed_forward(x, w_1, b_1, w_2, b_2), gamma, beta, eps=eps)


class NeverNormalises(NumpyBackend):
    fault = "norm-forgotten"

    def feed_forward_sublayer(self, x, gamma, beta, w_1, b_1, w_2, b_2, *, eps):
        return x + self.feed_forward(x, w_1, b_1, w_2, b_2)


class NormalisesTheBranchAgain(NumpyBackend):
    fault = "norm-on-both-sides"

    def feed_forward_sublayer(self, x, gamma, beta, w_1, b_1, w_2, b_2, *, eps):
        branch = self.feed_forward(self.layer_norm(x, gamma, beta, eps=eps), w_1, b_1, w_2, b_2)
        return x + self.layer_norm(branch, gamma, beta, eps=eps)


class ComputesTheBranchWithoutAGraph(NumpyBackend):
    fault = "branch-detached"

    def feed_forward_sublayer_vjp(self, upstream, x, **parameters):
        return {"x": upstream.copy()}
