"""Computes in place."""

from conformance.backends.numpy import NumpyBackend


class WritesIntoItsArgument(NumpyBackend):
    def gelu(self, x):
        x[...] = super().gelu(x)
        return x
