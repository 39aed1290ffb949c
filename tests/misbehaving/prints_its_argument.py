"""Says what it was asked; dies when that is 2, and later where that is 3."""

import os
import threading

from conformance.backends.numpy import NumpyBackend


class PrintsItsArgument(NumpyBackend):
    def gelu(self, x):
        print("asked", float(x[0]))  # noqa: T201
        if x[0] == 2:
            os._exit(2)
        if x[0] == 3:
            threading.Timer(0.05, os._exit, (3,)).start()
        return super().gelu(x)
