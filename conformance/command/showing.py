"""One case as text: what it is for, what it asks, what is due."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.frozen import Truth, dotted
from conformance.model import (
    Case,
    Combination,
    Differ,
    Drawn,
    FromOutput,
    Greater,
    Less,
    MeanSquare,
    Parameters,
    Rejection,
    Relation,
    Relations,
    Same,
    Tensor,
    Undefined,
    Values,
)
from conformance.specification import Specification, load


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
    yield from _asked(case)


def _asked(case: Case) -> Iterator[str]:
    """What each call asks; of a later one, only what it does not share with the first."""
    first = next(iter(case.calls.values()))
    for name, call in case.calls.items():
        if name:
            yield f"  call {name}"
        shared = []
        for argument, value in call.given.items():
            if call is not first and first.given.get(argument) == value:
                shared.append(argument)
                continue
            before = None if call is first else first.given.get(argument)
            yield from _given(argument, value, before)
        if shared:
            yield f"  as in {next(iter(case.calls))}: {', '.join(shared)}"
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
            yield from (f"  {in_words(relation)}" for relation in relate)
        case Values():
            yield from _proven(case, specification)


def _proven(case: Case, specification: Specification) -> Iterator[str]:
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


def in_words(relation: Relation) -> str:
    """What must hold between outputs, as a sentence of mathematics."""
    match relation:
        case Same(left=left, right=right, where=(here, there), identical=identical):
            sides = f"{dotted(*left)}{here} = {dotted(*right)}{there}"
            return f"{sides}, {'in every bit' if identical else 'within the sum of their bounds'}"
        case Differ(left=left, right=right, where=(here, there)):
            sides = f"{dotted(*left)}{here} ≠ {dotted(*right)}{there}"
            return f"{sides}, somewhere by more than the sum of their bounds"
        case Combination(terms=terms, equals=equals, where=where):
            total = " + ".join(_term(dotted(call, output), n) for call, output, n in terms)
            total = f"({total})" if where and len(terms) > 1 else total
            total = total.replace("+ -", "- ")
            return f"{total}{where} = {_shown(equals)}, within the sum of the bounds"
        case MeanSquare(term=term, equals=number):
            return f"the mean of {dotted(*term)}² = {number}, within its bound"
        case Less(term=term, than=than, where=where):
            return f"{dotted(*term)}{where} < {than}, everywhere by more than its bound"
        case Greater(term=term, than=than, where=where):
            return f"{dotted(*term)}{where} > {than}, everywhere by more than its bound"
        case Drawn(terms=terms, distribution=distribution, size=size):
            names = " and ".join(dotted(*term) for term in terms)
            looks = f"look{'s' if len(terms) == 1 else ', together,'} drawn"
            if distribution == "normal":
                return f"{names} {looks}: normal around 0 with deviation {size}"
            return f"{names} {looks}: uniform from -{size} to {size}"


def _term(output: str, factor: int) -> str:
    return {1: output, -1: f"-{output}"}.get(factor, f"{factor} {output}")


def _given(argument: str, value: Any, before: Any = None) -> Iterator[str]:
    """One argument; of parameters, those that are not the same as ``before``."""
    if not isinstance(value, Parameters):
        yield f"  {argument} = {_shown(value)}"
        return
    yield f"  {argument}"
    same = before.tensors if isinstance(before, Parameters) else {}
    for name, item in value.tensors.items():
        if same.get(name) != item:
            yield f"    {name} = {_shown(item)}"
    if same:
        yield "    all others as before"


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
