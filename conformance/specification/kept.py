"""The cases of a specification that was read before: each is decoded when it is asked for.

Cases are nine tenths of what is kept, and a command that shows one of them pays for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

import msgspec

from conformance.model import Case, Clause, Erratum, Fact, Operation, Tensor

__all__ = ["Kept", "KeptCase", "KeptCases", "Outline"]


class Due(msgspec.Struct, frozen=True):
    """Of an expectation, which kind it is: the tag that it is encoded with."""

    type: str


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """Of a case, what a list shows."""

    id: str
    operation: str
    mode: str
    title: str
    expectation: Due

    @classmethod
    def of(cls, case: Case) -> Self:
        """The outline of ``case``."""
        return cls(
            id=case.id,
            operation=case.operation,
            mode=case.mode,
            title=case.title,
            expectation=Due(type(case.expectation).__name__),
        )


class KeptCase(msgspec.Struct, frozen=True):
    """A case as the bytes it was encoded to, and what is slow to find of it.

    ``doubles`` are those of its real tensors, one after the other, as bytes.
    """

    encoded: msgspec.Raw
    question_digest: str
    doubles: bytes

    @classmethod
    def of(cls, case: Case) -> Self:
        """What is kept of ``case``. Raises OverflowError where it can't be."""
        doubles = b"".join(tensor.doubles for tensor in _real(case))
        return cls(msgspec.Raw(msgspec.msgpack.encode(case)), case.question_digest, doubles)

    def case(self) -> Case:
        """The case again."""
        case = msgspec.msgpack.decode(self.encoded, type=Case)
        case.__dict__["question_digest"] = self.question_digest
        start = 0
        for tensor in _real(case):
            end = start + 8 * len(tensor.data)
            tensor.__dict__["doubles"] = self.doubles[start:end]
            start = end
        return case


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in the cache: a Specification without its root."""

    operations: dict[str, Operation]
    clauses: dict[str, Clause]
    cases: dict[str, KeptCase]
    facts: dict[str, Fact]
    errata: dict[str, Erratum]
    retired: dict[str, str]


class KeptCases(Mapping[str, Case]):
    """Cases by id, in the order of the files; equal to a dict of the same cases."""

    def __init__(self, kept: Mapping[str, KeptCase]) -> None:
        self._kept = kept
        self._decoded: dict[str, Case] = {}

    def __getitem__(self, case_id: str) -> Case:
        if case_id not in self._decoded:
            self._decoded[case_id] = self._kept[case_id].case()
        return self._decoded[case_id]

    def outline(self, case_id: str) -> Outline:
        """The outline of a case, which is not decoded for it."""
        return msgspec.msgpack.decode(self._kept[case_id].encoded, type=Outline)

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._kept

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _real(case: Case) -> Iterator[Tensor]:
    """The tensors that are asked as floating-point numbers."""
    return (tensor for tensor in case.tensors() if tensor.dtype in {"real", "float64", "float32"})
