"""From a case to the questions that travel: exact numbers become arrays of the run's dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from conformance.model import (
    Answer,
    Case,
    FromOutput,
    Number,
    Operation,
    Parameters,
    Question,
    Tensor,
)
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
        elif isinstance(value, Parameters):
            arguments[name] = {key: array(item, dtype) for key, item in value.tensors.items()}
        elif isinstance(value, Decimal):
            arguments[name] = float(_rounded((value,), np.array([float(value)]), dtype)[0])
        else:
            arguments[name] = value
    return Question(
        operation=case.operation,
        mode=case.mode,
        dtype=dtype,
        arguments=arguments,
        outputs=(asked.outputs or tuple(operation.outputs)) if case.mode == "evaluate" else (),
        upstream={name: array(value, dtype) for name, value in asked.upstream.items()},
        wrt=asked.wrt,
        layout=case.layout,
    )


def array(tensor: Tensor, dtype: Dtype) -> np.ndarray:
    """The exact numbers of ``tensor``, each rounded once to its dtype."""
    kind = dtype if tensor.dtype == "real" else tensor.dtype
    if kind in {"float64", "float32"}:
        found = _rounded(tensor.data, np.frombuffer(tensor.doubles, np.float64), kind)
    else:
        found = np.array([int(number) for number in tensor.data], dtype=kind)
    return found.reshape(tensor.shape)


def _rounded(numbers: Sequence[Number], doubles: np.ndarray, dtype: str) -> np.ndarray:
    """``numbers``, and what they are as ``doubles``, in ``dtype``: rounded once, not twice.

    A double on the way changes the float32 only where it lies midway between two of them: any
    other lies on the same side of every midpoint as its number.
    """
    if dtype == "float64":
        return doubles.copy()
    with np.errstate(all="ignore"):
        found = doubles.astype(np.float32)
        if (found == doubles).all():
            return found
        beside = np.nextafter(found, np.where(doubles > found, np.inf, -np.inf).astype(np.float32))
        midway = doubles - found == beside - doubles
    for place in np.flatnonzero(midway).tolist():
        exact, double = Fraction(numbers[place]), Fraction(float(doubles[place]))
        if exact != double and (exact > double) == (beside[place] > found[place]):
            found[place] = beside[place]
    return found
