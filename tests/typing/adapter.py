"""An adapter as a user writes it; type-checked and run against the installed wheel.

A kernel author overrides one method of a bundled backend and inherits the rest.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

import conformance
from conformance.backends.numpy import NumpyBackend

_erf = np.vectorize(math.erf, otypes=[np.float64])


class MyKernel(NumpyBackend):
    """The bundled NumPy backend with its own GELU."""

    name = "my-kernel"

    def gelu(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        if not isinstance(x, np.ndarray):
            raise conformance.Rejected("not-an-array", "gelu takes an array")
        y: npt.NDArray[np.floating] = (x * 0.5 * (1.0 + _erf(x * math.sqrt(0.5)))).astype(x.dtype)
        return y


def judge() -> list[str]:
    """Names of the backends that were judged, through the public call."""
    reports = conformance.run([MyKernel()], select=["gelu"])
    backend: conformance.Backend = MyKernel()
    answer: conformance.Answer = backend.answer(
        conformance.Question(
            operation="gelu",
            mode="evaluate",
            dtype="float64",
            arguments={"x": np.array([1.0])},
            outputs=("y",),
        )
    )
    assert answer.status == "outputs"
    return [report.backend.name for report in reports]
