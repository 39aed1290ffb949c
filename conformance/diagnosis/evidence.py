"""What the whole run says for or against a fault: the cases that passed, and the truth of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np

from conformance.diagnosis.candidates import Candidate, contradicted
from conformance.errors import Rejected
from conformance.frozen import CaseTruth, Truth
from conformance.judging.dependants import deepest_first
from conformance.model import Case, Operation, Relations, Values, Verdict
from conformance.precision import Dtype
from conformance.specification import Specification
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.effects.rules import recording, replaced
from conformance.truth.effects.visibility import native_effect, native_effects
from conformance.truth.faults import Fault, catalogue
from conformance.truth.proof.evaluate import Impossible, evaluate_case

#: Case and dtype: what names a verdict within a run.
Key: TypeAlias = tuple[str, str]

#: Which candidates give the answers of which failure.
Explained: TypeAlias = Mapping[Key, frozenset[Candidate]]

#: A fault that acts in many failing cases gives the answers of at least this share of those that
#: nothing else gives; else it gives some by coincidence.
LIKELY = 0.25

#: Operation, mode and dtype: verdicts of one group come from the same lines of an implementation.
Group: TypeAlias = tuple[str, str, str]


def group(verdict: Verdict) -> Group:
    """The group of a verdict."""
    return verdict.operation, verdict.mode, verdict.dtype


def key_of(verdict: Verdict) -> Key:
    """Case and dtype of a verdict."""
    return verdict.case, verdict.dtype


class Evidence:
    """The verdicts of a run with the cases behind them. Cases that are not known say nothing."""

    def __init__(
        self,
        verdicts: Sequence[Verdict],
        operations: Mapping[str, Operation],
        specification: Specification,
    ) -> None:
        self.verdicts = verdicts
        self._operations = operations
        self._specification = specification
        self._truth = Truth(Path(specification.root) / "truth")
        self._known: dict[str, CaseTruth] = {}
        self._reached: dict[str, set[str]] = {}
        self._against: dict[tuple[Candidate, str, str], bool] = {}

    def parts(self, operation: str) -> list[str]:
        """The operations that ``operation`` is composed of."""
        return deepest_first(operation, self._operations)

    def refuted_near(self, candidate: Candidate, groups: Iterable[Group]) -> bool:
        """Whether a case that passed, in one of ``groups``, speaks against ``candidate``."""
        near = set(groups)
        return any(self._speaks(candidate, each) for each in self._passed if group(each) in near)

    def refuted(self, candidate: Candidate, dtypes: Iterable[str]) -> bool:
        """Whether any case that passed in one of ``dtypes`` speaks against ``candidate``."""
        judged = set(dtypes)
        return any(self._speaks(candidate, each) for each in self._passed if each.dtype in judged)

    def likely(self, explained: Explained) -> Explained:
        """``explained`` without what was explained by coincidence, judged group by group."""
        failed = [verdict for verdict in self.verdicts if key_of(verdict) in explained]
        kept: dict[Key, set[Candidate]] = {key: set() for key in explained}
        for own in dict.fromkeys(map(group, failed)):
            members = [verdict for verdict in failed if group(verdict) == own]
            for candidate in set().union(*(explained[key_of(verdict)] for verdict in members)):
                given = [each for each in members if candidate in explained[key_of(each)]]
                open_ = [each for each in members if not explained[key_of(each)]]
                missed = sum(self._speaks(candidate, each) for each in open_)
                if len(given) >= LIKELY * (len(given) + missed):
                    for each in given:
                        kept[key_of(each)].add(candidate)
        return {key: frozenset(candidates) for key, candidates in kept.items()}

    def relates(self, verdict: Verdict) -> bool:
        """Whether the case of a verdict compares the answers to several calls."""
        case = self._case(verdict)
        return case is not None and len(case.calls) > 1

    def size(self, verdict: Verdict, fault: type[Fault]) -> float | None:
        """D of a mistake of rounding in the case of a verdict; None where it isn't known."""
        case = self._case(verdict)
        if case is None or case.free is not None:
            return None
        if not replaced(fault) & self._rules(case):
            return 0.0  # also where a count is larger than a double can be exactly
        return native_effect(case, self._output(case), self._values(case), fault, verdict.dtype)

    def sizes(self, verdict: Verdict, fault: type[Fault]) -> Mapping[tuple[str, str], float]:
        """The same by call and output, where the case of a verdict has values."""
        case = self._case(verdict)
        if case is None or not isinstance(case.expectation, Values):
            return {}
        return native_effects(case, self._output(case), self._values(case), fault, verdict.dtype)

    @cached_property
    def _passed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.verdict == "pass"]

    def _speaks(self, candidate: Candidate, verdict: Verdict) -> bool:
        key = (candidate, verdict.case, verdict.dtype)
        if key not in self._against:
            case = self._case(verdict)
            self._against[key] = case is not None and self._contradicts(
                candidate, case, verdict.dtype
            )
        return self._against[key]

    def _contradicts(self, candidate: Candidate, case: Case, dtype: Dtype) -> bool:
        fault = catalogue()[candidate.fault]
        if fault.reads is not None and case.layout == "contiguous":
            return False
        if case.free is not None and not set(fault.clauses()) & set(case.clauses):
            return False  # a hundred steps of training cost too much to be tried on everything
        if not replaced(fault) & self._rules(case):
            return False
        return contradicted(candidate, case, self._output(case), self._values(case), dtype)

    def _case(self, verdict: Verdict) -> Case | None:
        """The case of a verdict; None where the specification has another of that name, or none."""
        found = self._specification.cases.get(verdict.case)
        asked = (verdict.operation, verdict.mode)
        same = found is not None and (found.operation, found.mode) == asked
        return found if same else None

    def _values(self, case: Case) -> CaseTruth:
        if not isinstance(case.expectation, Values | Relations):
            return {}
        if case.id not in self._known:
            self._known[case.id] = self._truth.of(case)
        return self._known[case.id]

    def _output(self, case: Case) -> str:
        return next(iter(self._operations[case.operation].outputs))

    def _rules(self, case: Case) -> set[str]:
        """The rules that ``case`` comes to."""
        if case.id not in self._reached:
            reference, reached = recording()
            try:
                with np.errstate(all="ignore"):
                    tape = Tape(Doubles(), remembers=case.free is None)
                    evaluate_case(reference, tape, case, self._output(case))
            except (Rejected, Impossible):
                pass
            self._reached[case.id] = reached
        return self._reached[case.id]
