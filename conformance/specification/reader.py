"""Reads one YAML file exactly: numbers stay decimals, and every surprise of YAML is refused.

PyYAML alone reads ``0.1`` as a double, ``1e-5`` as text, ``on`` as true and keeps the last of two
equal keys. Here a number is an ``int`` or a ``Decimal``, only ``true`` and ``false`` are flags,
and aliases, tags, duplicate keys and several documents are errors with their line.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import yaml

from conformance.errors import Problem, SpecificationError

#: Where in a document something is: keys and list positions from the root.
Path_: TypeAlias = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
#: Where there may be a tag or an alias.
_MARKS = re.compile(r"[!*]")
_INTEGER = re.compile(r"[-+]?[0-9]+$")
_FLAG = re.compile(r"(?:true|false)$")
_NULL = re.compile(r"(?:null|~|)$")

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where it was built in


class _ExactLoader(_BASE):  # type: ignore[misc]  # the base is chosen when the module loads
    """A safe loader with the YAML 1.2 core schema, less infinities and NaN."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


def _refuse(message: str, node: Any) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, message, node.start_mark)


def _refuse_tags_and_aliases(text: str) -> None:
    """Raise for the first of either. The nodes no longer say what was written, the events do."""
    if not _MARKS.search(text):
        return
    for event in yaml.parse(text, Loader=_BASE):
        if isinstance(event, yaml.AliasEvent):
            raise _refuse("anchors and aliases are not allowed: write the value again", event)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise _refuse(f"the tag {tag} is not allowed: write plain YAML", event)


def _construct_number(_: _ExactLoader, node: yaml.ScalarNode) -> int | Decimal:
    try:
        return int(node.value) if _INTEGER.match(node.value) else Decimal(node.value)
    except (ValueError, InvalidOperation):
        raise _refuse("this number is too long or too large to be handled", node) from None


def _construct_mapping(loader: _ExactLoader, node: yaml.MappingNode) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node)
        if not isinstance(key, str):
            written = (
                key_node.value if isinstance(key_node, yaml.ScalarNode) else "of a list or map"
            )
            raise _refuse(f"the key {written} is not text: put it in quotes", key_node)
        if key in mapping:
            raise _refuse(f"duplicate key {key!r}", key_node)
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


def _construct_unknown(_: _ExactLoader, node: yaml.Node) -> Any:
    raise _refuse(f"the tag {node.tag} is not allowed: write plain YAML", node)


_ExactLoader.add_implicit_resolver(_TAG + "number", _NUMBER, list("-+.0123456789"))
_ExactLoader.add_implicit_resolver(_TAG + "bool", _FLAG, list("tf"))
_ExactLoader.add_implicit_resolver(_TAG + "null", _NULL, ["n", "~", ""])
_ExactLoader.add_constructor(_TAG + "number", _construct_number)
_ExactLoader.add_constructor(_TAG + "map", _construct_mapping)
for _name in ("int", "float", "timestamp", "binary", "omap", "pairs", "set", "merge", "value"):
    _ExactLoader.add_constructor(_TAG + _name, _construct_unknown)
_ExactLoader.add_constructor(None, _construct_unknown)


class Document:
    """One YAML file: its exact ``data``, and the line of any place in it (found on demand)."""

    def __init__(self, file: str, text: str) -> None:
        """Parse ``text``; ``file`` is the name that messages use.

        Raises SpecificationError with the line of the first thing that is not plain YAML.
        """
        self.file = file
        self._text = text
        self._root: yaml.Node | None = None
        try:
            _refuse_tags_and_aliases(text)
            self.data: Any = yaml.load(text, Loader=_ExactLoader)  # noqa: S506 -- a safe loader
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 0
            problem = Problem(file, line, "", _readable(error))
            raise SpecificationError([problem]) from None
        except yaml.reader.ReaderError as error:  # it has a position in bytes and no mark
            line = text.encode()[: error.position].count(b"\n") + 1
            message = f"unacceptable character #x{error.character:04x}: {error.reason}"
            raise SpecificationError([Problem(file, line, "", message)]) from None
        except RecursionError:
            problem = Problem(file, 1, "", "nested too deeply to be a fixture")
            raise SpecificationError([problem]) from None

    @classmethod
    def read(cls, path: Path, file: str) -> Document:
        """Read the UTF-8 file ``path``; ``file`` is the name that messages use."""
        try:
            return cls(file, path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            message = f"not UTF-8 text: {error.reason} at byte {error.start}"
            raise SpecificationError([Problem(file, 0, "", message)]) from None

    def line(self, path: Path_) -> int:
        """The line, from 1, of the deepest part of ``path`` that exists."""
        if self._root is None:
            self._root = yaml.compose(self._text, Loader=_ExactLoader)
        node, mark = self._root, getattr(self._root, "start_mark", None)
        for step in path:
            child = _child(node, step)
            if child is None:
                break
            mark, node = child
        return mark.line + 1 if mark else 1

    def problem(self, path: Path_, message: str) -> Problem:
        """A fault of this document at ``path``."""
        return Problem(self.file, self.line(path), show_path(path), message)


def show_path(path: Path_) -> str:
    """``("cases", 3, "given")`` as ``cases[3].given``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _child(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """The mark and node at ``step`` of ``node``; for a mapping, the mark of the key."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None


def _readable(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem or error)
    if "cannot start any token" in problem:
        return f"{problem} (is there a tab? indent with spaces)"
    return f"{error.context}: {problem}" if error.context else problem
