"""Dies of every array with an odd number of numbers."""

import os

from conformance.backends.numpy import NumpyBackend


class DiesOnOddSizes(NumpyBackend):
    def gelu(self, x):
        if x.size % 2:
            os._exit(3)
        return super().gelu(x)
