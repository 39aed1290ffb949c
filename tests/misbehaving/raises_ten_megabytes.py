"""Raises with a text of ten megabytes."""

from conformance.backends.numpy import NumpyBackend


class RaisesTenMegabytes(NumpyBackend):
    def gelu(self, x):
        raise ValueError("long " * 2_000_000)

    def residual_add(self, x, increment):
        if x.shape != increment.shape:
            raise ValueError("long " * 2_000_000)
        return super().residual_add(x, increment)
