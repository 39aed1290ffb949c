"""The lists that the command line prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.model import Operation
from conformance.specification import load
from conformance.specification.kept import Outline
from conformance.specification.selection import selected_ids

Row = dict[str, Any]


def rows(what: str, spec: Path, select: Iterable[str] = ()) -> list[Row]:
    """The rows of one list; the first field names the thing.

    Raises UsageError for patterns that select no case, or where ``what`` are no cases.
    """
    if select and what != "cases":
        raise UsageError(f"{what} are not selected by pattern", "leave out --select")
    if what == "backends":
        return list(_backends())
    if what == "faults":
        return list(_faults())
    specification = load(spec)
    if what == "cases":
        return [
            _case_row(outline)
            for outline in specification.outlines(selected_ids(specification, select))
        ]
    if what == "clauses":
        return [
            {"id": clause.id, "document": clause.document, "text": clause.text}
            for clause in specification.clauses.values()
        ]
    return [
        {
            "operation": signature(op),
            "outputs": ", ".join(op.outputs),
            "summary": op.summary,
        }
        for op in specification.operations.values()
    ]


def signature(operation: Operation) -> str:
    """``layer_norm(x, gamma, beta, *, eps)``, as a method of an adapter has it after self."""
    arguments = [
        f"{name}=None" if rule.optional else name for name, rule in operation.arguments.items()
    ]
    attributes = ["*", *operation.attributes] if operation.attributes else []
    return f"{operation.name}({', '.join((*arguments, *attributes))})"


def _case_row(case: Outline) -> Row:
    return {
        "id": case.id,
        "operation": case.operation,
        "mode": case.mode,
        "due": case.expectation.type.lower(),
        "title": case.title,
    }


def _faults() -> Iterator[Row]:
    from conformance.truth.faults import catalogue

    for name, fault in catalogue().items():
        yield {"fault": f"fault:{name}", "breaks": fault.breaks, "says": fault.says()}


def _backends() -> Iterator[Row]:
    from conformance.harness.names import (
        bundled,
        install_line,
        installed,
        known_names,
    )

    for name in known_names():
        here = name not in bundled() or installed(name)
        yield {"backend": name, "state": "installed" if here else install_line(name)}


def as_json(found: Sequence[Row]) -> str:
    """The rows as a JSON array."""
    return json.dumps(found, indent=1, ensure_ascii=False)


def lines(found: Sequence[Row]) -> Iterator[str]:
    """The rows as aligned columns; the last column is free text."""
    texts = [[str(value) for value in row.values()] for row in found]
    if not texts:
        return
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    for row in texts:
        padded = [text.ljust(width) for text, width in zip(row[:-1], widths, strict=False)]
        yield "  ".join([*padded, row[-1]]).rstrip()
