"""Whether a fault gives the answers that came.

A fault explains an answer when the answer lies within the bound, plus the fault's own bound, of
what the fault gives, and not within the bound of the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from conformance.diagnosis.alike import alike
from conformance.diagnosis.candidates import Candidate
from conformance.diagnosis.trials import affordable, candidates
from conformance.diagnosis.variants import VALUE, mode_of, variants
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
from conformance.precision import PRECISIONS
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.tape import Whole
from conformance.truth.effects.visibility import distance
from conformance.truth.faults import catalogue
from conformance.truth.proof.bounds import first_order
from conformance.truth.proof.evaluate import Results

#: Call and output.
_Place: TypeAlias = tuple[str, str]


#: Operation and mode.
_Kind: TypeAlias = tuple[str, Mode]


@dataclass(frozen=True)
class Failure:
    """What is needed to explain one failing verdict; ``output`` names that of the operation."""

    verdict: Verdict
    case: Case
    truth: CaseTruth | None
    questions: Mapping[str, Question]
    answers: Mapping[str, Answer]

    @property
    def refused(self) -> bool:
        """Whether valid arguments were refused."""
        due = isinstance(self.case.expectation, Values | Relations)
        return due and any(each.status == "rejected" for each in self.answers.values())

    @property
    def output(self) -> str:
        """The name of the operation's output."""
        question = next(iter(self.questions.values()))
        return next(iter(question.outputs or question.upstream))

    @cached_property
    def got(self) -> dict[_Place, np.ndarray]:
        """What was answered, by call and output."""
        return {
            (call, name): value
            for call, answer in self.answers.items()
            for name, value in answer.outputs.items()
        }

    def is_right(self, place: _Place) -> bool:
        """Whether the output at ``place`` came, and all of it is within the bound."""
        proven, got = (self.truth or {}).get(place), self.got.get(place)
        if proven is None or got is None or proven.shape != got.shape:
            return False
        with np.errstate(all="ignore"):
            error = proven.error(got)
        return bool(np.all(error <= proven.bounds[self.verdict.dtype]))


class Explainer:
    """Looks for explanations failure by failure. What explains failures of the same operation and
    mode is tried first, then what explains most of those of another; the numbers that one case
    gives are kept for its other dtype.
    """

    def __init__(self) -> None:
        self._failed: Counter[_Kind] = Counter()
        self._found: dict[_Kind, Counter[Candidate]] = {}
        self._case = ""
        self._results: dict[tuple[Candidate, str], Results | None] = {}
        self._candidates: list[Candidate] = []

    def explanations(self, failure: Failure, *, only_known: bool = False) -> frozenset[Candidate]:
        """The candidates that give the answers of ``failure``.

        Where some that are tried first explain it, no others are looked for; with ``only_known``
        in no case.
        """
        if not _numeric(failure):
            return frozenset()
        if self._case != failure.case.id:
            self._case, self._results, self._candidates = failure.case.id, {}, []
        kind = (failure.case.operation, mode_of(failure.case))
        known = self._found.setdefault(kind, Counter())
        found = {each for each in known or self._elsewhere(kind) if self._explains(each, failure)}
        if not found and not only_known:
            self._candidates = self._candidates or list(candidates(failure.case, failure.output))
            tried = affordable(self._candidates, failure.case)
            found = {each for each in tried if self._explains(each, failure)}
        if kind[1] == "evaluate":  # where there is no gradient to tell the two apart
            found |= {Candidate(each.fault, each.variant + VALUE) for each in found if each.whole}
        self._failed[kind] += 1
        known.update(found)
        return frozenset(found)

    def _elsewhere(self, kind: _Kind) -> set[Candidate]:
        """The faults, in every variant, that explain at least half of the failures of a kind."""
        faults = {
            candidate.fault
            for other, counts in self._found.items()
            for candidate, count in counts.items()
            if 2 * count >= self._failed[other]
        }
        return {
            Candidate(name, variant)
            for name in faults
            for variant in variants(catalogue()[name], kind[1])
        }

    def _explains(self, candidate: Candidate, failure: Failure) -> bool:
        results = self._of(candidate, failure)
        if not _resembles(results, failure):
            return False
        dtype = failure.verdict.dtype
        if results is not None and failure.truth:
            given = {place: node.value for place, node in results.items()}
            if distance(failure.case, failure.truth, given, dtype) <= 1:
                return False  # it would not have failed
        if results is None or failure.case.free is not None:
            return True
        # Few come so far, and their own bounds ask how the numbers came about.
        if not catalogue()[candidate.fault].stateful:
            results = candidate.results(failure.case, failure.output, dtype)
        return results is not None and _matches(results, failure)

    def _of(self, candidate: Candidate, failure: Failure) -> Results | None:
        """The results of a candidate, without their history but of what can't be asked again."""
        dtype, fault = failure.verdict.dtype, catalogue()[candidate.fault]
        key = (candidate, dtype if fault.native else "")
        if key not in self._results:
            results = candidate.results(failure.case, failure.output, dtype)
            self._results[key] = results if fault.stateful else _alone(results)
        return self._results[key]


