"""Which known mistakes explain the failures of a run. Loaded only when something failed.

Over the whole run the fewest faults are chosen that explain the most failures. Those that nothing
in the run tells apart are all named; one that passing cases speak against comes after one that none
does. Mistakes of rounding are known by which cases fail. A failure that nothing of its own explains
carries the diagnosis of the operation it is built on; where there is none either, its message says
what can still be said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from conformance.diagnosis import signature
from conformance.diagnosis.candidates import Candidate
from conformance.diagnosis.choose import choose
from conformance.diagnosis.evidence import (
    LIKELY,
    Evidence,
    Explained,
    Group,
    Key,
    group,
    key_of,
)
from conformance.diagnosis.explain import Explainer, Failure
from conformance.diagnosis.hints import hint
from conformance.diagnosis.variants import WHERE, place_of
from conformance.judging.dependants import deepest_first
from conformance.model import Diagnosis, Operation, Rejection, Undefined, Verdict
from conformance.model.verdicts import DIAGNOSED
from conformance.specification import Specification
from conformance.specification import load as load_specification
from conformance.truth.effects.concerned import is_training
from conformance.truth.faults import catalogue
from conformance.truth.proof.evaluate import by_name

__all__ = ["Failure", "diagnose"]

#: How the message begins of a case that was asked again.
_OTHERWISE = "not reproducible"


def diagnose(
    failures: Iterable[Failure],
    verdicts: Iterable[Verdict],
    operations: Mapping[str, Operation],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    specification: Specification | None = None,
) -> list[Verdict]:
    """``verdicts`` with the diagnosis of every failure, and the operation it fails because of.

    ``specification`` has the cases that passed, which speak for or against a fault; without it,
    that of the kit is taken for the cases it has.
    """
    known = list(failures)
    evidence = Evidence(list(verdicts), operations, specification or load_specification())
    chosen, explained = _chosen(evidence, known, progress)
    dtypes = {failure.verdict.dtype for failure in known}
    weak = {each.fault for each in chosen if evidence.refuted(each, dtypes)}
    named = [_with_values(verdict, chosen, explained) for verdict in evidence.verdicts]
    named = _with_twins(named, known)
    named = [_with_because(verdict, named, operations, weak) for verdict in named]
    named = _with_signatures(evidence, named, known)
    named = [_with_memory(evidence, verdict, named, chosen) for verdict in named]
    named = [_with_cause(verdict, named, weak) for verdict in named]
    return _with_hints(named, known)


def _chosen(
    evidence: Evidence, failures: Sequence[Failure], progress: Callable[[int, int], None]
) -> tuple[list[Candidate], Explained]:
    """The fewest candidates that give the answers of the failures, and which give which."""
    explained: dict[Key, frozenset[Candidate]] = {}
    explainer = Explainer()
    found: dict[tuple[str, str], list[frozenset[Candidate]]] = {}  # by operation and dtype
    # What explains a small case is tried first for the larger ones, which take longer to compute,
    # and what explains the values for the gradients.
    ordered = sorted(failures, key=lambda each: _costs(evidence, each))
    for done, failure in enumerate(ordered, start=1):
        own, dtype = failure.case.operation, failure.verdict.dtype
        parts = [found[part, dtype] for part in evidence.parts(own) if (part, dtype) in found]
        # A training whose parts fail fails because of them; it costs too much to try all on it.
        costly = bool(parts) and is_training(failure.case)
        only_known = costly or _beyond_one_mistake(parts)
        given = explainer.explanations(failure, only_known=only_known)
        found.setdefault((own, dtype), []).append(given)
        explained[key_of(failure.verdict)] = given
        progress(done, len(failures))
    likely = _beyond_refusals(evidence, evidence.likely(explained), failures)
    groups = {key_of(verdict): group(verdict) for verdict in evidence.verdicts}
    chosen = choose(
        likely,
        lambda candidate, keys: evidence.refuted_near(candidate, {groups[key] for key in keys}),
        lambda candidate, keys: evidence.refuted(candidate, {dtype for _, dtype in keys}),
    )
    return chosen, likely


def _beyond_refusals(
    evidence: Evidence, likely: Explained, failures: Sequence[Failure]
) -> Explained:
    """``likely`` without the candidates for which nothing speaks but that valid arguments were
    refused: an exception has many reasons. One stays that refuses exactly what was refused, in the
    operation that is composed of the least.
    """
    refused = {key_of(each.verdict): each.case.operation for each in failures if each.refused}
    shown = {each for key, given in likely.items() if key not in refused for each in given}
    doubted = set().union(*(likely[key] for key in refused)) - shown
    coincidental = set()
    for candidate in doubted:
        keys = [key for key in refused if candidate in likely[key]]
        root = min((refused[key] for key in keys), key=lambda each: len(evidence.parts(each)))
        dtypes = {dtype for _, dtype in keys}
        beside = {key for key, own in refused.items() if own == root and key[1] in dtypes}
        if not beside <= set(keys) or evidence.refuted(candidate, dtypes):
            coincidental.add(candidate)
    return {key: given - coincidental if key in refused else given for key, given in likely.items()}


def _costs(evidence: Evidence, failure: Failure) -> tuple[int, bool, bool, int]:
    """What is composed of little comes first, and of that what has values to tell by."""
    case = failure.case
    parts = len(evidence.parts(case.operation))
    return parts, case.free is not None, case.mode == "vjp", _size(failure)


def _size(failure: Failure) -> int:
    """How many numbers the questions of a failure carry."""
    return sum(
        int(getattr(value, "size", 1))
        for question in failure.questions.values()
        for value in by_name(question.arguments).values()
    )


def _beyond_one_mistake(parts: Sequence[Sequence[frozenset[Candidate]]]) -> bool:
    """Whether what is built on failing operations can't be explained by one mistake: one of them
    fails for no known reason, or two of them for reasons that have nothing in common.

    ``parts`` has for each the candidates of its failures, one by one.
    """
    if any(sum(map(bool, each)) < LIKELY * len(each) for each in parts):
        return True
    names = [{candidate.fault for given in each for candidate in given} for each in parts]
    return len(parts) > 1 and not set.intersection(*names)


def _with_values(verdict: Verdict, chosen: Sequence[Candidate], explained: Explained) -> Verdict:
    """The verdict with those of the chosen faults whose values came."""
    given = explained.get(key_of(verdict), frozenset())
    diagnosis: dict[str, Diagnosis] = {}
    for candidate in chosen:
        if candidate in given:
            diagnosis.setdefault(candidate.fault, _diagnosis(candidate, verdict))
    return msgspec.structs.replace(verdict, diagnosis=tuple(diagnosis.values()) or None)


def _with_signatures(
    evidence: Evidence, named: Sequence[Verdict], failures: Sequence[Failure]
) -> list[Verdict]:
    """The verdicts with the mistakes of rounding whose cases failed."""
    answered = {key_of(failure.verdict): failure for failure in failures}
    found: dict[Group, list[str]] = {}
    result = []
    for verdict in named:
        names: list[str] = []
        if verdict.verdict == "fail" and not verdict.diagnosis and verdict.because is None:
            own = group(verdict)
            if own not in found:
                beside = [other for other in named if group(other) == own]
                found[own] = signature.fitting(evidence, beside, answered)
            names = found[own]
        diagnosis = tuple(_diagnosis(Candidate(name, 0), verdict) for name in names)
        given = diagnosis or verdict.diagnosis
        result.append(msgspec.structs.replace(verdict, diagnosis=given))
    return result


def _with_memory(
    evidence: Evidence, verdict: Verdict, named: Sequence[Verdict], chosen: Sequence[Candidate]
) -> Verdict:
    """What differs from call to call is the doing of a fault that remembers: answers that came out
    otherwise when asked again, and relations between calls that nothing else explains.

    Where such a fault was found in the same operation, or in those that it is built on.
    """
    again = verdict.message.startswith(_OTHERWISE) or evidence.relates(verdict)
    if verdict.verdict != "fail" or verdict.diagnosis or not again:
        return verdict
    own = {verdict.operation, *evidence.parts(verdict.operation)}
    told = [each for other in named if other.operation in own for each in other.diagnosis or ()]
    faults = {each.fault for each in told if catalogue()[each.fault].stateful}
    found = {
        each.fault: _diagnosis(each, verdict) for each in reversed(chosen) if each.fault in faults
    }
    return msgspec.structs.replace(verdict, diagnosis=tuple(found.values()) or None)


def _diagnosis(candidate: Candidate, verdict: Verdict) -> Diagnosis:
    """The fault in words; what breaks every clause alike breaks the first that the case shows."""
    fault = catalogue()[candidate.fault]
    says, where = fault.says(), WHERE[place_of(candidate.variant)]
    return Diagnosis(
        fault=candidate.fault,
        says=f"{says.removesuffix('.')}, {where}." if where else says,
        mend=fault.mend,
        clause=verdict.clauses[0] if fault.trivial and verdict.clauses else fault.breaks,
    )


def _with_twins(verdicts: list[Verdict], failures: Iterable[Failure]) -> list[Verdict]:
    """A rejection that does not count, since its twin was not answered, fails as the twin does."""
    beside: dict[Key, str] = {}
    for failure in failures:
        due = failure.case.expectation
        if isinstance(due, Rejection | Undefined) and failure.answers[""].status == "rejected":
            beside[key_of(failure.verdict)] = due.beside
    known = {key_of(verdict): verdict.diagnosis for verdict in verdicts}
    return [
        msgspec.structs.replace(
            verdict, diagnosis=known.get((beside[key_of(verdict)], verdict.dtype))
        )
        if key_of(verdict) in beside
        else verdict
        for verdict in verdicts
    ]


def _with_because(
    verdict: Verdict,
    verdicts: Iterable[Verdict],
    operations: Mapping[str, Operation],
    weak: set[str],
) -> Verdict:
    """The verdict with the deepest operation that fails and that this one is composed of.

    A failure with a diagnosis of its own is not blamed on an operation whose failures have none in
    common with it, unless passing cases speak against that diagnosis (``weak``); and values are not
    blamed on gradients, but for those of a training.
    """
    if verdict.verdict != "fail" or verdict.operation not in operations:
        return verdict
    own = {item.fault for item in verdict.diagnosis or ()}
    for used in deepest_first(verdict.operation, operations):
        causes = [
            other
            for other in verdicts
            if other.operation == used
            and other.verdict == "fail"
            and other.dtype == verdict.dtype
            and other.ratio is not None
            and (other.mode == "evaluate" or verdict.mode == "vjp" or verdict.operation == "train")
        ]
        theirs = {item.fault for other in causes for item in other.diagnosis or ()}
        if causes and (own <= weak or own & theirs):
            return msgspec.structs.replace(verdict, because=used)
    return verdict


def _with_cause(verdict: Verdict, verdicts: Sequence[Verdict], weak: set[str]) -> Verdict:
    """A failure that nothing of its own explains has the diagnosis of what it is built on.

    Of the failures there it takes those of its own mode, if there are any, and the faults that
    explain more than a few of them. Where nothing explains most of them, what explains the few is
    no reason for what is built on all.
    """
    own = {each.fault for each in verdict.diagnosis or ()}
    if verdict.because is None or not own <= weak:
        return verdict
    roots = [
        other
        for other in verdicts
        if (other.operation, other.dtype) == (verdict.because, verdict.dtype)
        and other.verdict == "fail"
    ]
    roots = [other for other in roots if other.mode == verdict.mode] or roots
    if 2 * sum(bool(other.diagnosis) for other in roots) < len(roots):
        return msgspec.structs.replace(verdict, diagnosis=None)
    counts = Counter(each.fault for other in roots for each in other.diagnosis or ())
    found = {each.fault: each for other in roots for each in other.diagnosis or ()}
    kept = [found[name] for name, count in counts.most_common() if count >= LIKELY * len(roots)]
    return msgspec.structs.replace(verdict, diagnosis=tuple(kept) or None)


def _with_hints(verdicts: Sequence[Verdict], failures: Iterable[Failure]) -> list[Verdict]:
    """Failures without a diagnosis, with what answer and truth alone tell about them."""
    known = {key_of(failure.verdict): failure for failure in failures}
    told = []
    for verdict in verdicts:
        failure = known.get(key_of(verdict))
        text = ""
        open_ = not verdict.diagnosis and verdict.because is None
        valued = failure is not None and failure.case.free is None
        if failure and valued and open_ and failure.truth and list(failure.answers) == [""]:
            asked = failure.questions.get("")
            text = hint(failure.truth, failure.answers[""], verdict.dtype, asked)
        message = f"{verdict.message}\n{DIAGNOSED} {text}" if text else verdict.message
        told.append(msgspec.structs.replace(verdict, message=message))
    return told
