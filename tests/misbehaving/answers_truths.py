"""Answers with true and false."""

from conformance.backends.numpy import NumpyBackend


class AnswersTruths(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x) > 0
