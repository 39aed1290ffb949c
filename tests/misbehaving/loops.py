"""Never comes to an end."""

from conformance.backends.numpy import NumpyBackend


class Loops(NumpyBackend):
    def gelu(self, x):
        while True:
            pass
