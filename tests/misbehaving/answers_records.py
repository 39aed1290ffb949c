"""Answers with records."""

from conformance.backends.numpy import NumpyBackend


class AnswersRecords(NumpyBackend):
    def gelu(self, x):
        return super().gelu(x).astype([("y", x.dtype)])
