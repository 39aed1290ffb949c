"""Builds the calls of a case: what each question is given, in exact numbers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from conformance.model import Call, FromOutput, Number, Operation, Parameters, Tensor
from conformance.precision import PRECISIONS, Dtype
from conformance.specification import slices
from conformance.specification.collector import Collector
from conformance.specification.documents import CaseEntry
from conformance.specification.parameters import parameters
from conformance.specification.reader import Path_
from conformance.specification.tensors import Malformed, is_number, tensor

#: The smallest and the largest magnitude of each dtype, exactly.
_RANGES = {
    name: (Decimal(precision.ulp(0.0)), Decimal(precision.largest))
    for name, precision in PRECISIONS.items()
}


def build_calls(
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
            _check_call(call, operation, entry, where, collect, given or {})
            calls[name] = call
    return calls


def _call(
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
            if entry.mode == "vjp" and _is_from(value):
                raise Malformed("a gradient is asked of written arguments, not of outputs", "from")
            given[name] = _given(value, name, operation, earlier)
    upstream: dict[str, Tensor] = {}
    for name, value in entry.upstream.items():
        with collect.at(*path, "upstream", name):
            upstream[name] = tensor(value)
    call = Call(given=given, upstream=upstream, outputs=entry.outputs)
    wrt = (entry.wrt or call.differentiable(operation)) if entry.mode == "vjp" else ()
    return msgspec.structs.replace(call, wrt=wrt)


def _is_from(value: Any) -> bool:
    """Whether ``value`` is ``{from: call.output}``."""
    return isinstance(value, dict) and set(value) == {"from"}


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
    if _is_from(value):
        call, _, output = str(value["from"]).partition(".")
        if call not in earlier or output not in operation.outputs:
            raise Malformed(f"{value['from']!r} is not call.output of an earlier call", "from")
        return FromOutput(call=call, output=output)
    if rule.kind == "parameters":
        return parameters(value, rule)
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
    like = written["like"]
    base = earlier.get(like) if isinstance(like, str) else None
    if base is None:
        collect.add((*where, "like"), f"{written['like']!r} is not an earlier call")
        return None
    given, upstream = dict(base.given), dict(base.upstream)
    for target, value in written.get("set", {}).items():
        with collect.at(*where, "set", target):
            name, index = slices.parse_target(target)
            home: dict[str, Any] = given
            argument, _, inner = name.partition(".")
            if name == "upstream":
                home, name = upstream, next(iter(upstream), "")
            elif isinstance(many := given.get(argument), Parameters):
                home, name = dict(many.tensors), inner
                given[argument] = Parameters(tensors=home)
            if name not in home:
                raise Malformed(f"call {written['like']!r} is not given {name!r}")
            home[name] = _changed_value(home[name], name, index, value)
    return msgspec.structs.replace(base, given=given, upstream=upstream)


def _changed_value(old: Any, name: str, index: slices.Index, value: Any) -> Any:
    if isinstance(old, FromOutput):
        raise Malformed(f"{name} is the output of another call, which can't be changed")
    if index or isinstance(old, Tensor):
        new = tensor(value)
        if old.dtype != "real" and new.dtype == "real":  # indices are written as plain numbers
            new = msgspec.structs.replace(new, dtype=old.dtype)
        return slices.assign(old, index, new) if index or not new.shape else new
    if not is_number(value):
        raise Malformed(f"{name} is one number, not {value!r}")
    return Decimal(value) if isinstance(old, Decimal) else value


def _check_call(
    call: Call,
    operation: Operation,
    entry: CaseEntry,
    where: Path_,
    collect: Collector,
    written: dict[str, Any],
) -> None:
    """Notes what is missing, superfluous or outside the dtypes of the case."""
    for name, rule in {**operation.arguments, **operation.attributes}.items():
        missing = name not in call.given and name not in written  # what is malformed was noted
        if missing and not rule.optional and "like" not in written:
            collect.add(where, f"{operation.name} needs {name!r}")
    if entry.mode == "vjp":
        if set(call.upstream) != set(operation.outputs):
            wanted = ", ".join(operation.outputs)
            collect.add(where[: len(where) - 1], f"mode vjp needs upstream for {wanted}")
        # What has a gradient can't be told where an argument is malformed, which was noted.
        understood = all(name in call.given for name in operation.arguments if name in written)
        for name in call.wrt if understood else ():
            if name not in call.differentiable(operation):
                collect.add(where[: len(where) - 1], f"wrt names {name!r}, which has no gradient")
    for name in entry.outputs:
        if name not in operation.outputs or entry.mode == "vjp":
            collect.add(where[: len(where) - 1], f"outputs names {name!r}, which is none")
    if entry.mode == "evaluate" and (call.upstream or entry.wrt):
        collect.add(where[: len(where) - 1], "upstream and wrt belong to mode: vjp")
    _check_ranges({**call.given, **call.upstream}, entry, where, collect)


def _check_ranges(
    values: dict[str, Any], entry: CaseEntry, where: Path_, collect: Collector
) -> None:
    """Notes the numbers that a dtype of the case can't hold, the first of each argument."""
    for place, numbers in _numbers(values):
        outside = {
            dtype: number
            for dtype in reversed(entry.dtypes)
            for number in reversed(list(filter(is_number, numbers)))
            if not _holds(dtype, number)
        }
        if outside:
            names = " and ".join(dtype for dtype in entry.dtypes if dtype in outside)
            number = next(number for number in outside.values())
            collect.add(
                (*where, *place), f"{number} is outside {names}: name the dtypes of this case"
            )


def _numbers(values: dict[str, Any]) -> Iterator[tuple[Path_, tuple[Any, ...]]]:
    """Every tensor or number, with the path to it."""
    for name, value in values.items():
        if isinstance(value, Parameters):
            for inner, item in value.tensors.items():
                yield (name, inner), item.data
        else:
            yield (name,), value.data if isinstance(value, Tensor) else (value,)


def _holds(dtype: Dtype, number: Number) -> bool:
    """Whether ``number`` is zero or within the range of ``dtype``; compared without rounding."""
    smallest, largest = _RANGES[dtype]
    size = abs(number) if isinstance(number, int) else number.copy_abs()
    return size == 0 or smallest <= size <= largest
