"""Scales the gradient that it was given."""

from conformance.backends.numpy import NumpyBackend


class WritesIntoUpstream(NumpyBackend):
    def gelu_vjp(self, upstream, x):
        gradients = super().gelu_vjp(upstream, x)
        upstream *= 2
        return gradients
