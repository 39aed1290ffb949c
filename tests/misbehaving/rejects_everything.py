"""Rejects what is valid as well."""

from conformance import Rejected
from conformance.backends.numpy import NumpyBackend


class RejectsEverything(NumpyBackend):
    def linear(self, x, weight, bias=None):
        raise Rejected("weight-rank", "never")
