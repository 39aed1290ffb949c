"""Answers that have nothing to do with the question."""

from __future__ import annotations

import msgspec
import numpy as np

from conformance.backends.numpy import NumpyBackend


class Altered(NumpyBackend):
    """Every answer is taken apart before it is handed over."""

    def answer(self, question):
        right = super().answer(question)
        outputs = {
            name: self.altered(name, value, question) for name, value in right.outputs.items()
        }
        return msgspec.structs.replace(right, outputs=outputs)


class ReturnsZeros(Altered):
    fault = "zeros-returned"

    def altered(self, name, value, question):
        return np.zeros_like(value)


class ReturnsItsInput(Altered):
    fault = "input-returned"

    def altered(self, name, value, question):
        first = next(iter(question.arguments.values()))
        return np.array(question.arguments.get(name, first))


class ReturnsOneNumber(Altered):
    fault = "constant-returned"

    def altered(self, name, value, question):
        return np.full_like(value, value.flat[0]) if value.size else value


class ReturnsNan(Altered):
    fault = "nan-returned"

    def altered(self, name, value, question):
        return np.full_like(value, np.nan)


class Transposes(Altered):
    fault = "transposed-answer"

    def altered(self, name, value, question):
        return np.swapaxes(value, -1, -2).copy() if value.ndim > 1 else value
