"""Holds a backend to what it says it can't do: unsupported is a property of an operation.

A backend that answers some questions of an operation, mode and dtype, and says unsupported to
others, picks its questions. Those verdicts are failures. What it can do under a name that is none
is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from conformance.model import Description, Verdict
from conformance.model.verdicts import NOT_ASKED
from conformance.precision import DTYPES


def hold_to_support(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """``verdicts``, where an unsupported beside an answered question of the same kind fails.

    A crash is no answer: memory that was damaged before may have caused it.
    """
    answered = {
        _kind(verdict)
        for verdict in verdicts
        if verdict.verdict not in {"unsupported", "crash", "timeout"}
        and not verdict.message.startswith(NOT_ASKED)
    }
    return [
        msgspec.structs.replace(verdict, verdict="fail", message=_picked(verdict))
        if verdict.verdict == "unsupported" and _kind(verdict) in answered
        else verdict
        for verdict in verdicts
    ]


def notes(description: Description, operations: Iterable[str]) -> tuple[str, ...]:
    """What a backend says it has, and was not asked for."""
    strange = (
        f"it was not asked in {dtype}: the kit asks in {' and '.join(DTYPES)}"
        for dtype in description.dtypes
        if dtype not in DTYPES
    )
    return (*near_names(description.operations, operations), *strange)


def near_names(methods: Iterable[str], operations: Iterable[str]) -> tuple[str, ...]:
    """A line for each of ``methods`` that is no operation, but nearly has the name of one.

    It is never called, and what is judged in its place may be inherited.
    """
    known = tuple(operations)
    unknown = [name for name in methods if name not in known]
    if not unknown:
        return ()
    from difflib import get_close_matches  # only where there may be something to tell

    return tuple(
        f"{name} is no operation and was not called; there is {near}"
        for name in unknown
        for near in get_close_matches(name.lower(), known, n=1, cutoff=0.85)
    )


def _kind(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.operation, verdict.mode, verdict.dtype


def _picked(verdict: Verdict) -> str:
    said = f": {verdict.message}" if verdict.message else ""
    kind = f"{verdict.operation} in {verdict.mode} and {verdict.dtype}"
    return f"said unsupported, though other questions of {kind} were answered{said}"
