"""Every second answer is off by its last bit, which no bound would mind."""

import numpy as np

from conformance.backends.numpy import NumpyBackend


class KeepsState(NumpyBackend):
    turn = 0

    def gelu(self, x):
        self.turn += 1
        y = super().gelu(x)
        return np.nextafter(y, np.zeros_like(y)) if self.turn % 2 else y
