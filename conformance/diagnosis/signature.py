"""Mistakes of rounding, known by which cases fail and not by what they give.

How an implementation cancels or cuts differs from one to the next, so the wrong values differ; but
all of them lose the cases where the mistake costs more than the bound, and keep the others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.diagnosis.evidence import Evidence, Key, key_of
from conformance.diagnosis.explain import Failure
from conformance.model import Verdict
from conformance.truth.effects.visibility import BEYOND, LARGE
from conformance.truth.faults import Fault, catalogue

#: This share of the cases with a large D must fail.
MOST = 0.75

#: So many cases must have passed that the mistake can't touch: else anything that fails would fit.
SPARED = 2


#: The errors may be this many binary digits larger or smaller than those of the fault.
FIT = 6.0


@dataclass(frozen=True)
class Seen:
    """One case of an operation, mode and dtype: D of the fault, and what came of the case.

    ``ratio`` is the error of a failing case as a multiple of its bound, if it was measured.
    """

    size: float
    failed: bool
    ratio: float | None


def fitting(
    evidence: Evidence, verdicts: Sequence[Verdict], failures: Mapping[Key, Failure]
) -> list[str]:
    """The mistakes of rounding that fit the verdicts of one group, the best fit first.

    None where some of the failures have another reason: then the others may have it too.
    ``failures`` has what was answered.
    """
    judged = [verdict for verdict in verdicts if verdict.verdict in {"pass", "fail"}]
    fits: list[tuple[float, str]] = []
    for name, fault in catalogue().items():
        if not fault.scattered or any(_otherwise(verdict, name) for verdict in judged):
            continue
        seen = {
            verdict.case: Seen(size, verdict.verdict == "fail", verdict.ratio)
            for verdict in judged
            for size in [evidence.size(verdict, fault)]
            if size is not None
        }
        gap = misfit(seen)
        if matches(seen) and gap <= FIT and _spoils(evidence, judged, fault, failures):
            fits.append((gap, name))
    return [name for _, name in sorted(fits)]


def _otherwise(verdict: Verdict, name: str) -> bool:
    """Whether a verdict failed without being measured, or by a fault that is not ``name``."""
    others = {each.fault for each in verdict.diagnosis or ()} - {name}
    return verdict.verdict == "fail" and (bool(others) or verdict.ratio is None)


def _spoils(
    evidence: Evidence,
    judged: Sequence[Verdict],
    fault: type[Fault],
    failures: Mapping[Key, Failure],
) -> bool:
    """Whether the outputs that the mistake spoils in the failing cases are wrong, not one of many.

    Where only norms are wrong, and losses and gradients right, no product was rounded.
    """
    answered = [(each, failures[key_of(each)]) for each in judged if key_of(each) in failures]
    wrong = [
        not failure.is_right(place)
        for verdict, failure in answered
        for place, size in evidence.sizes(verdict, fault).items()
        if size > LARGE
    ]
    return sum(wrong) >= MOST * len(wrong)


def matches(seen: Mapping[str, Seen]) -> bool:
    """Whether the failing cases, by id, are those that the fault makes fail."""
    failed = [each for each in seen.values() if each.failed]
    large = [each for each in seen.values() if each.size > LARGE]
    spared = [each for each in seen.values() if not each.failed and each.size <= 1]
    return (
        bool(failed)
        and all(each.size > 1 for each in failed)
        and bool(large)
        and sum(each.failed for each in large) >= MOST * len(large)
        and len(spared) >= SPARED
    )


def misfit(seen: Mapping[str, Seen]) -> float:
    """How far the errors of the failing cases are from those of the fault, in binary digits.

    The median; 0 where none is finite: a root of a negative number has no size.
    """
    gaps = [
        abs(math.log2(each.ratio / each.size))
        for each in seen.values()
        if each.failed and each.ratio and math.isfinite(each.ratio) and 1 < each.size < BEYOND
    ]
    return statistics.median(gaps) if gaps else 0.0
