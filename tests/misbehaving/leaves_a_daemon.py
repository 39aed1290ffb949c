"""Answers, and leaves a process behind that has a session of its own."""

import os
import time

from conformance.backends.numpy import NumpyBackend


class LeavesADaemon(NumpyBackend):
    def gelu(self, x):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:  # now an orphan too
                time.sleep(3600)
            os._exit(0)
        return super().gelu(x)
