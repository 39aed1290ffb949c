"""Turns the entries of a file into cases and facts, noting every fault on the way."""

from __future__ import annotations

import re
from decimal import Decimal

from conformance.model import (
    Call,
    Case,
    CentralDifference,
    Expectation,
    Fact,
    Operation,
    Rejection,
    Relations,
    Tensor,
    Undefined,
    Values,
)
from conformance.specification.calls import build_calls
from conformance.specification.collector import Collector
from conformance.specification.documents import CaseEntry, FactEntry
from conformance.specification.reader import Path_
from conformance.specification.relations import is_result, parse_relation
from conformance.specification.tensors import Malformed, is_number, tensor

_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*$")


def build_case(
    entry: CaseEntry, operation: Operation, path: Path_, collect: Collector
) -> Case | None:
    """The case that ``entry`` describes, or None after noting its faults in ``collect``."""
    before = len(collect.problems)
    if not _ID.match(entry.id):
        collect.add((*path, "id"), f"{entry.id!r} is not of the form family/words-with-dashes")
    calls = build_calls(entry, operation, path, collect)
    if not entry.dtypes or len(set(entry.dtypes)) < len(entry.dtypes):
        collect.add((*path, "dtypes"), "names at least one dtype, and none twice")
    if len(collect.problems) > before:
        return None  # what is due can't be told from calls that are not understood
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
        layout=entry.layout,
        derived=entry.derived,
        degenerate=entry.degenerate,
        free=entry.free or operation.free,
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
    if entry.calls is not None and not entry.relate:
        collect.add(path, "several calls need relate" if len(calls) > 1 else "calls need relate")
        return None
    if entry.reject or entry.undefined:
        return _beside(entry, operation, path, collect)
    if entry.beside is not None:
        collect.add((*path, "beside"), "belongs to reject and undefined")
    results = _results(entry, operation, calls)
    if entry.relate:
        relations = []
        for position, written in enumerate(entry.relate):
            with collect.at(*path, "relate", position):
                relations.append(parse_relation(written, tuple(calls), results))
        return Relations(relate=tuple(relations))
    if entry.free or operation.free:
        collect.add(path, "what is free has no values to compare: write relate")
        return None
    return Values(
        expect=_claims(entry, "expect", results, path, collect),
        printed=_claims(entry, "printed", results, path, collect),
    )


def _results(entry: CaseEntry, operation: Operation, calls: dict[str, Call]) -> tuple[str, ...]:
    """The names of the results; ``shapes.*`` stands for outputs that have names of their own."""
    if entry.mode == "vjp":
        return next(iter(calls.values())).wrt
    asked = entry.outputs or tuple(operation.outputs)
    return tuple(f"{name}.*" if operation.outputs[name].named else name for name in asked)


def _beside(
    entry: CaseEntry, operation: Operation, path: Path_, collect: Collector
) -> Expectation | None:
    """A rejection or an undefined output, with the valid case that it stands beside."""
    if entry.beside is None:
        collect.add(path, "needs beside: the id of a valid case like it")
        return None
    if entry.undefined:
        if entry.undefined not in operation.outputs:
            collect.add((*path, "undefined"), f"no output {entry.undefined!r}")
        return Undefined(output=entry.undefined, beside=entry.beside)
    assert entry.reject is not None  # the caller has seen one of the two
    if entry.reject not in operation.rejects:
        kinds = ", ".join(operation.rejects) or "nothing"
        collect.add((*path, "reject"), f"{operation.name} rejects {kinds}")
    return Rejection(kind=entry.reject, beside=entry.beside)


def _claims(
    entry: CaseEntry, key: str, results: tuple[str, ...], path: Path_, collect: Collector
) -> dict[str, Tensor]:
    """The figures under ``expect`` or ``printed``, by result."""
    claims: dict[str, Tensor] = {}
    for name, value in getattr(entry, key).items():
        with collect.at(*path, key, name):
            if not is_result(name, results):
                raise Malformed(f"no result {name!r}; there is {', '.join(results)}")
            claims[name] = tensor(value)
            if any(not -400 < Decimal(n).adjusted() < 400 for n in claims[name].data if n):
                raise Malformed("a figure is outside every dtype")
    return claims
