"""Failures grouped by what has to be mended: the largest group first, dependants last."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from conformance.model import Diagnosis, Verdict, VerdictName
from conformance.model.verdicts import NOT_ASKED, NOT_COUNTED

#: The verdicts that make a run fail; the others pass, or say that nothing was judged.
FAILURES: tuple[VerdictName, ...] = ("fail", "error", "crash", "timeout")


class RootCause(msgspec.Struct, frozen=True, kw_only=True):
    """Failures that one change mends; never empty.

    ``diagnosis`` is the fault that explains them all, ``coinciding`` are the faults that explain
    them all just as well. Without a diagnosis the failures share their operation, their verdict,
    and whether values were measured.
    """

    diagnosis: Diagnosis | None = None
    coinciding: tuple[Diagnosis, ...] = ()
    failures: tuple[Verdict, ...]

    @property
    def roots(self) -> tuple[Verdict, ...]:
        """The failures of the operations themselves, or all where only dependants failed."""
        return tuple(each for each in self.failures if each.because is None) or self.failures

    @property
    def dependants(self) -> tuple[Verdict, ...]:
        """The failures that are not among the roots."""
        if len(self.roots) == len(self.failures):
            return ()
        return tuple(each for each in self.failures if each.because is not None)

    @property
    def worst(self) -> Verdict:
        """The failure furthest from right among the roots; of equals, the first.

        One that is off by a finite multiple of its bound says more than one without a number, and
        least is said by one that follows from another.
        """
        return max(self.roots, key=_telling)


class Causes(msgspec.Struct, frozen=True, kw_only=True):
    """All failures of a report, each exactly once, in the order in which to mend them."""

    roots: tuple[RootCause, ...]
    dependants: tuple[Verdict, ...]
    failures: int


def _telling(verdict: Verdict) -> tuple[int, float]:
    ratio = measured(verdict)
    rank = 0 if ratio is None else 2 if math.isfinite(ratio) else 1
    return -1 if _follows(verdict) else rank, severity(ratio)


def _follows(verdict: Verdict) -> bool:
    """Whether it says no more than that something else went wrong before."""
    return verdict.message.startswith((NOT_ASKED, NOT_COUNTED))


def severity(ratio: float | None) -> float:
    """How far off a ratio is, for ordering: none at all is least, NaN is beyond every number."""
    if ratio is None:
        return -1.0
    return math.inf if math.isnan(ratio) else ratio


def measured(verdict: Verdict) -> float | None:
    """The ratio of a verdict that was reached by measuring elements against their bounds.

    None for a rejection, a wrong shape or an error, and where elements without a bound left it
    without a verdict: the ratio of the other elements says nothing about those.
    """
    return verdict.ratio if verdict.verdict in {"pass", "fail"} else None


def failures(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts that make a run fail, in their order."""
    return tuple(verdict for verdict in verdicts if verdict.verdict in FAILURES)


def root_causes(verdicts: Iterable[Verdict]) -> Causes:
    """Group all failures, by fault and undiagnosed by operation: the largest group first.

    A fault that explains little never stands before a cause that nothing explains and that has
    more failures; of groups of one size the diagnosed one comes first. What only follows from
    others comes last.
    """
    failed = failures(verdicts)
    undiagnosed = [verdict for verdict in failed if not verdict.diagnosis]
    own = [verdict for verdict in undiagnosed if verdict.because is None]
    found = [*_by_fault([verdict for verdict in failed if verdict.diagnosis]), *_by_kind(own)]
    return Causes(
        roots=tuple(sorted(found, key=_urgency)),
        dependants=tuple(verdict for verdict in undiagnosed if verdict.because is not None),
        failures=len(failed),
    )


def _urgency(cause: RootCause) -> tuple[bool, int]:
    return all(_follows(each) for each in cause.failures), -len(cause.failures)


def _by_fault(failed: Sequence[Verdict]) -> list[RootCause]:
    """The fault that explains most, then the one that explains most of the rest, and so on."""
    found = []
    rest = list(failed)
    while rest:
        counts = Counter(fault for verdict in rest for fault in _diagnoses(verdict))
        fault = counts.most_common(1)[0][0]
        explained = tuple(verdict for verdict in rest if fault in _diagnoses(verdict))
        rest = [verdict for verdict in rest if fault not in _diagnoses(verdict)]
        told = _diagnoses(explained[0])
        coinciding = tuple(
            told[name]
            for name in told
            if name != fault and all(name in _diagnoses(verdict) for verdict in explained)
        )
        found.append(RootCause(diagnosis=told[fault], coinciding=coinciding, failures=explained))
    return found


def _diagnoses(verdict: Verdict) -> dict[str, Diagnosis]:
    return {each.fault: each for each in verdict.diagnosis or ()}


def _by_kind(failed: Sequence[Verdict]) -> list[RootCause]:
    groups: dict[tuple[str, VerdictName, bool], list[Verdict]] = {}
    for verdict in failed:
        key = (verdict.operation, verdict.verdict, measured(verdict) is not None)
        groups.setdefault(key, []).append(verdict)
    return [RootCause(failures=tuple(group)) for group in groups.values()]
