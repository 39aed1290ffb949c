"""For a moment after the first question, answers are off by their last bit."""

import time

import numpy as np

from conformance.backends.numpy import NumpyBackend


class DependsOnTime(NumpyBackend):
    first = 0.0

    def gelu(self, x):
        self.first = self.first or time.monotonic()
        early = time.monotonic() < self.first + 0.1
        y = super().gelu(x)
        time.sleep(0.11)
        return np.nextafter(y, np.zeros_like(y)) if early else y
