"""The specification: YAML files read exactly, checked against each other, as typed nouns.

``load`` reports every fault of every file at once. What needs the oracle (is an expected value
true, is a relation a theorem) is the work of ``conformance.truth``.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from conformance.layout import SPEC
from conformance.model import Case, Clause, Erratum, Fact, Operation
from conformance.specification import cache
from conformance.specification.kept import Kept, KeptCase, KeptCases, Outline

__all__ = ["Specification", "load"]


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """Everything ``spec/`` says, by name or id, in the order of the files."""

    root: str
    operations: dict[str, Operation]
    clauses: dict[str, Clause]
    cases: Mapping[str, Case]
    facts: dict[str, Fact]
    errata: dict[str, Erratum]
    retired: dict[str, str]

    def select(self, patterns: Iterable[str] = ()) -> list[Case]:
        """The cases whose id matches any pattern: a glob, or a part of the id. None means all.

        A case that counts only beside its twin brings nothing else with it; the runner asks the
        twin as well.
        """
        return [self.cases[case_id] for case_id in self.ids(patterns)]

    def ids(self, patterns: Iterable[str] = ()) -> list[str]:
        """The ids of those that ``select`` gives."""
        wanted = list(patterns)
        if not wanted:
            return list(self.cases)
        return [case_id for case_id in self.cases if any(_matches(case_id, p) for p in wanted)]

    def outlines(self, ids: Iterable[str]) -> list[Outline]:
        """What a list shows of the cases of these ids, of which nothing else is decoded."""
        if isinstance(self.cases, KeptCases):
            return [self.cases.outline(case_id) for case_id in ids]
        return [Outline.of(self.cases[case_id]) for case_id in ids]


def load(root: Path = SPEC) -> Specification:
    """The specification in the folder ``root``, from the user's cache where it was read before.

    Raises SpecificationError with every fault found.
    """
    key = cache.digest(root)
    kept = cache.read(key, Kept)
    if kept is not None:
        parts = {noun: getattr(kept, noun) for noun in Kept.__struct_fields__}
        return Specification(**parts | {"root": str(root), "cases": KeptCases(kept.cases)})
    from conformance.specification.files import load_specification  # and with it PyYAML

    parts = load_specification(root)
    # MessagePack has no whole numbers beyond 64 bits; those are read every time.
    with contextlib.suppress(OverflowError):
        cases = {case_id: KeptCase.of(case) for case_id, case in parts["cases"].items()}
        cache.write(key, Kept(**parts | {"cases": cases}))
    return Specification(root=str(root), **parts)


def _matches(case_id: str, pattern: str) -> bool:
    if any(letter in pattern for letter in "*?["):
        return fnmatch.fnmatchcase(case_id, pattern)
    return pattern in case_id
