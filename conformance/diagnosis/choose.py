"""The fewest faults that explain the most failures: greedily, as set cover is approximated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from conformance.diagnosis.candidates import Candidate
from conformance.diagnosis.evidence import Explained, Key
from conformance.truth.faults import catalogue

#: Whether passing cases speak against a candidate that explains these failures.
Refuted: TypeAlias = Callable[[Candidate, frozenset[Key]], bool]


def choose(explained: Explained, near: Refuted, anywhere: Refuted) -> list[Candidate]:
    """Candidates in the order in which they are taken: of those that ``near`` does not refute the
    one with the widest reach, then of the rest, and the refuted ones last.

    Those that explain the very same failures come together, unless something in the run tells them
    apart: passing cases ``anywhere``, or that one of them is a whole fault and another a half.
    """
    open_ = {key: candidates for key, candidates in explained.items() if candidates}
    chosen: list[Candidate] = []
    while open_:
        alike, keys = _widest(_reach(open_), near, anywhere)
        chosen += _known(alike, chosen)
        open_ = {key: found for key, found in open_.items() if key not in keys}
    return chosen


def _widest(
    reach: Mapping[Candidate, frozenset[Key]], near: Refuted, anywhere: Refuted
) -> tuple[list[Candidate], frozenset[Key]]:
    """The candidates to take next, and the failures that all of them explain."""
    refuted = {each: near(each, keys) for each, keys in reach.items()}
    best = min(reach, key=lambda each: (refuted[each], -len(reach[each]), _place(each)))
    alike = [each for each in reach if reach[each] == reach[best]]
    alike = _best(alike, lambda each: refuted[each])
    if len(alike) > 1:
        alike = _best(alike, lambda each: anywhere(each, reach[each]))
        alike = _best(alike, lambda each: not each.whole)
    return sorted(alike, key=_place), reach[best]


def _known(candidates: list[Candidate], chosen: list[Candidate]) -> list[Candidate]:
    """Of the candidates those whose fault is chosen already, or all where none is."""
    faults = {each.fault for each in chosen}
    return _best(candidates, lambda each: each.fault not in faults)


def _reach(open_: Explained) -> dict[Candidate, frozenset[Key]]:
    reach: dict[Candidate, set[Key]] = {}
    for key, candidates in open_.items():
        for candidate in candidates:
            reach.setdefault(candidate, set()).add(key)
    return {candidate: frozenset(keys) for candidate, keys in reach.items()}


def _best(candidates: list[Candidate], flaw: Callable[[Candidate], bool]) -> list[Candidate]:
    """Those without the flaw, or all where all have it."""
    return [each for each in candidates if not flaw(each)] or candidates


def _place(candidate: Candidate) -> tuple[bool, int, int]:
    """Whole faults before halves, then the order of the catalogue."""
    return not candidate.whole, list(catalogue()).index(candidate.fault), candidate.variant