def _alone(results: Results | None) -> Results | None:
    """The numbers of ``results`` and not what they were computed from, which is thousands."""
    return results and {
        place: node if isinstance(node, Whole) else node.tape.floats(node.value)
        for place, node in results.items()
    }


def _numeric(failure: Failure) -> bool:
    """Whether every output has the dtype that is due: no mistake in numbers gives another one.

    What is not due may have that of the question, or be whole.
    """
    truth = failure.truth or {}
    asked = np.dtype(failure.verdict.dtype)
    for place, value in failure.got.items():
        if not isinstance(value, np.ndarray):
            return False
        if place in truth and truth[place].dtype != "real":
            right = value.dtype.kind in "iu"
        else:
            right = value.dtype == asked or (place not in truth and value.dtype.kind in "iu")
        if not right:
            return False
    return True


def _resembles(results: Results | None, failure: Failure) -> bool:
    """Whether every answer of the failure is about what came of a fault; cheap to tell."""
    if results is None:
        refused = any(answer.status == "rejected" for answer in failure.answers.values())
        return refused and not _must_refuse(failure)
    if any(answer.status != "outputs" for answer in failure.answers.values()):
        return False
    got = failure.got
    if _alike_alone(failure):
        given = {place: node.value for place, node in results.items()}
        return alike(failure.case, failure.truth or {}, given, got, failure.verdict.dtype)
    if {place: node.shape for place, node in results.items()} != {
        place: value.shape for place, value in got.items()
    }:
        return False
    if failure.case.free is not None:  # of what had to be refused, any numbers are an answer
        return True
    return all(_near(node, got[place], failure, place) for place, node in results.items())


def _matches(results: Results, failure: Failure) -> bool:
    """Whether answers that resemble ``results`` are within their bounds, and one not the truth."""
    got = failure.got
    if not all(_within(node, got[place], failure, place) for place, node in results.items()):
        return False
    absent = got.keys() != (failure.truth or {}).keys()  # a gradient that is due did not come
    wrong = absent or not all(failure.is_right(place) for place in got)
    return wrong or _must_refuse(failure)


def _must_refuse(failure: Failure) -> bool:
    return isinstance(failure.case.expectation, Rejection | Undefined)


def _alike_alone(failure: Failure) -> bool:
    """Whether no value tells, but which relations the answers break."""
    return failure.case.free is not None and not _must_refuse(failure)


def _error(
    node: Node, got: np.ndarray, failure: Failure, place: _Place
) -> tuple[np.ndarray, np.ndarray, float]:
    """How far ``got`` is from what the fault gives, the bound of the truth there, and a hundredth
    of the fault's largest value. NaN matches NaN, infinity matches infinity.
    """
    if isinstance(node, Whole) or got.dtype.kind in "iu":
        same = isinstance(node, Whole) and np.array_equal(node.numbers, got)
        return np.full(got.shape, 0.0 if same else np.inf), np.zeros(got.shape), 0.0
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
