"""Answers, and leaves a process behind."""

import os
import time

from conformance.backends.numpy import NumpyBackend


class LeavesAFork(NumpyBackend):
    def gelu(self, x):
        if os.fork() == 0:
            time.sleep(3600)
        return super().gelu(x)
