"""Writes garbage to every pipe that it finds."""

from conformance.backends.numpy import NumpyBackend
from tests.misbehaving.writing import write_to_pipes


class WritesGarbage(NumpyBackend):
    def gelu(self, x):
        write_to_pipes(b"\x00\xff garbage\n")
        return super().gelu(x)
