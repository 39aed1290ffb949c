"""The closed schema of the YAML files, as people write them.

``spec/schema`` says the same in JSON Schema for other tools. Values stay unresolved here; turning
them into cases is the work of ``build``.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from conformance.model import ArgumentRule, Layout, Mode, OutputRule
from conformance.precision import Dtype


class _Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping that has no other keys."""


class ArgumentRuleEntry(_Closed, frozen=True, kw_only=True):
    kind: Literal["real", "index", "count", "flag", "parameters"]
    shape: str = "[]"
    optional: bool = False
    shapes: dict[str, str] = {}

    def rule(self) -> ArgumentRule:
        return ArgumentRule(**msgspec.structs.asdict(self))


class OutputRuleEntry(_Closed, frozen=True, kw_only=True):
    kind: Literal["real", "whole"] = "real"
    shape: str = "[]"
    dtype: Literal["int64", "uint64"] = "int64"
    named: bool = False


class OperationEntry(_Closed, frozen=True, kw_only=True):
    summary: str
    arguments: dict[str, ArgumentRuleEntry] = {}
    attributes: dict[str, ArgumentRuleEntry] = {}
    outputs: dict[str, str | OutputRuleEntry]
    uses: tuple[str, ...] = ()
    rejects: dict[str, str] = {}
    free: str | None = None

    def output_rules(self) -> dict[str, OutputRule]:
        """The rule of every output; text alone is the shape of a real one."""
        return {
            name: OutputRule(shape=written)
            if isinstance(written, str)
            else OutputRule(**msgspec.structs.asdict(written))
            for name, written in self.outputs.items()
        }


class OperationsFile(_Closed, frozen=True, kw_only=True):
    operations: dict[str, OperationEntry]


class ClauseEntry(_Closed, frozen=True, kw_only=True):
    id: str
    text: str
    section: str
    sources: tuple[str, ...] = ()
    decision: str | None = None
    unseparated: str | None = None


class ClausesFile(_Closed, frozen=True, kw_only=True):
    document: str
    clauses: list[Any]


class CaseEntry(_Closed, frozen=True, kw_only=True):
    """A case as written; exactly one of expect/none, reject, undefined, relate says what is due."""

    id: str
    title: str
    clauses: tuple[str, ...]
    sources: tuple[str, ...] = ()
    mode: Mode = "evaluate"
    given: dict[str, Any] | None = None
    calls: dict[str, dict[str, Any]] | None = None
    upstream: dict[str, Any] = {}
    wrt: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    expect: dict[str, Any] = {}
    printed: dict[str, Any] = {}
    reject: str | None = None
    undefined: str | None = None
    beside: str | None = None
    relate: list[dict[str, Any]] = []
    dtypes: tuple[Dtype, ...] = ("float64", "float32")
    layout: Layout = "contiguous"
    derived: str | None = None
    degenerate: str | None = None
    free: str | None = None
    note: str | None = None


class CasesFile(_Closed, frozen=True, kw_only=True):
    operation: str
    cases: list[Any]


class CentralDifferenceEntry(_Closed, frozen=True, kw_only=True):
    step: Any
    within: Any
    dtype: Dtype = "float64"


class FactEntry(CaseEntry, frozen=True, kw_only=True):
    operation: str
    fault: str | None = None
    central_difference: CentralDifferenceEntry | None = None


class FactsFile(_Closed, frozen=True, kw_only=True):
    facts: list[Any]


class ErratumEntry(_Closed, frozen=True, kw_only=True):
    id: str
    document: str
    where: str
    printed: str
    right: str
    reason: str
    kind: Literal["figure", "formula", "term", "logic", "identifier"]
    cases: tuple[str, ...] = ()


class ErrataFile(_Closed, frozen=True, kw_only=True):
    errata: list[Any]


class RetiredEntry(_Closed, frozen=True, kw_only=True):
    id: str
    reason: str


class RetiredFile(_Closed, frozen=True, kw_only=True):
    retired: list[RetiredEntry]
