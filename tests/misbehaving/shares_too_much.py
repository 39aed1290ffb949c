"""Holds memory that no limit of a process counts."""

import mmap
import time

from conformance.backends.numpy import NumpyBackend


class SharesTooMuch(NumpyBackend):
    def gelu(self, x):
        shared = mmap.mmap(-1, 2**30 + 2**28)
        for page in range(0, len(shared), mmap.PAGESIZE):
            shared[page] = 1
        time.sleep(5)
        return super().gelu(x)
