"""Goes on from a report that was cut short: what it has judged need not be asked again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from conformance.errors import ConformanceError, UsageError
from conformance.model import Answer, Report
from conformance.report import json
from conformance.report.files import file_name
from conformance.running.answers import read_answers
from conformance.running.share import Kept, Pair

_HINT = "run without --resume"


def kept(plan: Report, folder: Path, pairs: Sequence[Pair]) -> dict[int, Kept]:
    """The verdicts and answers of the earlier report of the same backend in ``folder``.

    By the position in ``pairs`` of what they are of.

    ``plan`` is the report that this run would begin with. Raises UsageError where there is no
    earlier report, or where it is of another kit, specification, backend or selection.
    """
    name = plan.backend.name
    path = folder / f"{file_name(name)}.json"
    if not path.is_file():
        raise UsageError(f"there is no {path} to go on from", _HINT)
    try:
        earlier = json.decode(path.read_bytes())
    except ConformanceError as error:
        raise UsageError(f"{path} can't be gone on from: {error.what}", _HINT) from None
    for what in ("kit", "specification", "backend", "selection", "dtypes", "planned"):
        if getattr(earlier, what) != getattr(plan, what):
            same = msgspec.structs.replace(earlier.backend, source=plan.backend.source)
            edited = what == "backend" and same == plan.backend
            why = "the adapter has changed since" if edited else f"it has another {what}"
            raise UsageError(f"{path} can't be gone on from: {why}", _HINT)
    answers = _answers(folder / f"{file_name(name)}.answers.msgpack")
    judged = [(verdict.case, verdict.dtype) for verdict in earlier.verdicts]
    places = {(case.id, dtype): position for position, (case, dtype) in enumerate(pairs)}
    positions = [places.get(key, -1) for key in judged]
    in_order = positions == sorted({*positions} - {-1})
    if not in_order or not answers.keys() >= set(judged):
        raise UsageError(f"{path} can't be gone on from: its answers are of another run", _HINT)
    return {
        places[verdict.case, verdict.dtype]: (verdict, answers[verdict.case, verdict.dtype])
        for verdict in earlier.verdicts
    }


def _answers(path: Path) -> dict[tuple[str, str], dict[str, Answer]]:
    """The answers in the file ``path``, by call, of each case and dtype."""
    answers: dict[tuple[str, str], dict[str, Answer]] = {}
    try:
        records = list(read_answers(path))
    except UsageError as error:
        raise UsageError(error.what, _HINT) from None
    for record in records:
        answer = Answer(
            status=record["status"],
            kind=record["kind"],
            message=record["message"],
            outputs=record["outputs"],
        )
        answers.setdefault((record["case"], record["dtype"]), {})[record["call"]] = answer
    return answers
