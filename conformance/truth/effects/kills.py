"""How visible each fault is in each case: D, its largest effect as a multiple of the bound.

A case separates a fault if and only if D > 2: then no answer lies within the bound of both. The
effect of a mistake is that of exact numbers (balls); a mistake of rounding has none there, and is
measured in the precision of the question, against the truth.
"""

from __future__ import annotations

import math

import numpy as np

from conformance.errors import Rejected
from conformance.frozen import CaseTruth
from conformance.model import Case, Operation, Rejection, Relations, Undefined, Values
from conformance.precision import Dtype
from conformance.truth.arithmetic.balls import Balls
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.effects.misread import as_read
from conformance.truth.effects.rules import recording, replaced
from conformance.truth.effects.visibility import (
    BEYOND,
    SEPARATES,
    Arrays,
    distance,
    in_relations,
    largest_share,
    native_effect,
)
from conformance.truth.faults import Fault, catalogue
from conformance.truth.proof.evaluate import Impossible, Results, evaluate_case
from conformance.truth.proof.prove import Proof, output_of, prove_values
from conformance.truth.reference import Reference

__all__ = ["BEYOND", "SEPARATES", "Effects", "as_doubles", "can_tell", "effect"]

#: By dtype the D from which doubles tell it to a thousandth: their rounding is a few bounds of
#: float64, and 2 ** -29 of that in bounds of float32.
_PLAIN: dict[Dtype, float] = {"float64": 1e4, "float32": 1e-2}


def effect(
    case: Case, operation: Operation, proof: Proof, truth: CaseTruth, fault: type[Reference]
) -> dict[Dtype, float]:
    """D of ``fault`` in ``case`` by dtype; 0 where the fault changes nothing.

    ``proof`` has the values of the case as balls, ``truth`` the same with the frozen bounds.
    """
    return Effects(case, operation, proof, truth).of(fault)


class Effects:
    """What faults do to one case; the right results are computed once for all of them."""

    def __init__(self, case: Case, operation: Operation, proof: Proof, truth: CaseTruth) -> None:
        """As for ``effect``."""
        self.case = case
        self.operation = operation
        self.proof = proof
        self.truth = truth
        reference, self._reached = recording()
        self._right = self._over_doubles(reference)

    def of(self, fault: type[Reference]) -> dict[Dtype, float]:
        """D of ``fault`` by dtype."""
        none: dict[Dtype, float] = dict.fromkeys(self.case.dtypes, 0.0)
        if not replaced(fault) & self._reached:
            return none
        if getattr(fault, "native", False):
            output = output_of(self.operation)
            return {
                dtype: native_effect(self.case, output, self.truth, fault, dtype)
                for dtype in self.case.dtypes
            }
        over_doubles = self._over_doubles(fault())
        if not self._touched(over_doubles):
            return none
        plain = self._plain(over_doubles)
        if plain is not None:
            return plain
        try:
            wrong = prove_values(as_read(fault, self.case), self.operation, fault()).values
        except (Rejected, Impossible):
            due = self.case.expectation
            rejected_rightly = isinstance(due, Rejection | Undefined)
            return none if rejected_rightly else dict.fromkeys(self.case.dtypes, BEYOND)
        return {dtype: self._distance(wrong, dtype) for dtype in self.case.dtypes}

    def passed_by(self) -> tuple[str, ...]:
        """The names of the trivial faults whose answer passes in some dtype of the case."""
        if isinstance(self.case.expectation, Rejection):
            return ()  # a trivial answer is an answer, and a refusal of everything lacks its twin
        judged = [
            dtype
            for dtype in self.case.dtypes
            if all(np.all(np.isfinite(right.bounds[dtype])) for right in self.truth.values())
        ]
        return tuple(
            name
            for name, fault in catalogue().items()
            if fault.trivial and can_tell(self.case, self.truth, fault)
            for sizes in [self.of(fault)]
            if any(sizes[dtype] <= 1 for dtype in judged)
        )

    def _distance(self, wrong: Arrays, dtype: Dtype) -> float:
        match self.case.expectation:
            case Rejection():
                return BEYOND
            case Undefined(output=output):
                finite = np.isfinite(Balls().magnitude(wrong["", output]))
                return BEYOND if bool(np.any(finite)) else 0.0
            case Relations():
                outputs = {key: as_doubles(value) for key, value in wrong.items()}
                return in_relations(self.case.expectation, self.truth, outputs, dtype)
            case Values():
                errors = {
                    key: Balls().magnitude(wrong[key] - value)
                    for key, value in self.proof.values.items()
                    if key in wrong and wrong[key].shape == value.shape
                }
                return largest_share(errors, self.truth, dtype)

    def _plain(self, wrong: Results | str) -> dict[Dtype, float] | None:
        """D over doubles where the effect is so large that their own rounding is lost in it."""
        if isinstance(wrong, str) or not isinstance(self.case.expectation, Values | Relations):
            return None
        values = {key: node.value for key, node in wrong.items()}
        if not all(np.all(np.isfinite(value)) for value in values.values()):
            return None
        sizes = {d: distance(self.case, self.truth, values, d) for d in self.case.dtypes}
        return sizes if all(size > _PLAIN[dtype] for dtype, size in sizes.items()) else None

    def _touched(self, wrong: Results | str) -> bool:
        """Whether a fault that gives ``wrong`` over doubles changes any bit of them."""
        right = self._right
        if isinstance(right, str) or isinstance(wrong, str):
            return right != wrong
        if right.keys() != wrong.keys():
            return True
        return any(
            right[key].shape != wrong[key].shape
            or right[key].value.tobytes() != wrong[key].value.tobytes()
            for key in right
        )

    def _over_doubles(self, reference: Reference) -> Results | str:
        try:
            with np.errstate(all="ignore"):
                asked, output = as_read(reference, self.case), output_of(self.operation)
                return evaluate_case(reference, Tape(Doubles()), asked, output)
        except Rejected as rejected:
            return rejected.kind
        except Impossible:
            return "impossible"


def can_tell(case: Case, truth: CaseTruth, fault: type[Fault]) -> bool:
    """Whether the trivial ``fault`` could show at all: a vector has no axes to exchange."""
    shapes = [right.shape for right in truth.values()]
    match fault.name():
        case "constant-returned":
            return any(math.prod(shape) > 1 for shape in shapes)
        case "transposed-answer":
            return any(len(shape) > 1 and max(shape[-2:]) > 1 for shape in shapes)
        case "previous-answer":
            return len(case.calls) > 1
    return True


def as_doubles(balls: np.ndarray) -> np.ndarray:
    """The midpoints of balls as doubles, NaN where a ball is not finite."""
    flat = [float(ball.mid()) if ball.is_finite() else math.nan for ball in balls.reshape(-1)]
    return np.array(flat, dtype=np.float64).reshape(balls.shape)
