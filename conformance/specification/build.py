"""Turns the entries of a cases file into cases, collecting every fault on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from conformance.errors import Problem
from conformance.model import (
    Call,
    Case,
    CentralDifference,
    Expectation,
    Fact,
    FromOutput,
    Number,
    Operation,
    Rejection,
    Relations,
    Tensor,
    Undefined,
    Values,
)
from conformance.precision import PRECISIONS
from conformance.specification import slices
from conformance.specification.documents import CaseEntry, FactEntry
from conformance.specification.reader import Document, Path_
from conformance.specification.relations import parse_relation
from conformance.specification.tensors import Malformed, is_number, tensor

Entry = TypeVar("Entry", bound=msgspec.Struct)

_PATH_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+|\.\.\.)\]")
_UNKNOWN_FIELD = re.compile(r"unknown field `(.*?)`")
_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*$")


class Collector:
    """Faults of one document; ``at`` notes a malformed value and lets the work go on."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def add(self, path: Path_, message: str) -> None:
        self.problems.append(self.document.problem(path, message))

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        try:
            yield
        except Malformed as fault:
            self.add((*path, *fault.path), str(fault))

    def convert(self, value: Any, kind: type[Entry], *path: str | int) -> Entry | None:
        """``value`` as ``kind``, or None after noting what does not fit."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            message, _, where = str(error).partition(" - at `$")
            steps = [int(i) if i.isdigit() else k for k, i in _PATH_STEP.findall(where) if i or k]
            unknown = _UNKNOWN_FIELD.search(message)
            if unknown:
                message = f"unknown key {unknown[1]!r}; known: {', '.join(kind.__struct_fields__)}"
                steps.append(unknown[1])
            self.add((*path, *steps), message.replace("Object missing", "missing"))
            return None


def build_case(
    entry: CaseEntry, operation: Operation, path: Path_, collect: Collector
) -> Case | None:
    """The case that ``entry`` describes, or None after noting its faults in ``collect``."""
    before = len(collect.problems)
    if not _ID.match(entry.id):
        collect.add((*path, "id"), f"{entry.id!r} is not of the form family/words-with-dashes")
    calls = _calls(entry, operation, path, collect)
    expectation = _expectation(entry, operation, calls, path, collect)
    if not entry.clauses:
        collect.add((*path, "clauses"), "a case shows at least one clause")
    if len(collect.problems) > before or expectation is None:
        return None
    return Case(
        id=entry.id,
        title=entry.title,
        operation=operation.name,
        mode=entry.mode,
        clauses=entry.clauses,
        sources=entry.sources,
        calls=calls,
        expectation=expectation,
        dtypes=entry.dtypes,
        derived=entry.derived,
        degenerate=entry.degenerate,
        file=collect.document.file,
        line=collect.document.line(path),
    )


def build_fact(
    entry: FactEntry, operation: Operation, path: Path_, collect: Collector
) -> Fact | None:
    """The fact that ``entry`` describes, or None after noting its faults."""
    case = build_case(entry, operation, path, collect)
    claim = entry.central_difference
    difference = None
    if claim is not None:
        if not (is_number(claim.step) and is_number(claim.within) and entry.mode == "vjp"):
            where = (*path, "central_difference")
            collect.add(where, "needs a step, a limit within, and mode: vjp")
            return None
        step, within = Decimal(claim.step), Decimal(claim.within)
        difference = CentralDifference(step=step, within=within, dtype=claim.dtype)
    if case is None:
        return None
    return Fact(case=case, fault=entry.fault, central_difference=difference)


def _calls(
    entry: CaseEntry, operation: Operation, path: Path_, collect: Collector
) -> dict[str, Call]:
    if (entry.given is None) == (entry.calls is None):
        collect.add(path, "write either given (one call) or calls (several)")
        return {}
    written = {"": entry.given} if entry.given is not None else (entry.calls or {})
    calls: dict[str, Call] = {}
    for name, given in written.items():
        where = (*path, "calls", name) if name else (*path, "given")
        call = _call(entry, given or {}, calls, operation, where, path, collect)
        if call is not None:
            _check_call(call, operation, entry, where, collect)
            calls[name] = call
    return calls


def _call(  # noqa: PLR0913 -- where a call stands needs both its own path and its case's
    entry: CaseEntry,
    written: dict[str, Any],
    earlier: dict[str, Call],
    operation: Operation,
    where: Path_,
    path: Path_,
    collect: Collector,
) -> Call | None:
    if "like" in written:
        return _changed_call(written, earlier, where, collect)
    given: dict[str, Any] = {}
    for name, value in written.items():
        with collect.at(*where, name):
            given[name] = _given(value, name, operation, earlier)
    upstream: dict[str, Tensor] = {}
    for name, value in entry.upstream.items():
        with collect.at(*path, "upstream", name):
            upstream[name] = tensor(value)
    wrt = entry.wrt or tuple(name for name in operation.differentiable if name in given)
    return Call(given=given, upstream=upstream, wrt=wrt if entry.mode == "vjp" else ())


def _given(value: Any, name: str, operation: Operation, earlier: dict[str, Call]) -> Any:
    """The exact value of one argument: a tensor, a scalar attribute, or an earlier output."""
    rule = operation.rule(name)
    if rule is None:
        known = ", ".join((*operation.arguments, *operation.attributes))
        raise Malformed(f"{operation.name} has no argument {name!r}; it has {known}")
    if name in operation.attributes:
        wanted = bool if rule.kind == "flag" else int if rule.kind == "count" else (int, Decimal)
        if not isinstance(value, wanted) or (rule.kind != "flag" and isinstance(value, bool)):
            raise Malformed(f"{name} is one {rule.kind}, not {value!r}")
        return Decimal(value) if rule.kind == "real" else value
    if isinstance(value, dict) and set(value) == {"from"}:
        call, _, output = str(value["from"]).partition(".")
        if call not in earlier or output not in operation.outputs:
            raise Malformed(f"{value['from']!r} is not call.output of an earlier call", "from")
        return FromOutput(call=call, output=output)
    found = tensor(value)
    if rule.kind == "index" and found.dtype == "real":
        return msgspec.structs.replace(found, dtype="int64")
    return found


def _changed_call(
    written: dict[str, Any], earlier: dict[str, Call], where: Path_, collect: Collector
) -> Call | None:
    """A call that differs from another only in what ``set`` names."""
    unknown = set(written) - {"like", "set"}
    if unknown or not isinstance(written.get("set", {}), dict):
        collect.add(where, "a changed call has only like: <call> and set: {argument[slice]: value}")
        return None
    base = earlier.get(written["like"])
    if base is None:
        collect.add((*where, "like"), f"{written['like']!r} is not an earlier call")
        return None
    given, upstream = dict(base.given), dict(base.upstream)
    for target, value in written.get("set", {}).items():
        with collect.at(*where, "set", target):
            name, index = slices.parse_target(target)
            home: dict[str, Any] = given
            if name == "upstream":
                home, name = upstream, next(iter(upstream), "")
            if name not in home:
                raise Malformed(f"call {written['like']!r} is not given {name!r}")
            if index or isinstance(home[name], Tensor):
                new = tensor(value)
                old = home[name]
                home[name] = slices.assign(old, index, new) if index or not new.shape else new
            elif is_number(value):
                home[name] = Decimal(value) if isinstance(home[name], Decimal) else value
            else:
                raise Malformed(f"{name} is one number, not {value!r}")
    return Call(given=given, upstream=upstream, wrt=base.wrt)


def _check_call(
    call: Call, operation: Operation, entry: CaseEntry, where: Path_, collect: Collector
) -> None:
    """Notes what is missing, superfluous or outside the dtypes of the case."""
    for name, rule in {**operation.arguments, **operation.attributes}.items():
        if name not in call.given and not rule.optional:
            collect.add(where, f"{operation.name} needs {name!r}")
    if entry.mode == "vjp":
        if set(call.upstream) != set(operation.outputs):
            wanted = ", ".join(operation.outputs)
            collect.add(where[: len(where) - 1], f"mode vjp needs upstream for {wanted}")
        for name in call.wrt:
            if name not in operation.differentiable or name not in call.given:
                collect.add(where[: len(where) - 1], f"wrt names {name!r}, which has no gradient")
    elif call.upstream or entry.wrt:
        collect.add(where[: len(where) - 1], "upstream and wrt belong to mode: vjp")
    for name, value in {**call.given, **call.upstream}.items():
        numbers = value.data if isinstance(value, Tensor) else (value,)
        for number in numbers:
            if is_number(number):
                _check_range(number, entry, (*where, name), collect)


def _check_range(number: Number, entry: CaseEntry, where: Path_, collect: Collector) -> None:
    for dtype in entry.dtypes:
        largest = PRECISIONS[dtype].largest
        smallest = PRECISIONS[dtype].ulp(0.0)
        if abs(number) > Decimal(largest) or 0 < abs(number) < Decimal(smallest):
            collect.add(where, f"{number} is outside {dtype}: name the dtypes of this case")


def _expectation(
    entry: CaseEntry,
    operation: Operation,
    calls: dict[str, Call],
    path: Path_,
    collect: Collector,
) -> Expectation | None:
    """What is due: values unless the entry says reject, undefined or relate."""
    said = [key for key in ("reject", "undefined", "relate") if getattr(entry, key)]
    if len(said) > 1 or (said and (entry.expect or entry.printed)):
        collect.add(path, "a case has one of expect/printed, reject, undefined, relate")
        return None
    if entry.reject or entry.undefined:
        if entry.beside is None:
            collect.add(path, "needs beside: the id of a valid case like it")
            return None
        if entry.undefined:
            if entry.undefined not in operation.outputs:
                collect.add((*path, "undefined"), f"no output {entry.undefined!r}")
            return Undefined(output=entry.undefined, beside=entry.beside)
        assert entry.reject is not None
        if entry.reject not in operation.rejects:
            kinds = ", ".join(operation.rejects) or "nothing"
            collect.add((*path, "reject"), f"{operation.name} rejects {kinds}")
        return Rejection(kind=entry.reject, beside=entry.beside)
    if entry.beside is not None:
        collect.add((*path, "beside"), "belongs to reject and undefined")
    results = operation.outputs if entry.mode == "evaluate" else operation.differentiable
    if entry.relate:
        relations = []
        for position, written in enumerate(entry.relate):
            with collect.at(*path, "relate", position):
                relations.append(parse_relation(written, tuple(calls), tuple(results)))
        return Relations(relate=tuple(relations))
    if len(calls) > 1:
        collect.add(path, "several calls need relate")
    claims: dict[str, dict[str, Tensor]] = {"expect": {}, "printed": {}}
    for key, claim in claims.items():
        for name, value in getattr(entry, key).items():
            with collect.at(*path, key, name):
                if name not in results:
                    raise Malformed(f"no result {name!r}; there is {', '.join(results)}")
                claim[name] = tensor(value)
    return Values(expect=claims["expect"], printed=claims["printed"])
