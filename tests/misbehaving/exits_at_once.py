"""Ends its process, and nothing is cleaned up."""

import os

from conformance.backends.numpy import NumpyBackend


class ExitsAtOnce(NumpyBackend):
    def gelu(self, x):
        os._exit(3)
