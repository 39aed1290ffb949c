"""Which known mistakes explain the failures of a run. Loaded only when something failed.

A fault explains an answer when the answer lies within the bound, plus the fault's own bound, of
what the fault gives, and not within the bound of the truth. Over the whole run the fewest faults
are chosen that explain the most failures (greedily: the classical approximation of set cover);
faults that explain the very same failures can't be told apart, and all of them are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from conformance.errors import Rejected
from conformance.frozen import CaseTruth
from conformance.model import (
    Answer,
    Case,
    Diagnosis,
    Operation,
    Question,
    Rejection,
    Undefined,
    Verdict,
)
from conformance.precision import PRECISIONS, Dtype
from conformance.truth.bounds import first_order
from conformance.truth.domains import Doubles
from conformance.truth.evaluate import Impossible, evaluate_question
from conformance.truth.faults import Fault, catalogue
from conformance.truth.reference import Reference
from conformance.truth.tape import Node, Tape
from conformance.truth.variants import variants


@dataclass(frozen=True)
class Failure:
    """What is needed to explain one failing verdict."""

    verdict: Verdict
    case: Case
    truth: CaseTruth | None
    questions: Mapping[str, Question]
    answers: Mapping[str, Answer]


def diagnose(
    failures: Iterable[Failure],
    verdicts: Iterable[Verdict],
    operations: Mapping[str, Operation],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Verdict]:
    """``verdicts`` with the diagnosis of every failure, and the operation it fails because of."""
    explained: dict[tuple[str, str], frozenset[str]] = {}
    known = list(failures)
    for done, failure in enumerate(known, start=1):
        key = (failure.verdict.case, failure.verdict.dtype)
        explained[key] = explanations(failure)
        progress(done, len(known))
    chosen = choose(explained)
    faults = catalogue()
    named: list[Verdict] = []
    for verdict in verdicts:
        names = [
            name for name in chosen if name in explained.get((verdict.case, verdict.dtype), ())
        ]
        diagnosis = tuple(_diagnosis(faults[name]) for name in names) or None
        named.append(msgspec.structs.replace(verdict, diagnosis=diagnosis))
    named = _with_twins(named, known)
    return [
        msgspec.structs.replace(verdict, because=_because(verdict, named, operations))
        for verdict in named
    ]


def _with_twins(verdicts: list[Verdict], failures: Iterable[Failure]) -> list[Verdict]:
    """A rejection that does not count, since its twin was not answered, fails as the twin does."""
    beside: dict[tuple[str, str], str] = {}
    for failure in failures:
        due = failure.case.expectation
        if isinstance(due, Rejection | Undefined) and failure.answers[""].status == "rejected":
            beside[failure.verdict.case, failure.verdict.dtype] = due.beside
    known = {(verdict.case, verdict.dtype): verdict.diagnosis for verdict in verdicts}
    return [
        msgspec.structs.replace(
            verdict, diagnosis=known.get((beside[verdict.case, verdict.dtype], verdict.dtype))
        )
        if (verdict.case, verdict.dtype) in beside
        else verdict
        for verdict in verdicts
    ]


def explanations(failure: Failure) -> frozenset[str]:
    """The names of all faults that give the answers of ``failure``."""
    mode = failure.case.mode
    return frozenset(
        name
        for name, fault in catalogue().items()
        if any(_explains(variant, failure) for variant in variants(fault, mode))
    )


def choose(explained: Mapping[Any, frozenset[str]]) -> list[str]:
    """The fewest faults that explain the most, the one that explains most first."""
    open_ = {key: faults for key, faults in explained.items() if faults}
    chosen: list[str] = []
    while open_:
        reach: dict[str, set[Any]] = {}
        for key, faults in open_.items():
            for name in faults:
                reach.setdefault(name, set()).add(key)
        best = max(reach.values(), key=len)
        alike = [name for name in catalogue() if reach.get(name) == best]
        chosen += alike
        open_ = {key: faults for key, faults in open_.items() if key not in best}
    return chosen


def _diagnosis(fault: type[Fault]) -> Diagnosis:
    return Diagnosis(fault=fault.name(), says=fault.says(), mend=fault.mend, clause=fault.breaks)


def _explains(fault: Reference, failure: Failure) -> bool:
    """Whether every answer of the failure is what ``fault`` gives, and one is not the truth."""
    must_reject = isinstance(failure.case.expectation, Rejection | Undefined)
    differs = must_reject
    for call, answer in failure.answers.items():
        question = failure.questions[call]
        try:
            with np.errstate(all="ignore"):
                given = evaluate_question(fault, Tape(Doubles()), question)
        except (Rejected, Impossible):
            if must_reject or answer.status != "rejected":
                return False
            differs = True
            continue
        if answer.status != "outputs" or not _same_form(given, answer):
            return False
        due = {output for name, output in failure.truth or () if name == call}
        differs = differs or given.keys() != due  # a gradient that is due is absent from both
        for output, node in given.items():
            got = answer.outputs[output]
            if not _within(node, got, failure, (call, output), question.dtype):
                return False
            differs = differs or not _true(got, failure, (call, output), question.dtype)
    return differs


def _same_form(given: Mapping[str, Node], answer: Answer) -> bool:
    outputs = answer.outputs
    return given.keys() == outputs.keys() and all(
        node.shape == outputs[name].shape for name, node in given.items()
    )


def _within(
    node: Node, got: np.ndarray, failure: Failure, key: tuple[str, str], dtype: Dtype
) -> bool:
    """Whether ``got`` is within bound + the fault's own bound of what the fault gives.

    A fault whose own bound is more than a hundredth of its largest value explains nothing; so the
    bound, which is costly, is computed only for answers that are about right.
    """
    proven = (failure.truth or {}).get(key)
    bound = np.zeros(node.shape) if proven is None else proven.bounds[dtype]
    with np.errstate(all="ignore"):
        both_broken = ~np.isfinite(node.value.astype(dtype)) & ~np.isfinite(got)
        distance = np.where(both_broken, 0.0, np.abs(got.astype(np.float64) - node.value))
        if np.all(distance <= bound):
            return True
        scale = np.max(np.abs(node.value), initial=0.0, where=np.isfinite(node.value))
        if not np.all(distance <= bound + 0.01 * scale):
            return False
        own = first_order(node, [PRECISIONS[dtype]])[dtype]
        return bool(np.all(distance <= bound + np.minimum(own, 0.01 * scale)))


def _true(got: np.ndarray, failure: Failure, key: tuple[str, str], dtype: Dtype) -> bool:
    proven = (failure.truth or {}).get(key)
    if proven is None or got.dtype != np.dtype(dtype):
        return False
    with np.errstate(all="ignore"):
        error = np.abs((got.astype(np.float64) - proven.high) - proven.low)
    return bool(np.all(error <= proven.bounds[dtype]))


def _because(
    verdict: Verdict, verdicts: Iterable[Verdict], operations: Mapping[str, Operation]
) -> str | None:
    """The deepest operation that fails and that this failing one is composed of.

    A failure with a diagnosis of its own is not blamed on an operation whose failures have none in
    common with it.
    """
    if verdict.verdict != "fail" or verdict.operation not in operations:
        return None
    own = {item.fault for item in verdict.diagnosis or ()}
    for used in _deepest_first(verdict.operation, operations):
        causes = [
            other
            for other in verdicts
            if other.operation == used
            and other.verdict == "fail"
            and other.dtype == verdict.dtype
            and other.ratio is not None
        ]
        theirs = {item.fault for other in causes for item in other.diagnosis or ()}
        if causes and (not own or own & theirs):
            return used
    return None


def _deepest_first(name: str, operations: Mapping[str, Operation]) -> list[str]:
    found: list[str] = []
    for used in operations[name].uses:
        found += [deep for deep in _deepest_first(used, operations) if deep not in found]
        if used not in found:
            found.append(used)
    return found
