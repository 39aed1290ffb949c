"""Says what it does, and does it wrong."""

from conformance.backends.numpy import NumpyBackend


class PrintsAndFails(NumpyBackend):
    def gelu(self, x):
        for step in range(9):
            print("step", step, "of \x1b[31mnine\x1b[0m <b>")  # noqa: T201
        return x
