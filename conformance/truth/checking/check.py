"""``conformance check``: the specification is true, its truth is fresh, every fault is rejected.

All problems of all files are reported at once. ``quick`` leaves out the oracle: it holds figures
to the frozen truth, and the frozen truth to the questions it was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.errors import Problem, SpecificationError
from conformance.frozen import FrozenCase, FrozenFamily, Truth, freeze_again
from conformance.model import Case, Relations, Values
from conformance.specification import Specification
from conformance.truth.checking import claims

if TYPE_CHECKING:
    from conformance.truth.checking.freeze import ProvenCase

#: Bounds may differ by this much from what another machine froze.
BOUND_SLACK = 0.01

Progress = Callable[[int, int], None]


def check(
    specification: Specification,
    *,
    quick: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> None:
    """Raise SpecificationError with everything that does not hold; return where all does."""
    problems = list(_about_clauses(specification))
    truth = _Readable(Path(specification.root) / "truth", problems)
    problems += _about_files(specification, truth)
    if quick:
        problems += _from_frozen(specification, truth)
    else:
        problems += _from_oracle(specification, truth, progress)
    if problems:
        raise SpecificationError(problems)


class _Readable(Truth):
    """Frozen truth in which an unreadable family is one problem, and then empty."""

    def __init__(self, folder: Path, problems: list[Problem]) -> None:
        super().__init__(folder)
        self._problems = problems

    def family(self, name: str) -> FrozenFamily:
        try:
            return super().family(name)
        except SpecificationError as error:
            self._problems += [each for each in error.problems if each not in self._problems]
            return FrozenFamily("", {})


def _about_clauses(specification: Specification) -> Iterable[Problem]:
    """Every clause is shown by a case or a fact."""
    cases = [*specification.cases.values(), *(fact.case for fact in specification.facts.values())]
    cited = {clause for case in cases for clause in case.clauses}
    for clause in specification.clauses.values():
        if clause.id not in cited:
            yield Problem(clause.file, clause.line, clause.id, "no case or fact shows this clause")


def _about_files(specification: Specification, truth: Truth) -> Iterable[Problem]:
    """The frozen cases are exactly those that have values."""
    families = {case.family for case in specification.cases.values()}
    for path in sorted(truth.folder.glob("*.json")):
        if path.stem not in families:
            yield Problem(f"spec/truth/{path.name}", 0, "", "no case is of this family")
            continue
        for case_id in truth.family(path.stem).cases:
            case = specification.cases.get(case_id)
            if case is None or not isinstance(case.expectation, Values | Relations):
                hint = freeze_again(truth.folder.parent)
                message = f"has frozen truth but no case with values: {hint}"
                yield Problem(f"spec/truth/{path.name}", 0, case_id, message)


def _from_frozen(specification: Specification, truth: Truth) -> Iterable[Problem]:
    excused = _excused(specification)
    for case in specification.cases.values():
        if not isinstance(case.expectation, Values | Relations):
            continue
        try:
            frozen = truth.of(case)
        except SpecificationError as error:
            yield from error.problems
            continue
        if isinstance(case.expectation, Values):
            yield from _located(case, claims.figures(case.expectation, frozen), excused)


def _from_oracle(
    specification: Specification, truth: Truth, progress: Progress
) -> Iterable[Problem]:
    from conformance.truth.checking import sharpness
    from conformance.truth.checking.facts import about_fact
    from conformance.truth.checking.freeze import prove_all
    from conformance.truth.faults import catalogue

    excused = _excused(specification)
    results = list(prove_all(specification, progress))
    yield from about_cases(specification, results)
    for result in results:
        if result.frozen is not None:
            case = result.case
            committed = truth.family(case.family).cases.get(case.id)
            hint = freeze_again(truth.folder.parent)
            yield from _located(case, _stale(committed, result.frozen, hint), excused)
    for fact in specification.facts.values():
        operation = specification.operations[fact.case.operation]
        yield from _located(fact.case, about_fact(fact, operation), excused)
    faults = catalogue()
    yield from sharpness.about_kills(specification, results, truth)
    yield from sharpness.about_faults(specification, results, faults)
    yield from sharpness.about_clauses(specification, results, faults)
    yield from sharpness.about_trivial_answers(results)


def about_cases(specification: Specification, results: Iterable[ProvenCase]) -> Iterable[Problem]:
    """What the oracle found untrue of the cases that were proven."""
    excused = _excused(specification)
    for result in results:
        yield from _located(result.case, result.problems, excused)


def _excused(specification: Specification) -> set[str]:
    """Cases and facts whose printed figure an erratum explains."""
    return {case_id for erratum in specification.errata.values() for case_id in erratum.cases}


def _located(case: Case, messages: Iterable[str], excused: set[str]) -> Iterable[Problem]:
    for message in messages:
        if message.startswith(claims.PRINTED) and case.id in excused:
            continue
        yield Problem(case.file, case.line, case.id, message)


def _stale(committed: FrozenCase | None, proven: FrozenCase, hint: str) -> list[str]:
    """How the committed truth differs from what the oracle says now, and what to do."""
    if committed is None:
        return [f"no truth is frozen for this case: {hint}"]
    if committed.digest != proven.digest:
        return [f"what it asks has changed since its truth was frozen: {hint}"]
    if committed.values != proven.values:
        return [f"the frozen values are not the oracle's: {hint}"]
    if committed.bounds.keys() != proven.bounds.keys():
        return [f"the frozen bounds are of other dtypes: {hint}"]
    for dtype, rows in proven.bounds.items():
        for key, row in rows.items():
            before = committed.bounds[dtype].get(key, ())
            if len(before) != len(row) or not all(map(_close, before, row)):
                return [f"the frozen bounds of {key} in {dtype} are not the oracle's: {hint}"]
    return []


def _close(committed: float | None, proven: float | None) -> bool:
    if committed is None or proven is None:
        return committed is proven
    return abs(committed - proven) <= BOUND_SLACK * proven
