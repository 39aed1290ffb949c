"""Whether a fault gives the answers that came, and whether passing answers speak against it.

A fault explains an answer when the answer lies within the bound, plus the fault's own bound, of
what the fault gives, and not within the bound of the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import msgspec
import numpy as np

from conformance.errors import Rejected
from conformance.frozen import CaseTruth
from conformance.model import (
    Answer,
    Case,
    Mode,
    Question,
    Rejection,
    Relations,
    Undefined,
    Values,
    Verdict,
)
from conformance.precision import PRECISIONS, Dtype
from conformance.truth.bounds import first_order
from conformance.truth.domains import Doubles
from conformance.truth.evaluate import Impossible, Results, evaluate_case
from conformance.truth.faults import catalogue
from conformance.truth.native import Native
from conformance.truth.reference import Reference
from conformance.truth.rules import recording, replaced
from conformance.truth.tape import Node, Tape
from conformance.truth.variants import GRADIENT, WHOLE, variants
from conformance.truth.visibility import SEPARATES, distance

#: Call and output.
_Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Failure:
    """What is needed to explain one failing verdict; ``output`` names that of the operation."""

    verdict: Verdict
    case: Case
    truth: CaseTruth | None
    questions: Mapping[str, Question]
    answers: Mapping[str, Answer]

    @property
    def output(self) -> str:
        """The name of the operation's output."""
        question = next(iter(self.questions.values()))
        return next(iter(question.outputs or question.upstream))


@dataclass(frozen=True)
class Candidate:
    """A fault, and in which of its ``variants`` it was made."""

    fault: str
    variant: int

    @property
    def whole(self) -> bool:
        """Whether value and gradient have it alike."""
        return self.variant in WHOLE

    def reference(self, mode: Mode) -> Reference:
        """The reference that makes the mistake; a mistake of the gradient alone has no values."""
        fault = catalogue()[self.fault]
        if self.variant == 0:
            return fault()  # a new one for each case: it may remember what it gave before
        return _part(self.fault, self.variant, mode)

    def results(self, case: Case, output: str, dtype: Dtype) -> Results | None:
        """The results of ``case`` with the mistake; None where it refuses, or can't be made."""
        native = catalogue()[self.fault].native
        tape = Tape(Native(dtype) if native else Doubles())
        return _results(self.reference(case.mode), tape, case, output)


@cache
def _part(name: str, variant: int, mode: Mode) -> Reference:
    found = list(variants(catalogue()[name], mode))
    if variant < len(found):
        return found[variant]
    return Reference() if variant == GRADIENT else found[0]


def _results(reference: Reference, tape: Tape, case: Case, output: str) -> Results | None:
    try:
        with np.errstate(all="ignore"):
            return evaluate_case(reference, tape, case, output)
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
    return distance(case, truth, got, dtype) > SEPARATES


