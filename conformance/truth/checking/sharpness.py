"""Whether the specification is sharp: it rejects every known mistake, and nothing trivial passes.

Part of ``conformance check``. Proven cases come with the effect of every fault on them; here these
effects are held to what the catalogue, the clauses and the cases say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from conformance.errors import Problem
from conformance.frozen import Truth, freeze_again
from conformance.precision import DTYPES
from conformance.specification import Specification
from conformance.truth.checking.freeze import ProvenCase, kills
from conformance.truth.effects.visibility import SEPARATES
from conformance.truth.faults import Fault

#: D may differ by this much from what another machine froze.
SLACK = 0.01

Kills = dict[str, dict[str, list[tuple[str, float]]]]


def about_faults(
    specification: Specification, results: Sequence[ProvenCase], faults: dict[str, type[Fault]]
) -> Iterator[Problem]:
    """What is untrue of the catalogue: clauses that are none, claims that no case bears out."""
    for name, fault in faults.items():
        for clause in fault.clauses():
            if clause not in specification.clauses:
                yield Problem("faults", 0, name, f"breaks {clause!r}, which is no clause")
        for dtype in DTYPES:
            by = _separating(name, results, dtype)
            reason = fault.unseen.get(dtype)
            if not by and reason is None:
                yield Problem("faults", 0, name, f"no case separates it in {dtype}")
            if by and reason is not None:
                message = f"is not unseen in {dtype} ({reason}): {by[0]} separates it"
                yield Problem("faults", 0, name, message)


def about_clauses(
    specification: Specification, results: Sequence[ProvenCase], faults: dict[str, type[Fault]]
) -> Iterator[Problem]:
    """A clause is shown by a case that cites it and separates a fault that breaks it.

    So is each clause that a fault says it breaks, unless nothing at all shows the clause.
    """
    if not faults:  # nothing claims to be sharp
        return
    shown = {
        (clause, name)
        for result in results
        for name, sizes in result.effects.items()
        if name in faults and max(sizes.values()) > SEPARATES
        for clause in set(faults[name].clauses()) & set(result.case.clauses)
    }
    for clause in specification.clauses.values():
        by = sorted(name for shown_clause, name in shown if shown_clause == clause.id)
        if not by and clause.unseparated is None:
            message = "no case that cites it separates a fault that breaks it"
            hint = "write such a case or fault, or say why there is none under unseparated"
            yield Problem(clause.file, clause.line, clause.id, f"{message}: {hint}")
        if by and clause.unseparated is not None:
            message = f"says that no fault breaks it (unseparated), but {by[0]} does"
            yield Problem(clause.file, clause.line, clause.id, message)
        for name, fault in faults.items():
            seen = not set(DTYPES) <= set(fault.unseen)
            if by and seen and clause.id in fault.clauses() and name not in by:
                message = f"breaks {clause.id}, but no case that cites that clause separates it"
                yield Problem("faults", 0, name, message)


def about_trivial_answers(results: Iterable[ProvenCase]) -> Iterator[Problem]:
    """A case that a trivial answer passes says why it stays, and no other does."""
    for result in results:
        case = result.case
        if result.passed_by and case.degenerate is None:
            names = ", ".join(result.passed_by)
            message = f"passes {names}: say under degenerate why it stays"
            yield Problem(case.file, case.line, case.id, message)
        if case.degenerate is not None and not result.passed_by and not result.problems:
            message = "degenerate is not needed: no trivial answer passes"
            yield Problem(case.file, case.line, case.id, message)


def about_kills(
    specification: Specification, results: list[ProvenCase], truth: Truth
) -> Iterator[Problem]:
    """The frozen kills are those of the catalogue as it is now."""
    for family, proven in kills(results).items():
        if not _close_kills(truth.family(family).kills, proven, set(specification.cases)):
            hint = freeze_again(truth.folder.parent)
            message = f"the frozen kills are not those of the faults: {hint}"
            yield Problem(f"spec/truth/{family}.json", 0, "kills", message)


def _separating(name: str, results: Iterable[ProvenCase], dtype: str) -> list[str]:
    """The ids of the cases that separate a fault in ``dtype``."""
    return [
        result.case.id
        for result in results
        if result.effects.get(name, {}).get(dtype, 0.0) > SEPARATES
    ]


def _close_kills(committed: object, proven: Kills, cases: set[str]) -> bool:
    """The same faults, cases that are there, D within one percent (ties may change places)."""
    if not isinstance(committed, dict) or committed.keys() != proven.keys():
        return False
    for fault, by_dtype in proven.items():
        before = committed[fault]
        if before.keys() != by_dtype.keys():
            return False
        for dtype, pairs in by_dtype.items():
            if len(before[dtype]) != len(pairs):
                return False
            for (case_id, frozen), (_, size) in zip(before[dtype], pairs, strict=True):
                if case_id not in cases or abs(frozen - size) > SLACK * size:
                    return False
    return True
