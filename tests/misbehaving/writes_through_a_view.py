"""Computes in place, seen from the other end."""

from conformance.backends.numpy import NumpyBackend


class WritesThroughAView(NumpyBackend):
    def gelu(self, x):
        backwards = x.reshape(-1)[::-1]
        y = super().gelu(x)
        backwards *= 2
        return y
