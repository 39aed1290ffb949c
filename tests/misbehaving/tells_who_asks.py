"""Writes down which process is asked what, and waits for another of its kind the first time."""

import os
import time
from pathlib import Path

from conformance.backends.numpy import NumpyBackend


class TellsWhoAsks(NumpyBackend):
    met = False

    def evaluate(self, operation, arguments):
        here = Path(os.environ["MEETING"])
        (here / str(os.getpid())).touch()
        deadline = time.monotonic() + 20
        while not self.met and len(list(here.glob("[0-9]*"))) < 2:
            if time.monotonic() > deadline:
                raise TimeoutError("no other has come")
            time.sleep(0.01)
        self.met = True
        with (here / "asked").open("a") as asked:
            asked.write(f"{os.getpid()} {operation}\n")
        return super().evaluate(operation, arguments)
