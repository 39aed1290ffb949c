"""Which cases a fault is tried on: trainings cost much, and come to every rule there is."""

from __future__ import annotations

from conformance.model import Case
from conformance.truth.faults import catalogue


def is_training(case: Case) -> bool:
    """Whether the case comes to every rule there is, again and again, gradients included."""
    return case.operation == "train"


def concerned(name: str, case: Case) -> bool:
    """Whether a fault is tried on a case at all when the specification is proven.

    A training comes to every rule there is, again and again: other cases show what has nothing to
    do with what it is there for.
    """
    fault = catalogue()[name]
    costly = is_training(case) or case.free is not None
    return not costly or fault.trivial or bool(set(fault.clauses()) & set(case.clauses))
