"""What the documents require, and the fixtures and facts that show it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property

import msgspec

from conformance.model.expectations import Expectation
from conformance.model.operations import Layout, Mode, Operation
from conformance.model.tensors import Given, Parameters, Tensor
from conformance.precision import Dtype


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """One normative statement. ``decision`` says why, where the documents are silent or disagree.

    ``unseparated`` says why no fault breaks it, for a clause that none can.
    """

    id: str
    text: str
    document: str
    section: str
    sources: tuple[str, ...] = ()
    decision: str | None = None
    unseparated: str | None = None
    file: str = ""
    line: int = 0


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What one question of a case is made from, in exact numbers.

    ``wrt`` names arguments, and parameters by their own names; ``outputs`` the outputs asked for
    where they are not all.
    """

    given: dict[str, Given]
    outputs: tuple[str, ...] = ()
    upstream: dict[str, Tensor] = {}
    wrt: tuple[str, ...] = ()

    def differentiable(self, operation: Operation) -> tuple[str, ...]:
        """Everything given that has a gradient, in the order of the operation's arguments."""
        names: list[str] = []
        for name in operation.differentiable:
            value = self.given.get(name)
            if isinstance(value, Parameters):
                names += value.tensors
            elif value is not None:
                names.append(name)
        return tuple(names)


class Case(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One fixture. A case with a single call names it ``""``.

    ``free`` says why its values are not determined, or not to within a bound: its relations alone
    are judged then, without any allowance.
    """

    id: str
    title: str
    operation: str
    mode: Mode
    clauses: tuple[str, ...]
    sources: tuple[str, ...]
    calls: dict[str, Call]
    expectation: Expectation
    dtypes: tuple[Dtype, ...]
    layout: Layout = "contiguous"
    derived: str | None = None
    degenerate: str | None = None
    free: str | None = None
    file: str = ""
    line: int = 0

    @property
    def family(self) -> str:
        """The folder under ``spec/cases``, which is the first part of the id."""
        return self.id.partition("/")[0]

    @cached_property
    def question_digest(self) -> str:
        """A digest of everything the case asks, and of nothing that it only says."""
        asked = msgspec.json.encode([self.operation, self.mode, self.calls, self.dtypes])
        return hashlib.sha256(asked).hexdigest()[:16]

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor of its calls, given or upstream."""
        for call in self.calls.values():
            for value in (*call.given.values(), *call.upstream.values()):
                if isinstance(value, Tensor):
                    yield value
                elif isinstance(value, Parameters):
                    yield from value.tensors.values()


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A statement about the mathematics alone; ``case`` holds its calls and its claim.

    ``fault`` computes the values as a known mistake would (a wrong value that a document prints);
    ``central_difference`` claims that differences at ``step`` agree with the gradient.
    """

    case: Case
    fault: str | None = None
    central_difference: CentralDifference | None = None


class CentralDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Central differences at ``step`` in ``dtype`` lie ``within`` of the gradient everywhere."""

    step: Decimal
    within: Decimal
    dtype: Dtype = "float64"


class Erratum(msgspec.Struct, frozen=True, kw_only=True):
    """A figure or statement of a document that is wrong, and the reading used instead."""

    id: str
    document: str
    where: str
    printed: str
    right: str
    reason: str
    kind: str
    cases: tuple[str, ...] = ()
