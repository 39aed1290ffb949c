"""Raises with a text that can't be encoded."""

from conformance.backends.numpy import NumpyBackend


class RaisesSurrogates(NumpyBackend):
    def gelu(self, x):
        raise ValueError("half of a pair: \ud800")

    def residual_add(self, x, increment):
        if x.shape != increment.shape:
            raise ValueError("half of a pair: \ud800")
        return super().residual_add(x, increment)
