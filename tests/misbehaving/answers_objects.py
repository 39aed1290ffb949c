"""Answers with Python objects."""

from conformance.backends.numpy import NumpyBackend


class AnswersObjects(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).astype(object)
