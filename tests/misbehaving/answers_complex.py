"""Answers with complex numbers."""

from conformance.backends.numpy import NumpyBackend


class AnswersComplex(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).astype(complex)
