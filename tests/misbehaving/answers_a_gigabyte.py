"""Answers with more numbers than anyone asked for."""

import numpy as np

from conformance.backends.numpy import NumpyBackend


class AnswersAGigabyte(NumpyBackend):
    def gelu(self, x):
        return np.zeros(2**27)
