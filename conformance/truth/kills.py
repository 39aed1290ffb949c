"""How visible each fault is in each case: D, its largest effect as a multiple of the bound.

A case separates a fault if and only if D > 2: then no answer lies within the bound of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from conformance.errors import Rejected
from conformance.frozen import CaseTruth
from conformance.model import Case, Operation, Rejection, Relations, Undefined, Values
from conformance.precision import Dtype
from conformance.relations import measure
from conformance.truth.balls import Balls
from conformance.truth.domains import Doubles
from conformance.truth.evaluate import Impossible, Results, evaluate_case
from conformance.truth.faults import Fault
from conformance.truth.prove import Proof, output_of, prove_values
from conformance.truth.reference import Reference
from conformance.truth.tape import Tape

#: More than this multiple of the bound, and a case separates a fault.
SEPARATES = 2.0

#: D of an effect that no bound could hide: another shape, no answer, an answer where none is due.
BEYOND = 1e300


def effect(
    case: Case, operation: Operation, proof: Proof, truth: CaseTruth, fault: type[Fault]
) -> dict[Dtype, float]:
    """D of ``fault`` in ``case`` by dtype; 0 where the fault changes nothing.

    ``proof`` has the values of the case as balls, ``truth`` the same with the frozen bounds.
    """
    none: dict[Dtype, float] = dict.fromkeys(case.dtypes, 0.0)
    if not _touches(case, operation, fault):
        return none
    try:
        wrong = prove_values(case, operation, fault()).values
    except (Rejected, Impossible):
        due = case.expectation
        rejected_rightly = isinstance(due, Rejection | Undefined)
        return none if rejected_rightly else dict.fromkeys(case.dtypes, BEYOND)
    match case.expectation:
        case Rejection():
            return dict.fromkeys(case.dtypes, BEYOND)
        case Undefined(output=output):
            magnitudes = Balls().magnitude(wrong["", output])
            finite = bool(np.any(np.isfinite(magnitudes)))
            return dict.fromkeys(case.dtypes, BEYOND) if finite else none
        case Relations():
            return {dtype: _in_relations(case, truth, wrong, dtype) for dtype in case.dtypes}
        case Values():
            return {dtype: _in_values(proof, truth, wrong, dtype) for dtype in case.dtypes}


def _touches(case: Case, operation: Operation, fault: type[Fault]) -> bool:
    """Whether the fault changes any bit over doubles: most faults touch few operations."""

    def over_doubles(reference: Reference) -> Results | str:
        try:
            with np.errstate(all="ignore"):
                return evaluate_case(reference, Tape(Doubles()), case, output_of(operation))
        except Rejected as rejected:
            return rejected.kind
        except Impossible:
            return "impossible"

    right, wrong = over_doubles(Reference()), over_doubles(fault())
    if isinstance(right, str) or isinstance(wrong, str):
        return right != wrong
    if right.keys() != wrong.keys():
        return True
    return any(
        right[key].shape != wrong[key].shape
        or right[key].value.tobytes() != wrong[key].value.tobytes()
        for key in right
    )


def _in_values(
    proof: Proof, truth: CaseTruth, wrong: Mapping[tuple[str, str], np.ndarray], dtype: Dtype
) -> float:
    largest = 0.0
    for key, right in proof.values.items():
        if key not in wrong or wrong[key].shape != right.shape:
            return BEYOND
        bound = truth[key].bounds[dtype]
        difference = Balls().magnitude(wrong[key] - right)
        with np.errstate(all="ignore"):
            ratio = np.where(difference == 0, 0.0, difference / bound)
        ratio = np.where(np.isnan(ratio) & np.isfinite(bound), BEYOND, np.nan_to_num(ratio))
        largest = max(largest, float(np.max(ratio, initial=0.0)))
    return min(largest, BEYOND)


def _in_relations(
    case: Case, truth: CaseTruth, wrong: Mapping[tuple[str, str], np.ndarray], dtype: Dtype
) -> float:
    assert isinstance(case.expectation, Relations)
    if any(key not in wrong or wrong[key].shape != right.shape for key, right in truth.items()):
        return BEYOND
    outputs = {key: as_doubles(value) for key, value in wrong.items()}
    if any(not np.all(np.isfinite(value)) for value in outputs.values()):
        return BEYOND
    largest = 0.0
    for relation in case.expectation.relate:
        ratio = measure(relation, outputs, truth, dtype).ratio
        if ratio is not None:
            largest = max(largest, ratio if not math.isnan(ratio) else BEYOND)
    return min(largest, BEYOND)


def as_doubles(balls: np.ndarray) -> np.ndarray:
    """The midpoints of balls as doubles, NaN where a ball is not finite."""
    flat = [float(ball.mid()) if ball.is_finite() else math.nan for ball in balls.reshape(-1)]
    return np.array(flat, dtype=np.float64).reshape(balls.shape)
