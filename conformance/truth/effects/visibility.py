"""How far a wrong answer lies from the truth, as a multiple of the bound. Needs no oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from conformance.errors import Rejected
from conformance.frozen import CaseTruth
from conformance.judging.relations import measure
from conformance.model import Case, Relations, Values
from conformance.precision import Dtype
from conformance.truth.arithmetic.native import Native
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.effects.misread import as_read
from conformance.truth.proof.evaluate import Impossible, evaluate_case
from conformance.truth.reference import Reference

#: More than this multiple of the bound, and a case separates a fault.
SEPARATES = 2.0

#: Beyond this D every implementation that makes a mistake of rounding should fail: what each of
#: them gives is its own, so that twice the bound is not enough to tell.
LARGE = 8.0

#: D of an effect that no bound could hide: another shape, no answer, an answer where none is due.
BEYOND = 1e300

#: By call and output.
Arrays = Mapping[tuple[str, str], np.ndarray]


def native_effect(
    case: Case, output: str, truth: CaseTruth, fault: type[Reference], dtype: Dtype
) -> float:
    """D of ``fault`` evaluated in ``dtype``: its error as a multiple of the bound.

    ``output`` names the output of the operation. 0 where the case expects no values.
    """
    if not isinstance(case.expectation, Values | Relations):
        return 0.0
    got = _natively(case, output, fault, dtype)
    return BEYOND if got is None else distance(case, truth, got, dtype)


def native_effects(
    case: Case, output: str, truth: CaseTruth, fault: type[Reference], dtype: Dtype
) -> dict[tuple[str, str], float]:
    """D of ``fault`` evaluated in ``dtype`` by call and output; nothing where no output comes."""
    got = _natively(case, output, fault, dtype) or {}
    return {
        key: largest_share({key: error}, {key: truth[key]}, dtype)
        for key, error in _errors(truth, got).items()
    }


def _natively(case: Case, output: str, fault: type[Reference], dtype: Dtype) -> Arrays | None:
    try:
        with np.errstate(all="ignore"):
            results = evaluate_case(fault(), Tape(Native(dtype)), as_read(fault, case), output)
    except (Rejected, Impossible):
        return None
    return {key: node.value for key, node in results.items()}


def distance(case: Case, truth: CaseTruth, got: Arrays, dtype: Dtype) -> float:
    """How far the outputs ``got`` of a case with values or relations lie from what is due."""
    if not got.keys() <= truth.keys():
        return BEYOND  # something is there that should not be
    if isinstance(case.expectation, Relations):
        doubles = {key: value.astype(np.float64) for key, value in got.items()}
        return in_relations(case.expectation, truth, doubles, dtype)
    return largest_share(_errors(truth, got), truth, dtype)


def _errors(truth: CaseTruth, got: Arrays) -> dict[tuple[str, str], np.ndarray]:
    """How far every output is from what is due, of those that have its shape."""
    with np.errstate(all="ignore"):
        return {
            key: np.abs((got[key].astype(np.float64) - right.high) - right.low)
            for key, right in truth.items()
            if key in got and got[key].shape == right.shape
        }


def largest_share(errors: Arrays, truth: CaseTruth, dtype: Dtype) -> float:
    """The largest error as a multiple of its bound; an output that is missing is beyond."""
    if errors.keys() != truth.keys():
        return BEYOND
    largest = 0.0
    for key, error in errors.items():
        bound = truth[key].bounds[dtype]
        with np.errstate(all="ignore"):
            ratio = np.where(error == 0, 0.0, error / bound)
        ratio = np.where(np.isnan(ratio) & np.isfinite(bound), BEYOND, np.nan_to_num(ratio))
        largest = max(largest, float(np.max(ratio, initial=0.0)))
    return min(largest, BEYOND)


def in_relations(due: Relations, truth: CaseTruth, outputs: Arrays, dtype: Dtype) -> float:
    """How far the doubles ``outputs`` are from keeping every relation; 0 where none is known."""
    for key, right in truth.items():
        if key not in outputs or outputs[key].shape != right.shape:
            return BEYOND
        if not np.all(np.isfinite(outputs[key])):
            return BEYOND
    largest = 0.0
    for relation in due.relate:
        try:
            ratio = measure(relation, outputs, truth, dtype).ratio
        except (ValueError, IndexError, OverflowError):
            continue  # a relation that can't be measured is a problem of the case
        if ratio is not None:
            largest = max(largest, ratio if not math.isnan(ratio) else BEYOND)
    return min(largest, BEYOND)
