"""Answers a question that was never asked."""

from conformance.backends.numpy import NumpyBackend
from tests.misbehaving.writing import write_to_pipes


class AnswersAnotherQuestion(NumpyBackend):
    def gelu(self, x):
        write_to_pipes(b'{"type": "answered", "number": 999, "status": "outputs"}\n')
        return super().gelu(x)
