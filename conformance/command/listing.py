"""The lists and the single case that the command line prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.model import (
    Case,
    FromOutput,
    Operation,
    Parameters,
    Rejection,
    Relations,
    Tensor,
    Undefined,
    Values,
)
from conformance.specification import Specification, load
from conformance.specification.selection import selected

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
        return [_case_row(case) for case in selected(specification, select)]
    if what == "clauses":
        return [
            {"id": clause.id, "document": clause.document, "text": clause.text}
            for clause in specification.clauses.values()
        ]
    return [
        {
            "operation": signature(op),
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


def _case_row(case: Case) -> Row:
    return {
        "id": case.id,
        "operation": case.operation,
        "mode": case.mode,
        "due": type(case.expectation).__name__.lower(),
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


def show(case_id: str, spec: Path) -> Iterator[str]:
    """One case as text: what it is for, what it asks, what is due.

    Raises UsageError where there is none of that id, with near ones.
    """
    specification = load(spec)
    case = find_case(case_id, specification)
    yield from heading(case, specification)
    yield from _due(case, specification)


def find_case(case_id: str, specification: Specification) -> Case:
    """The case of that id. Raises UsageError where there is none, with near ones."""
    if case_id not in specification.cases:
        near = get_close_matches(case_id, specification.cases, n=3, cutoff=0.3)
        hint = f"near ids: {', '.join(near)}" if near else "`conformance list cases` shows all"
        raise UsageError(f"there is no case {case_id!r}", hint)
    return specification.cases[case_id]


def heading(case: Case, specification: Specification) -> Iterator[str]:
    """What a case is for, the clauses it shows, and what it is given."""
    yield f"{case.id}: {case.title}"
    yield f"  {case.operation}, {case.mode}, in {' and '.join(case.dtypes)}"
    yield f"  {case.file}:{case.line}"
    if case.layout != "contiguous":
        yield f"  the arrays are {case.layout} in memory"
    if case.derived:
        yield f"  derived: {case.derived}"
    if why := case.free or specification.operations[case.operation].free:
        yield f"  free, only relations are judged: {why}"
    yield ""
    for clause in case.clauses:
        text = specification.clauses[clause]
        yield f"  {clause}: {text.text} ({text.document}, {text.section})"
    yield ""
    for name, call in case.calls.items():
        if name:
            yield f"  call {name}"
        for argument, value in call.given.items():
            yield from _given(argument, value)
        if call.outputs:
            yield f"  asked for {', '.join(call.outputs)}"
        for output, value in call.upstream.items():
            yield f"  upstream of {output} = {_shown(value)}; with respect to {', '.join(call.wrt)}"
    yield ""


def _due(case: Case, specification: Specification) -> Iterator[str]:
    match case.expectation:
        case Rejection(kind=kind, beside=beside):
            yield f"  must be rejected as {kind}; counts beside {beside}"
        case Undefined(output=output, beside=beside):
            yield f"  {output} has no value: never a finite number; counts beside {beside}"
        case Relations(relate=relate):
            yield from (f"  {relation}" for relation in relate)
        case Values():
            yield from _proven(case, specification)


def _proven(case: Case, specification: Specification) -> Iterator[str]:
    from conformance.frozen import Truth

    truth = Truth(Path(specification.root) / "truth").of(case)
    for (_, output), proven in truth.items():
        yield f"  {output}, shape {list(proven.shape)}:"
        for index, text in zip(_places(proven.shape), proven.text.reshape(-1), strict=True):
            allowed = ", ".join(
                f"{dtype} {proven.bounds[dtype][index]:.3g}" for dtype in case.dtypes
            )
            yield f"    {list(index)} {text}  bound {allowed}"


def _places(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    import itertools

    return itertools.product(*(range(size) for size in shape))


def _given(argument: str, value: Any) -> Iterator[str]:
    if isinstance(value, Parameters):
        yield f"  {argument}"
        yield from (f"    {name} = {_shown(item)}" for name, item in value.tensors.items())
    else:
        yield f"  {argument} = {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, FromOutput):
        return f"output {value.output} of call {value.call}"
    if not isinstance(value, Tensor):
        return str(value)
    if len(value.data) > 64:
        return f"{len(value.data)} numbers of shape {list(value.shape)}: {value.data[0]}, …"
    if not value.data:
        return f"nothing, of shape {list(value.shape)}"
    return _nested([str(number) for number in value.data], value.shape)


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return texts[0]
    step = len(texts) // shape[0]
    parts = [_nested(texts[i : i + step], shape[1:]) for i in range(0, len(texts), step)]
    return f"[{', '.join(parts)}]"
