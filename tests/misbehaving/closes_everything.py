"""Closes every descriptor beyond the standard ones."""

import os

from conformance.backends.numpy import NumpyBackend


class ClosesEverything(NumpyBackend):
    def gelu(self, x):
        os.closerange(3, 256)
        return super().gelu(x)
