"""What known mistakes would give in a case, the most visible first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from conformance.command.explanation.tensors import plain_text, proven_text
from conformance.errors import Rejected
from conformance.frozen import CaseTruth, dotted, thaw
from conformance.model import Case, Operation, Relations, Values
from conformance.precision import Dtype
from conformance.truth.checking import free
from conformance.truth.checking.freeze import freeze_case
from conformance.truth.effects.concerned import concerned
from conformance.truth.effects.kills import SEPARATES, Effects
from conformance.truth.effects.misread import as_read
from conformance.truth.faults import Fault, catalogue
from conformance.truth.proof.evaluate import Impossible
from conformance.truth.proof.prove import Proof, output_of, prove, prove_values

#: Outputs shown of what a known mistake would give.
_OUTPUTS = 3


def mistakes(case: Case, operation: Operation) -> Iterator[str]:
    """What every fault that this case separates would give, the most visible first."""
    if case.free is not None and isinstance(case.expectation, Relations):
        yield from _of_free(case, operation)
        return
    proof = Proof({})
    truth: CaseTruth = {}
    if isinstance(case.expectation, Values | Relations):
        proof = prove(case, operation)
        truth = thaw(freeze_case(case, proof))
    found = []
    effects = Effects(case, operation, proof, truth)
    for name, fault in catalogue().items():
        sizes = effects.of(fault) if concerned(name, case) else {}
        if any(size > SEPARATES for size in sizes.values()):
            found.append((max(sizes.values()), fault, sizes))
    if not found:
        yield "  no known mistake shows in this case"
        return
    yield "  what known mistakes would give (error as a multiple of the bound)"
    for _, fault, sizes in sorted(found, key=lambda each: -each[0]):
        shown = ", ".join(
            f"{dtype} {_multiple(size) if _bounded(truth, dtype) else 'without a bound'}"
            for dtype, size in sizes.items()
        )
        yield f"    {fault.name()}: {fault.says()}"
        yield f"      {shown}; {_wrong_values(case, operation, fault, proof)}"


def _bounded(truth: CaseTruth, dtype: Dtype) -> bool:
    """Whether anything is judged in ``dtype``."""
    return not truth or any(np.isfinite(each.bounds[dtype]).any() for each in truth.values())


def _multiple(size: float) -> str:
    return "beyond any bound" if size >= 1e299 else f"{size:.3g}"


def _wrong_values(case: Case, operation: Operation, fault: type[Fault], right: Proof) -> str:
    """The outputs that the fault changes, adds or leaves out."""
    if fault.native:
        return "a mistake of rounding: each implementation gives other values"
    try:
        asked = as_read(fault, case)
        values: Mapping[tuple[str, str], np.ndarray] = prove_values(
            asked, operation, fault()
        ).values
    except Rejected as rejected:
        return f"rejects it as {rejected.kind}"
    except Impossible:
        return "raises, for its shapes don't fit"
    changed = [
        f"{dotted(*key)} = {proven_text(value)}"
        for key, value in values.items()
        if key not in right.values or not _alike(value, right.values[key])
    ]
    missing = [f"without {dotted(*key)}" for key in right.values if key not in values]
    shown = changed + missing
    if len(shown) > _OUTPUTS:
        shown[_OUTPUTS:] = [f"{len(shown) - _OUTPUTS} outputs more"]
    return "; ".join(shown) or "gives nothing"


def _alike(value: np.ndarray, right: np.ndarray) -> bool:
    """Whether two tensors of balls may be the same numbers."""
    if value.shape != right.shape:
        return False
    pairs = zip(value.reshape(-1), right.reshape(-1), strict=True)
    return all(one.overlaps(other) for one, other in pairs)


def _of_free(case: Case, operation: Operation) -> Iterator[str]:
    """What the reference gives over doubles, one answer of many; and what mistakes break."""
    output = output_of(operation)
    results = free.results_of(case, output)
    truth = thaw(free.freeze(case, results))
    yield "  one answer of many, from doubles"
    for key, node in results.items():
        yield f"    {dotted(*key)} = {plain_text(node.value)}"
    yield ""
    broken = []
    for name, fault in catalogue().items():
        sizes = free.effect(case, output, truth, fault) if concerned(name, case) else {}
        if any(size > SEPARATES for size in sizes.values()):
            broken.append(fault)
    yield "  known mistakes that break a relation" if broken else "  no known mistake shows here"
    yield from (f"    {fault.name()}: {fault.says()}" for fault in broken)
