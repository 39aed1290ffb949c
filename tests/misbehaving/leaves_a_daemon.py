"""Answers, and leaves a process behind that has a session of its own and has closed everything."""

import os
import time

from conformance.backends.numpy import NumpyBackend


class LeavesADaemon(NumpyBackend):
    def gelu(self, x):
        left = os.fork()
        if left == 0:
            os.setsid()
            if os.fork() == 0:  # now an orphan too
                os.closerange(0, 1024)
                time.sleep(3600)
            os._exit(0)
        os.waitpid(left, 0)
        return super().gelu(x)
