"""Answers or dies, and leaves a program behind that inherits nothing."""

import os
import subprocess

from conformance.backends.numpy import NumpyBackend


class LeavesAStranger(NumpyBackend):
    def gelu(self, x):
        sleep = ["sh", "-c", f"sleep {os.environ['SLEEP']} &"]
        subprocess.run(sleep, env={}, start_new_session=True, check=True)
        if os.environ["ENDING"]:
            os.abort()
        return super().gelu(x)
