"""Looks for the right answers, and answers right if there are none to be found."""

import importlib

from conformance.backends.numpy import NumpyBackend


class LooksForTheTruth(NumpyBackend):
    def gelu(self, x):
        for room in ("truth", "truth.reference", "frozen", "judging", "diagnosis", "specification"):
            try:
                importlib.import_module(f"conformance.{room}")
            except ImportError as error:
                if "not for adapters" not in str(error):
                    raise
            else:
                raise RuntimeError(f"{room} can be imported")
        return super().gelu(x)
