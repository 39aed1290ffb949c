"""Answers once, and is gone when it is asked the same again."""

import os

from conformance.backends.numpy import NumpyBackend


class DiesWhenAskedAgain(NumpyBackend):
    def __init__(self):
        self.answered = set()

    def gelu(self, x):
        if x.tobytes() in self.answered:
            os._exit(9)
        self.answered.add(x.tobytes())
        return super().gelu(x)
