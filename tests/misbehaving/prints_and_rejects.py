"""Says something, and refuses whatever it is given."""

import sys

from conformance import Rejected
from conformance.backends.numpy import NumpyBackend


class PrintsAndRejects(NumpyBackend):
    def residual_add(self, x, increment):
        sys.stdout.write("no wish to add\n")
        raise Rejected("shape-mismatch", "never")
