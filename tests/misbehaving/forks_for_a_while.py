"""Answers, and a process that it has forked ends a little later."""

import os
import time

from conformance.backends.numpy import NumpyBackend


class ForksForAWhile(NumpyBackend):
    def gelu(self, x):
        if os.fork() == 0:
            time.sleep(0.3)
            os._exit(0)
        return super().gelu(x)
