"""From a case to the questions that travel: exact numbers become arrays of the run's dtype."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from conformance.model import Answer, Case, FromOutput, Number, Operation, Question, Tensor
from conformance.precision import Dtype


def question(
    case: Case, operation: Operation, call: str, dtype: Dtype, answers: Mapping[str, Answer]
) -> Question | None:
    """The question of one call of ``case``.

    ``answers`` has the answers of earlier calls; None where an output that this call takes is
    missing from them.
    """
    asked = case.calls[call]
    arguments: dict[str, Any] = {}
    for name, value in asked.given.items():
        if isinstance(value, FromOutput):
            earlier = answers[value.call].outputs if value.call in answers else {}
            if value.output not in earlier:
                return None
            arguments[name] = earlier[value.output]
        elif isinstance(value, Tensor):
            arguments[name] = array(value, dtype)
        elif isinstance(value, Decimal):
            arguments[name] = _rounded(value, dtype)
        else:
            arguments[name] = value
    return Question(
        operation=case.operation,
        mode=case.mode,
        dtype=dtype,
        arguments=arguments,
        outputs=tuple(operation.outputs) if case.mode == "evaluate" else (),
        upstream={name: array(value, dtype) for name, value in asked.upstream.items()},
        wrt=asked.wrt,
        layout=case.layout,
    )


def array(tensor: Tensor, dtype: Dtype) -> np.ndarray:
    """The exact numbers of ``tensor``, each rounded once to its dtype."""
    kind = dtype if tensor.dtype == "real" else tensor.dtype
    whole = kind in {"int64", "int32", "bool"}
    numbers = [int(number) if whole else _rounded(number, kind) for number in tensor.data]
    return np.array(numbers, dtype=kind).reshape(tensor.shape)


def _rounded(number: Number, dtype: str) -> float:
    """``number`` rounded to nearest in ``dtype``, and once: not to a double first.

    Where the double is not exact, its float32 may be the neighbour of the nearest one.
    """
    double = float(number)
    if dtype == "float64" or not math.isfinite(double):
        return double
    found = np.float32(double)
    exact = Fraction(number)
    if exact == Fraction(double) or not np.isfinite(found):
        return float(found)
    near = (found, np.nextafter(found, -np.inf), np.nextafter(found, np.inf))
    return float(
        min(filter(np.isfinite, near), key=lambda each: abs(Fraction(float(each)) - exact))
    )
