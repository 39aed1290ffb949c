"""Reads the files of ``spec/`` and checks them against each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from conformance.errors import Problem, SpecificationError
from conformance.model import Case, Clause, Erratum, Fact, Operation, Rejection, Undefined
from conformance.specification.build import build_case, build_fact
from conformance.specification.collector import Collector
from conformance.specification.documents import (
    CaseEntry,
    CasesFile,
    ClauseEntry,
    ClausesFile,
    ErrataFile,
    ErratumEntry,
    FactEntry,
    FactsFile,
    OperationsFile,
    RetiredFile,
)
from conformance.specification.reader import Document

Noun = TypeVar("Noun", Case, Clause, Erratum)

_SOURCE = re.compile(r"(?:(?:B|C|D|DV|E|G|R)-[0-9]+(?:-[0-9]+)?|BUG-[A-Z]+-[0-9]+)$")


class _Loader:
    """Holds what has been read so far, and every problem."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []
        self.operations: dict[str, Operation] = {}
        self.clauses: dict[str, Clause] = {}
        self.cases: dict[str, Case] = {}
        self.facts: dict[str, Fact] = {}
        self.errata: dict[str, Erratum] = {}
        self.retired: dict[str, str] = {}

    def check_places(self) -> None:
        """Every file of a fixture lies where it is read, and ends as it must."""
        for folder, pattern in (("clauses", "*.yaml"), ("cases", "*/*.yaml")):
            read = set((self.root / folder).glob(pattern))
            for path in (self.root / folder).rglob("*"):
                if path.is_file() and path.suffix in {".yaml", ".yml"} and path not in read:
                    file = f"{self.root.name}/{path.relative_to(self.root).as_posix()}"
                    message = f"is not read here: only {folder}/{pattern} is"
                    self.problems.append(Problem(file, 0, "", message))

    def open(self, path: Path) -> Collector | None:
        file = f"{self.root.name}/{path.relative_to(self.root).as_posix()}"
        try:
            return Collector(Document.read(path, file))
        except SpecificationError as error:
            self.problems.extend(error.problems)
        except OSError as error:
            self.problems.append(Problem(file, 0, "", f"can't be read: {error.strerror}"))
        return None

    def read_operations(self) -> None:
        collect = self.open(self.root / "operations.yaml")
        if collect is None:
            return
        file = collect.convert(collect.document.data, OperationsFile)
        for name, entry in file.operations.items() if file else ():
            self.operations[name] = Operation(
                name=name,
                summary=entry.summary,
                arguments={key: rule.rule() for key, rule in entry.arguments.items()},
                attributes={key: rule.rule() for key, rule in entry.attributes.items()},
                outputs=entry.output_rules(),
                uses=entry.uses,
                rejects=entry.rejects,
                free=entry.free,
            )
        for operation in self.operations.values():
            where = ("operations", operation.name, "uses")
            for used in operation.uses:
                if used not in self.operations:
                    collect.add(where, f"no operation {used!r}")
            if operation.name in self._built_from(operation.name):
                collect.add(where, f"{operation.name} would be composed of itself")
        self.problems.extend(collect.problems)

    def _built_from(self, name: str) -> set[str]:
        """Every operation that ``name`` is composed of, through any number of others."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            operation = self.operations.get(waiting.pop())
            fresh = set(operation.uses if operation else ()) - found
            found |= fresh
            waiting += fresh
        return found

    def read_clauses(self, path: Path) -> None:
        collect = self.open(path)
        if collect is None:
            return
        file = collect.convert(collect.document.data, ClausesFile)
        for position, written in enumerate(file.clauses if file else ()):
            entry = collect.convert(written, ClauseEntry, "clauses", position)
            if entry is None or file is None:
                continue
            _check_sources(entry.sources, collect, "clauses", position)
            clause = Clause(
                document=file.document,
                file=collect.document.file,
                line=collect.document.line(("clauses", position)),
                **msgspec.structs.asdict(entry),
            )
            self.keep(self.clauses, clause, collect, "clauses", position)
        self.problems.extend(collect.problems)

    def read_cases(self, path: Path) -> None:
        collect = self.open(path)
        if collect is None:
            return
        file = collect.convert(collect.document.data, CasesFile)
        operation = self.operations.get(file.operation) if file else None
        if file and operation is None:
            collect.add(("operation",), f"no operation {file.operation!r} in operations.yaml")
        for position, written in enumerate(file.cases if file and operation else ()):
            entry = collect.convert(written, CaseEntry, "cases", position)
            if entry is None or operation is None:
                continue
            where = ("cases", position)
            _check_sources(entry.sources, collect, *where)
            case = build_case(entry, operation, where, collect)
            if case is None:
                continue
            if case.family != path.parent.name:
                collect.add((*where, "id"), f"lies in the folder {path.parent.name!r}")
            if case.id in self.retired:
                collect.add((*where, "id"), f"{case.id!r} is retired and is never used again")
            self.keep(self.cases, case, collect, *where)
        self.problems.extend(collect.problems)

    def read_facts(self) -> None:
        collect = self.open(self.root / "facts.yaml")
        if collect is None:
            return
        file = collect.convert(collect.document.data, FactsFile)
        for position, written in enumerate(file.facts if file else ()):
            entry = collect.convert(written, FactEntry, "facts", position)
            if entry is None:
                continue
            operation = self.operations.get(entry.operation)
            if operation is None:
                where = ("facts", position, "operation")
                collect.add(where, f"no operation {entry.operation!r}")
                continue
            _check_sources(entry.sources, collect, "facts", position)
            fact = build_fact(entry, operation, ("facts", position), collect)
            if fact is None:
                continue
            if fact.case.id in self.retired:
                where = ("facts", position, "id")
                collect.add(where, f"{fact.case.id!r} is retired and is never used again")
            if fact.case.id in self.facts or fact.case.id in self.cases:
                collect.add(("facts", position, "id"), f"{fact.case.id!r} is used twice")
            self.facts[fact.case.id] = fact
        self.problems.extend(collect.problems)

    def read_errata(self) -> None:
        collect = self.open(self.root / "errata.yaml")
        if collect is None:
            return
        file = collect.convert(collect.document.data, ErrataFile)
        for position, written in enumerate(file.errata if file else ()):
            entry = collect.convert(written, ErratumEntry, "errata", position)
            if entry is None:
                continue
            for case_id in entry.cases:
                if case_id not in self.cases and case_id not in self.facts:
                    collect.add(("errata", position, "cases"), f"no case or fact {case_id!r}")
            erratum = Erratum(**msgspec.structs.asdict(entry))
            self.keep(self.errata, erratum, collect, "errata", position)
        self.problems.extend(collect.problems)

    def read_retired(self) -> None:
        collect = self.open(self.root / "retired.yaml")
        if collect is None:
            return
        file = collect.convert(collect.document.data, RetiredFile)
        self.retired = {entry.id: entry.reason for entry in (file.retired if file else ())}
        self.problems.extend(collect.problems)

    def keep(self, home: dict[str, Noun], noun: Noun, collect: Collector, *path: str | int) -> None:
        if noun.id in home:
            collect.add((*path, "id"), f"{noun.id!r} is used twice")
        home[noun.id] = noun

    def check_references(self) -> None:
        """Clauses that cases cite exist; twins are valid cases of the same operation."""
        for case in [*self.cases.values(), *(fact.case for fact in self.facts.values())]:
            for clause in case.clauses:
                if clause not in self.clauses:
                    self.at(case, f"no clause {clause!r} under clauses/")
            due = case.expectation
            if isinstance(due, Rejection | Undefined):
                twin = self.cases.get(due.beside)
                if twin is None:
                    self.at(case, f"no case {due.beside!r} to stand beside")
                elif twin.operation != case.operation or not _is_twin(twin):
                    self.at(case, f"{due.beside!r} is not a valid {case.operation} case")
                elif not set(case.dtypes) <= set(twin.dtypes):
                    self.at(case, f"{due.beside!r} does not have the same dtypes")

    def at(self, case: Case, message: str) -> None:
        self.problems.append(Problem(case.file, case.line, case.id, message))


def load_specification(root: Path) -> dict[str, Any]:
    """The parts of a Specification, read from the folder ``root``.

    Raises SpecificationError with every fault of every file.
    """
    loader = _Loader(root)
    loader.read_operations()
    if loader.problems and root.joinpath("operations.yaml").exists():
        raise SpecificationError(loader.problems)  # whatever else is told would follow from it
    loader.check_places()
    loader.read_retired()
    for path in sorted((root / "clauses").glob("*.yaml")):
        loader.read_clauses(path)
    for path in sorted((root / "cases").glob("*/*.yaml")):
        loader.read_cases(path)
    loader.read_facts()
    loader.read_errata()
    loader.check_references()
    if loader.problems:
        raise SpecificationError(loader.problems)
    nouns = ("operations", "clauses", "cases", "facts", "errata", "retired")
    return {noun: getattr(loader, noun) for noun in nouns}


def _check_sources(sources: tuple[str, ...], collect: Collector, *path: str | int) -> None:
    for source in sources:
        if not _SOURCE.match(source):
            collect.add((*path, "sources"), f"{source!r} is no source id, such as B-000-01")


def _is_twin(case: Case) -> bool:
    """Whether ``case`` is one valid question; its values may be free."""
    return not isinstance(case.expectation, Rejection | Undefined) and set(case.calls) == {""}
