"""Reads the relations between the outputs of a case: same, differ, combination, less, …"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from conformance.model import (
    Combination,
    Differ,
    Drawn,
    Greater,
    Less,
    MeanSquare,
    Relation,
    Same,
)
from conformance.specification.slices import parse_index
from conformance.specification.tensors import Malformed, is_number, tensor

_KEYS: dict[str, set[str]] = {
    "same": {"where", "identical"},
    "differ": {"where"},
    "combination": {"equals", "where"},
    "mean_square": {"equals"},
    "less": {"than", "where"},
    "greater": {"than", "where"},
    "drawn": {"normal", "uniform"},
}


def parse_relation(
    written: dict[str, Any], calls: tuple[str, ...], results: tuple[str, ...]
) -> Relation:
    """The relation that ``written`` states over the ``results`` of ``calls``.

    Raises Malformed where it is none, or names a call or result that isn't there.
    """
    kinds = [key for key in _KEYS if key in written]
    if len(kinds) != 1:
        raise Malformed(f"a relation is one of {', '.join(_KEYS)}")
    kind = kinds[0]
    unknown = set(written) - {kind} - _KEYS[kind]
    if unknown:
        raise Malformed(f"unknown key {min(unknown)!r}", min(unknown))
    subject = written[kind]
    if kind in {"same", "differ"}:
        left, right = _pair(subject, calls, results)
        sides = _sides(written.get("where", ""))
        if kind == "differ":
            return Differ(left=left, right=right, where=sides)
        identical = written.get("identical", False)
        if not isinstance(identical, bool):
            raise Malformed("identical is true or false", "identical")
        return Same(left=left, right=right, where=sides, identical=identical)
    where = _slice(written.get("where", ""))
    if kind == "combination":
        return _combination(subject, written, where, calls, results)
    if kind == "drawn":
        return _drawn(subject, written, calls, results)
    key = "equals" if kind == "mean_square" else "than"
    if not is_number(written.get(key)):
        raise Malformed(f"needs {key}: a number")
    term = _term(subject, calls, results)
    if kind == "mean_square":
        return MeanSquare(term=term, equals=written["equals"])
    beyond = Less if kind == "less" else Greater
    return beyond(term=term, than=written["than"], where=where)


def is_result(name: str, results: tuple[str, ...]) -> bool:
    """Whether ``name`` is one of ``results``, where ``shapes.*`` stands for many."""
    return any(fnmatchcase(name, result) for result in results)


def _combination(
    subject: Any,
    written: dict[str, Any],
    where: str,
    calls: tuple[str, ...],
    results: tuple[str, ...],
) -> Combination:
    if not isinstance(subject, dict) or not subject or "equals" not in written:
        raise Malformed("a combination is {call.output: integer, …} with equals")
    terms: list[tuple[str, str, int]] = []
    for name, factor in subject.items():
        if not isinstance(factor, int) or isinstance(factor, bool):
            raise Malformed(f"the factor of {name} is a whole number", "combination", name)
        terms.append((*_term(name, calls, results), factor))
    return Combination(terms=tuple(terms), equals=tensor(written["equals"]), where=where)


def _drawn(
    subject: Any, written: dict[str, Any], calls: tuple[str, ...], results: tuple[str, ...]
) -> Drawn:
    names = subject if isinstance(subject, list) and len(subject) > 1 else [subject]
    terms = tuple(_term(name, calls, results) for name in names)
    if len(set(terms)) < len(terms):
        raise Malformed("names an output twice, which is a copy of itself", "drawn")
    size = written.get("normal", written.get("uniform"))
    if ("normal" in written) == ("uniform" in written) or not is_number(size) or size <= 0:
        raise Malformed("needs normal: the deviation, or uniform: the limit")
    distribution: Any = "normal" if "normal" in written else "uniform"
    return Drawn(terms=terms, distribution=distribution, size=size)


def _sides(written: Any) -> tuple[str, str]:
    """One slice for both sides, or one for each."""
    if not isinstance(written, list):
        return (_slice(written), _slice(written))
    if len(written) != 2:
        raise Malformed("where is a slice, or two: one for each side", "where")
    return (_slice(written[0]), _slice(written[1]))


def _slice(written: Any) -> str:
    text = str(written)
    parse_index(text)
    return text


def _pair(
    subject: Any, calls: tuple[str, ...], results: tuple[str, ...]
) -> tuple[tuple[str, str], tuple[str, str]]:
    if isinstance(subject, str) and len(calls) == 2:
        return _term(f"{calls[0]}.{subject}", calls, results), _term(
            f"{calls[1]}.{subject}", calls, results
        )
    if isinstance(subject, list) and len(subject) == 2:
        return _term(subject[0], calls, results), _term(subject[1], calls, results)
    raise Malformed("names two outputs, as in [a.y, b.y], or one output of two calls")


def _term(name: Any, calls: tuple[str, ...], results: tuple[str, ...]) -> tuple[str, str]:
    call, output = "", str(name)
    if calls != ("",):  # the name of a parameter has dots of its own
        call, _, output = output.partition(".")
    if call not in calls or not is_result(output, results):
        written = ", ".join(f"{c}.{r}" if c else r for c in calls for r in results)
        raise Malformed(f"{name!r} is no output of this case; there is {written}")
    return call, output
