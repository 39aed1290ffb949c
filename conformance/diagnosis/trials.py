"""Which faults are tried on a case: all that change something, where that can be afforded."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from conformance.diagnosis.candidates import Candidate, results_of
from conformance.diagnosis.variants import GRADIENT, VALUE, variant_of, variants
from conformance.model import Case, Relations
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.effects.concerned import is_training
from conformance.truth.effects.rules import recording, replaced
from conformance.truth.faults import catalogue
from conformance.truth.proof.evaluate import Results
from conformance.truth.reference import Reference
from conformance.truth.reference.initialisation import InitialisationRules
from conformance.truth.reference.optimiser import OptimiserRules
from conformance.truth.reference.training import TrainingRules

#: The rules of training, and of the steps that it takes.
_TRAINS = frozenset((*vars(TrainingRules), *vars(OptimiserRules)))

#: The rules of drawing numbers.
_DRAWS = frozenset(vars(InitialisationRules))


def candidates(case: Case, output: str) -> Iterator[Candidate]:
    """Every candidate that changes a rule which the case comes to, and has something to change."""
    if case.free is not None and isinstance(case.expectation, Relations):
        for name in filter(lambda name: _worthwhile(name, case), catalogue()):
            ways = variants(catalogue()[name], case.mode, places=False)
            # Of a hundred steps of training the first way is tried alone.
            yield from (Candidate(name, way) for way in ways if not way or case.operation in _DRAWS)
        return
    reference, reached = recording()
    results_of(reference, Tape(Doubles()), case, output)
    values = msgspec.structs.replace(case, mode="evaluate")
    graded = case.mode == "vjp"
    right = _bits(results_of(Reference(), Tape(Doubles()), values, output)) if graded else None
    for name, fault in catalogue().items():
        if not replaced(fault) & reached:
            continue
        if fault.reads and case.layout == "contiguous":
            continue  # memory is the array there
        for way in variants(fault, case.mode, places=False):
            yield Candidate(name, way)
            if fault.reads or not graded:
                continue
            other = variant_of(fault, way, "evaluate")
            wrong = _bits(results_of(other, Tape(Doubles()), values, output))
            if fault.native or wrong != right:  # else there are no two halves
                yield from (Candidate(name, way + place) for place in (VALUE, GRADIENT))


def affordable(found: list[Candidate], case: Case) -> list[Candidate]:
    """What is tried of the candidates ``found`` for a case.

    A training comes to every rule there is, and each trial costs it: only mistakes of training and
    of its optimiser are tried there, and those that say that they break what the case shows.
    Others are known from the cases of their own operations, if they were made.
    """
    if not is_training(case):
        return found
    shown = set(case.clauses)
    return [
        each
        for each in found
        for fault in [catalogue()[each.fault]]
        if shown & set(fault.clauses()) or replaced(fault) & _TRAINS
    ]


def _worthwhile(name: str, case: Case) -> bool:
    """Whether to try a fault on a free case; a hundred steps of training cost much, draws little.

    What does not say that it breaks what the case shows is tried on draws alone.
    """
    fault = catalogue()[name]
    cited = set(fault.clauses()) & set(case.clauses)
    return bool(cited) or (case.operation in _DRAWS and bool(replaced(fault) & _DRAWS))


def _bits(results: Results | None) -> object:
    return results and {place: (n.shape, n.value.tobytes()) for place, n in results.items()}
