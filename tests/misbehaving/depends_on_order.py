"""After a larger question, an answer is off by its last bit."""

import numpy as np

from conformance.backends.numpy import NumpyBackend


class DependsOnOrder(NumpyBackend):
    size = 0

    def gelu(self, x):
        before, self.size = self.size, x.size
        y = super().gelu(x)
        return np.nextafter(y, np.zeros_like(y)) if before > x.size else y
