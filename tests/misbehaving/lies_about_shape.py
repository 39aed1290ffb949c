"""Adds an axis."""

from conformance.backends.numpy import NumpyBackend


class LiesAboutShape(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x)[None]
