"""Whether a fault explains the answers to a case whose values are free.

No value tells: what is compared is what the answers have, and which relations they break, and of
draws by which statistics.
"""

from __future__ import annotations

import math

import numpy as np

from conformance import statistics
from conformance.frozen import CaseTruth
from conformance.model import Case, Drawn, Relation, Relations
from conformance.precision import Dtype
from conformance.relations import measure
from conformance.truth.visibility import Arrays

#: Two samples that break the same limit of a statistic may differ in it by this factor.
_ALIKE = 1.3


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
        samples = (np.asarray(each[relation.term], dtype=np.float64) for each in (given, got))
        pairs = zip(*(statistics.of(each.reshape(-1), relation) for each in samples), strict=True)
        return all(_near(ours, theirs) for ours, theirs in pairs)
    ratios = [measure(relation, each, truth, dtype).ratio for each in (given, got)]
    ours, theirs = (ratio is not None and not ratio <= 1 for ratio in ratios)
    return ours == theirs


def _near(ours: statistics.Statistic, theirs: statistics.Statistic) -> bool:
    """Both within their limits, or both beyond and of about the same size."""
    if (ours.ratio <= 1) != (theirs.ratio <= 1):
        return False
    if ours.ratio <= 1 or ours.got == theirs.got:
        return True
    sizes = abs(ours.got), abs(theirs.got)
    return min(sizes) > 0 and math.isfinite(max(sizes)) and max(sizes) <= _ALIKE * min(sizes)
