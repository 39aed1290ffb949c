"""A fault as an explanation: what it gives in a case, and whether a case that passed refutes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from conformance.diagnosis.variants import WHOLE, mode_of, place_of, variant_of
from conformance.errors import Rejected
from conformance.frozen import CaseTruth
from conformance.model import Case, Mode, Rejection, Relations, Undefined, Values
from conformance.precision import Dtype
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.native import Native
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.effects.misread import as_read
from conformance.truth.effects.visibility import LARGE, SEPARATES, distance
from conformance.truth.faults import catalogue
from conformance.truth.proof.evaluate import Impossible, Results, evaluate_case
from conformance.truth.reference import Reference


@dataclass(frozen=True)
class Candidate:
    """A fault, and in which of its ``variants`` it was made."""

    fault: str
    variant: int

    @property
    def whole(self) -> bool:
        """Whether value and gradient have it alike."""
        return place_of(self.variant) == WHOLE

    def reference(self, mode: Mode) -> Reference:
        """The reference that makes the mistake; a mistake of the gradient alone has no values."""
        if self.whole:  # a new one for each case: it may remember what it gave before
            return variant_of(catalogue()[self.fault], self.variant, mode)
        return _part(self.fault, self.variant, mode)

    def results(self, case: Case, output: str, dtype: Dtype) -> Results | None:
        """The results of ``case`` with the mistake; None where it refuses, or can't be made."""
        native = catalogue()[self.fault].native
        tape = Tape(Native(dtype) if native else Doubles(), remembers=case.free is None)
        return results_of(self.reference(mode_of(case)), tape, case, output)


@cache
def _part(name: str, variant: int, mode: Mode) -> Reference:
    return variant_of(catalogue()[name], variant, mode)


def results_of(reference: Reference, tape: Tape, case: Case, output: str) -> Results | None:
    """The results of ``case``; None where ``reference`` refuses it or can't be evaluated."""
    try:
        with np.errstate(all="ignore"):
            return evaluate_case(reference, tape, as_read(reference, case), output)
    except (Rejected, Impossible):
        return None


def contradicted(
    candidate: Candidate, case: Case, output: str, truth: CaseTruth, dtype: Dtype
) -> bool:
    """Whether ``case``, which passed, would have failed if ``candidate`` were made there.

    ``output`` names the output of the operation; ``truth`` is empty where no values are due.
    """
    results = candidate.results(case, output, dtype)
    if results is None:
        return not isinstance(case.expectation, Rejection | Undefined)
    got = {place: node.value for place, node in results.items()}
    if isinstance(case.expectation, Undefined):
        return bool(np.any(np.isfinite(got["", case.expectation.output])))
    if not isinstance(case.expectation, Values | Relations):
        return True
    limit = LARGE if catalogue()[candidate.fault].native else SEPARATES
    return distance(case, truth, got, dtype) > limit
