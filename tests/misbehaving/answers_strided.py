"""Answers with every second number of another array."""

import numpy as np

from conformance.backends.numpy import NumpyBackend


class AnswersStrided(NumpyBackend):
    def gelu(self, x):
        return np.repeat(super().gelu(x), 2)[::2]
