"""Forks, and goes on in both processes."""

import os

from conformance.backends.numpy import NumpyBackend


class ForksAndBothAnswer(NumpyBackend):
    def gelu(self, x):
        os.fork()
        return super().gelu(x)
