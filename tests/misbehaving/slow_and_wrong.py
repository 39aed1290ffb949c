"""Takes its time, writes down that it was asked, and answers with the tanh form."""

import math
import os
import time
from pathlib import Path

import numpy as np

from conformance.backends.numpy import NumpyBackend


class SlowAndWrong(NumpyBackend):
    def gelu(self, x):
        with Path(os.environ["ASKED"]).open("a") as asked:
            asked.write(".")
        time.sleep(float(os.environ["SLOW"]))
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
