"""Greets whoever imports it."""

import sys

from conformance.backends.numpy import NumpyBackend

print("welcome", "\n" * 99)  # noqa: T201
print("a warning", file=sys.stderr)  # noqa: T201


class PrintsAtImport(NumpyBackend):
    def versions(self):
        print("and again")  # noqa: T201
        return super().versions()
