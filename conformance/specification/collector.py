"""Collects every fault of a document, so that none hides another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from conformance.errors import Problem
from conformance.specification.reader import Document, Path_
from conformance.specification.tensors import Malformed

Entry = TypeVar("Entry", bound=msgspec.Struct)

_PATH_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+|\.\.\.)\]")
_UNKNOWN_FIELD = re.compile(r"unknown field `(.*?)`")

_EXPECTED = re.compile(r"Expected `(.*)`, got `(.*)`")
_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "decimal": "a number",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a mapping",
    "str": "text",
}


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
            steps = [int(i) if i.isdigit() else k or i for k, i in _PATH_STEP.findall(where)]
            steps = _with_keys(value, kind, str(error), steps)
            unknown = _UNKNOWN_FIELD.search(message)
            if unknown:
                message = f"unknown key {unknown[1]!r}; known: {', '.join(kind.__struct_fields__)}"
                steps.append(unknown[1])
            self.add((*path, *steps), _in_words(message).replace("Object missing", "missing"))
            return None


def _in_words(message: str) -> str:
    """``message`` without the names that JSON has for what stands in YAML."""
    expected = _EXPECTED.fullmatch(message)
    if expected is None:
        return message
    wanted, got = (
        [_WORDS.get(kind, kind) for kind in part.split(" | ")] for part in expected.groups()
    )
    return f"expected {' or '.join(wanted)}, not {' or '.join(got)}"


def _with_keys(value: Any, kind: type[Any], text: str, steps: list[Any]) -> list[Any]:
    """``steps`` with the keys that msgspec leaves out: each is the first that alone errs so."""
    for place, step in enumerate(steps):
        if step != "...":
            continue
        home = value
        for earlier in steps[:place]:
            home = home[earlier]
        for key in home:
            alone = _replaced(value, steps[:place], {key: home[key]})
            if _error(alone, kind) == text:
                steps[place] = key
                break
    return steps


def _replaced(value: Any, path: list[Any], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


def _error(value: Any, kind: type[Any]) -> str:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""
