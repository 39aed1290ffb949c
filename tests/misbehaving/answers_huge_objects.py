"""Answers with ten billion times nothing."""

import numpy as np

from conformance.backends.numpy import NumpyBackend


class AnswersHugeObjects(NumpyBackend):
    def gelu(self, x):
        return np.broadcast_to(np.array(None), (10**5, 10**5))
