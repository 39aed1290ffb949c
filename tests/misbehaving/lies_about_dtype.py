"""Computes in the other precision."""

from conformance.backends.numpy import NumpyBackend


class LiesAboutDtype(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).astype("f4" if x.dtype == "f8" else "f8")