class Explainer:
    """Looks for explanations failure by failure; what one case gives is kept for its other dtype,
    and what explains a failure is tried first on others of the same operation and mode.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, Mode], set[Candidate]] = {}
        self._case = ""
        self._results: dict[tuple[Candidate, str], Results | None] = {}
        self._candidates: list[Candidate] = []

    def explanations(self, failure: Failure, *, only_known: bool = False) -> frozenset[Candidate]:
        """The candidates that give the answers of ``failure``.

        Where some that explain other failures of the same operation and mode explain this one too,
        no others are looked for; with ``only_known`` in no case.
        """
        if not all(_numeric(answer, failure) for answer in failure.answers.values()):
            return frozenset()
        if self._case != failure.case.id:
            self._case, self._results, self._candidates = failure.case.id, {}, []
        known = self._known.setdefault((failure.case.operation, failure.case.mode), set())
        found = {each for each in known if self._explains(each, failure)}
        if not found and not only_known:
            self._candidates = self._candidates or list(_candidates(failure))
            found = {each for each in self._candidates if self._explains(each, failure)}
        known |= found
        return frozenset(found)

    def _explains(self, candidate: Candidate, failure: Failure) -> bool:
        native = catalogue()[candidate.fault].native
        dtype = failure.verdict.dtype
        key = (candidate, dtype if native else "")
        if key not in self._results:
            self._results[key] = candidate.results(failure.case, failure.output, dtype)
        return _gives(self._results[key], failure)


def _candidates(failure: Failure) -> Iterator[Candidate]:
    """Every candidate that changes a rule which the case comes to, and has something to change."""
    case, output = failure.case, failure.output
    reference, reached = recording()
    _results(reference, Tape(Doubles()), case, output)
    values = msgspec.structs.replace(case, mode="evaluate")
    right = _bits(_results(Reference(), Tape(Doubles()), values, output))
    for name, fault in catalogue().items():
        if not replaced(fault) & reached:
            continue
        yield Candidate(name, 0)
        wrong = _bits(_results(fault(), Tape(Doubles()), values, output))
        if case.mode == "vjp" and (fault.native or wrong != right):  # else there are no two halves
            for variant in range(1, len(list(variants(fault, case.mode)))):
                yield Candidate(name, variant)


def _bits(results: Results | None) -> object:
    return results and {place: (n.shape, n.value.tobytes()) for place, n in results.items()}


def _numeric(answer: Answer, failure: Failure) -> bool:
    """Whether every output is an array of the dtype that was asked for."""
    dtype = np.dtype(failure.verdict.dtype)
    return all(
        isinstance(value, np.ndarray) and value.dtype == dtype for value in answer.outputs.values()
    )


def _gives(results: Results | None, failure: Failure) -> bool:
    """Whether every answer of the failure is what came of a fault, and one is not the truth."""
    refused = any(answer.status == "rejected" for answer in failure.answers.values())
    must_refuse = isinstance(failure.case.expectation, Rejection | Undefined)
    if results is None:
        return refused and not must_refuse
    if any(answer.status != "outputs" for answer in failure.answers.values()):
        return False
    got = {
        (call, name): value
        for call, answer in failure.answers.items()
        for name, value in answer.outputs.items()
    }
    if {place: node.shape for place, node in results.items()} != {
        place: value.shape for place, value in got.items()
    }:
        return False
    if not all(_near(node, got[place], failure, place) for place, node in results.items()):
        return False
    if not all(_within(node, got[place], failure, place) for place, node in results.items()):
        return False
    absent = got.keys() != (failure.truth or {}).keys()  # a gradient that is due did not come
    return must_refuse or absent or not all(_true(got[place], failure, place) for place in got)


def _error(
    node: Node, got: np.ndarray, failure: Failure, place: _Place
) -> tuple[np.ndarray, np.ndarray, float]:
    """How far ``got`` is from what the fault gives, the bound of the truth there, and a hundredth
    of the fault's largest value. NaN matches NaN, infinity matches infinity.
    """
    dtype = failure.verdict.dtype
    proven = (failure.truth or {}).get(place)
    fits = proven is not None and proven.shape == node.shape
    bound = proven.bounds[dtype] if proven is not None and fits else np.zeros(node.shape)
    with np.errstate(all="ignore"):
        value = node.value.astype(dtype)
        alike = (value == got) | (np.isnan(value) & np.isnan(got))
        error = np.abs(got.astype(np.float64) - node.value.astype(np.float64))
        scale = np.max(np.abs(node.value), initial=0.0, where=np.isfinite(node.value))
    return np.where(alike, 0.0, error), bound, 0.01 * float(scale)


def _near(node: Node, got: np.ndarray, failure: Failure, place: _Place) -> bool:
    """Whether ``got`` is about what the fault gives; a larger bound of its own explains nothing."""
    error, bound, limit = _error(node, got, failure, place)
    return bool(np.all(error <= bound + limit))


def _within(node: Node, got: np.ndarray, failure: Failure, place: _Place) -> bool:
    """Whether ``got`` is within bound + the fault's own bound of what the fault gives.

    The fault's own bound is costly, so it is computed only where it decides.
    """
    error, bound, limit = _error(node, got, failure, place)
    if np.all(error <= bound):
        return True
    try:
        own = first_order(node, [PRECISIONS[failure.verdict.dtype]])[failure.verdict.dtype]
    except (ValueError, IndexError):  # shapes that only the fault accepts have no derivative
        return False
    return bool(np.all(error <= bound + np.minimum(own, limit)))


def _true(got: np.ndarray, failure: Failure, place: _Place) -> bool:
    proven = (failure.truth or {}).get(place)
    if proven is None or proven.shape != got.shape:
        return False
    with np.errstate(all="ignore"):
        error = np.abs((got.astype(np.float64) - proven.high) - proven.low)
    return bool(np.all(error <= proven.bounds[failure.verdict.dtype]))
