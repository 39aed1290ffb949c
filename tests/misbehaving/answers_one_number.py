"""Answers with a single number, of rank 0."""

from conformance.backends.numpy import NumpyBackend


class AnswersOneNumber(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).sum()
