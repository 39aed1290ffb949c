"""Answers in the byte order of another machine."""

from conformance.backends.numpy import NumpyBackend


class AnswersBigEndian(NumpyBackend):
    def gelu(self, x):
        y = super().gelu(x)
        return y.astype(y.dtype.newbyteorder())
