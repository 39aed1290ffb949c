"""Writes a line that never ends to every pipe that it finds."""

from conformance.backends.numpy import NumpyBackend
from tests.misbehaving.writing import write_to_pipes


class WritesWithoutEnd(NumpyBackend):
    def gelu(self, x):
        while True:
            write_to_pipes(b"0" * 2**20)
