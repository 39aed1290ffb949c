"""Prints, a lot, and a message that looks like an answer."""

from conformance.backends.numpy import NumpyBackend


class Prints(NumpyBackend):
    def gelu(self, x):
        print('{"type": "answered", "number": 1, "status": "outputs"}', "\n" * 9999)  # noqa: T201
        return super().gelu(x)
