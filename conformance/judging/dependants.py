"""Which failures follow from others: an operation breaks where one that it is built on breaks.

What was measured is blamed by its diagnosis (``diagnose.py``); this is about what came to no
numbers at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from conformance.model import Operation, Verdict
from conformance.model.verdicts import REFUSED


def deepest_first(name: str, operations: Mapping[str, Operation]) -> list[str]:
    """The operations that ``name`` is composed of, those that are composed of none first."""
    found: list[str] = []
    for used in operations[name].uses:
        found += [deep for deep in deepest_first(used, operations) if deep not in found]
        if used not in found:
            found.append(used)
    return found


def with_reasons(
    verdicts: Sequence[Verdict], operations: Mapping[str, Operation]
) -> tuple[Verdict, ...]:
    """``verdicts``, where what broke is ``because`` of the deepest operation that broke so too.

    A crash follows from a crash, a timeout from a timeout, an error from an error, a refusal of
    valid arguments from a refusal, in the same dtype.
    """
    broken = {(each.operation, each.dtype, _broke(each)) for each in verdicts if _broke(each)}
    if not broken:
        return tuple(verdicts)

    def reason(verdict: Verdict) -> str | None:
        if verdict.because is not None or verdict.operation not in operations:
            return verdict.because
        below = deepest_first(verdict.operation, operations)
        how = _broke(verdict)
        return next((used for used in below if (used, verdict.dtype, how) in broken), None)

    return tuple(msgspec.structs.replace(each, because=reason(each)) for each in verdicts)


def _broke(verdict: Verdict) -> str:
    """How a backend came to no numbers; empty where it came to some, or was right to have none."""
    if verdict.verdict in {"crash", "timeout", "error"}:
        return verdict.verdict
    return REFUSED if verdict.verdict == "fail" and verdict.message.startswith(REFUSED) else ""
