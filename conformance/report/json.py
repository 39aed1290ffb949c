"""A report as JSON, for programs: what one version of the kit writes, the next can read.

Keys are the fields of the nouns in ``conformance.model``, every one of them, in their order. JSON
has no NaN and no infinities; where a verdict has one, the number is the string ``"NaN"``,
``"Infinity"`` or ``"-Infinity"``.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from conformance.errors import ConformanceError
from conformance.model import Report

FORMAT = "conformance-report/1"

_FLOATS = ("ratio", "bound", "ulps", "digits")
_SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_HINT = "reports are the .json files that `conformance run` writes"


def encode(report: Report) -> bytes:
    """UTF-8 JSON, indented by two, with a newline at the end; equal reports give equal bytes."""
    plain = msgspec.to_builtins(report)
    for name in ("kit", "specification", "environment", "totals"):
        plain[name] = dict(sorted(plain[name].items()))
    plain["backend"]["versions"] = dict(sorted(plain["backend"]["versions"].items()))
    for verdict in plain["verdicts"]:
        for name in _FLOATS:
            if verdict[name] is not None and not math.isfinite(verdict[name]):
                verdict[name] = _spelling(verdict[name])
    return msgspec.json.format(_written(plain), indent=2) + b"\n"


def decode(data: bytes) -> Report:
    """The report that ``encode`` wrote; unknown keys are passed over.

    Raises ``ConformanceError``, with the path inside the document, where it is no such report.
    """
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConformanceError(f"not a report: {error}", _HINT) from error
    if not isinstance(plain, dict):
        raise ConformanceError(f"not a report: $ is {_kind(plain)}, not an object", _HINT)
    if plain.get("format") != FORMAT:
        found = repr(plain["format"]) if "format" in plain else "missing"
        what = f"$.format is {found}; this version reads {FORMAT!r}"
        raise ConformanceError(what, "another version of conformance wrote it, or another program")
    try:
        return msgspec.convert(_with_floats(plain), Report)
    except msgspec.ValidationError as error:
        raise ConformanceError(f"not a report: {error}", _HINT) from error


def _spelling(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _written(plain: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:
        # a lone surrogate in some message must not cost the report
        return msgspec.json.encode(_encodable(plain))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return value


def _with_floats(plain: dict[str, Any]) -> dict[str, Any]:
    """``plain`` with spelled numbers as floats; whatever else is wrong is left for ``convert``."""
    verdicts = plain.get("verdicts")
    for verdict in verdicts if isinstance(verdicts, list) else ():
        if isinstance(verdict, dict):
            for name in _FLOATS:
                value = verdict.get(name)
                if isinstance(value, str):
                    verdict[name] = _SPELLED.get(value, value)
    return plain


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
