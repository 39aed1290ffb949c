"""Writes 100 MB to standard error."""

import sys

from conformance.backends.numpy import NumpyBackend


class FloodsStderr(NumpyBackend):
    def gelu(self, x):
        for _ in range(100):
            sys.stderr.write("x" * 999_999 + "\n")
        return super().gelu(x)
