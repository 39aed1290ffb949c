"""Whether a fault explains the answers to a case whose values are free.

No value tells: what is compared is what the answers have, and which relations they break, and of
draws by which statistics.
"""

from __future__ import annotations

import math

import numpy as np

from conformance.frozen import CaseTruth
from conformance.judging import statistics
from conformance.judging.relations import measure
from conformance.model import Case, Combination, Differ, Drawn, Relation, Relations, Same
from conformance.precision import Dtype
from conformance.truth.effects.visibility import Arrays

#: Of fewer draws the largest says nothing of what they are drawn from.
_MANY = 100

#: The largest of two samples of one distribution may differ by this factor.
_LARGEST = 1.35


def alike(case: Case, truth: CaseTruth, given: Arrays, got: Arrays, dtype: Dtype) -> bool:
    """Whether ``got`` breaks what ``given``, by a fault, breaks of the free case, and no more."""
    due = case.expectation
    assert isinstance(due, Relations)
    if {place: value.shape for place, value in given.items()} != {
        place: value.shape for place, value in got.items()
    }:
        return False
    if given.keys() != truth.keys() or any(given[key].shape != truth[key].shape for key in given):
        return True
    return all(_alike(relation, truth, given, got, dtype) for relation in due.relate)


def _alike(relation: Relation, truth: CaseTruth, given: Arrays, got: Arrays, dtype: Dtype) -> bool:
    if isinstance(relation, Drawn):
        ours, theirs = (statistics.sample(each, relation) for each in (given, got))
        return _alike_samples(ours, theirs, relation)
    ratios = [measure(relation, each, truth, dtype).ratio for each in (given, got)]
    broken, breaks = (ratio is not None and not ratio <= 1 for ratio in ratios)
    if broken and breaks:
        places = _places(relation)
        return all(_equally_constant(given[place], got[place]) for place in places)
    return broken == breaks


def _places(relation: Relation) -> list[tuple[str, str]]:
    """The outputs that a relation compares with each other or with given numbers."""
    match relation:
        case Combination(terms=terms):
            return [(call, output) for call, output, _ in terms]
        case Same(left=left, right=right) | Differ(left=left, right=right):
            return [left, right]
    return []


def _equally_constant(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Both vary, or both are the same number everywhere."""
    if ours.size < 2 or (np.ptp(ours) and np.ptp(theirs)):
        return True
    return bool(np.array_equal(ours, theirs))


def _alike_samples(ours: np.ndarray, theirs: np.ndarray, due: Drawn) -> bool:
    """Whether both may be draws of one distribution, of whatever deviation."""
    squares = [float(np.mean(sample * sample)) for sample in (ours, theirs)]
    spread = max(1.0, math.sqrt(max(squares)) / float(due.size))
    for left, right in zip(statistics.of(ours, due), statistics.of(theirs, due), strict=True):
        gap = abs(left.got - right.got)
        allowed = max(left.allowed, right.allowed)
        if left.name == statistics.REPEATED and not gap <= allowed:
            return False
        if left.name == "mean" and not gap <= 2 * allowed * spread:
            return False
        if left.name == "mean square" and not gap <= 2 * allowed * spread**2:
            return False
    peaks = [float(np.max(np.abs(sample))) for sample in (ours, theirs)]
    return ours.size < _MANY or max(peaks) <= _LARGEST * min(peaks)
