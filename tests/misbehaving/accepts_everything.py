"""Finds an answer to whatever it is asked."""

import numpy as np

from conformance import Rejected
from conformance.backends.numpy import NumpyBackend


class AcceptsEverything(NumpyBackend):
    def linear(self, x, weight, bias=None):
        try:
            return super().linear(x, weight, bias)
        except Rejected:
            return np.zeros_like(x)
