"""Answers at once, but takes its time over what it has answered before."""

import os
import time
from pathlib import Path

from conformance.backends.numpy import NumpyBackend


class SlowWhenAskedAgain(NumpyBackend):
    def __init__(self):
        self.answered = set()

    def gelu(self, x):
        if x.tobytes() in self.answered:
            with Path(os.environ["ASKED"]).open("a") as asked:
                asked.write(".")
            time.sleep(float(os.environ["SLOW"]))
        self.answered.add(x.tobytes())
        return super().gelu(x)
