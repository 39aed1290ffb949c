"""Answers with an array that it overwrites the next time."""

import numpy as np

from conformance.backends.numpy import NumpyBackend


class AnswersItsOwnMemory(NumpyBackend):
    def gelu(self, x):
        self.memory = getattr(self, "memory", np.zeros(199))
        y = self.memory[: x.size].astype(x.dtype, copy=False)
        y[...] = super().gelu(x)
        return y
