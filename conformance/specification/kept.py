"""The cases of a specification that was read before: each is decoded when it is asked for.

Cases are nine tenths of what is kept, and a command that shows one of them pays for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from conformance.model import Case, Clause, Erratum, Fact, Operation

__all__ = ["Kept", "KeptCases"]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in the cache: a Specification, its cases as the bytes they were encoded to."""

    root: str
    operations: dict[str, Operation]
    clauses: dict[str, Clause]
    cases: dict[str, msgspec.Raw]
    facts: dict[str, Fact]
    errata: dict[str, Erratum]
    retired: dict[str, str]


class KeptCases(Mapping[str, Case]):
    """Cases by id, in the order of the files; equal to a dict of the same cases."""

    def __init__(self, encoded: Mapping[str, msgspec.Raw]) -> None:
        self._encoded = encoded
        self._decoded: dict[str, Case] = {}

    def __getitem__(self, case_id: str) -> Case:
        if case_id not in self._decoded:
            encoded = self._encoded[case_id]
            self._decoded[case_id] = msgspec.msgpack.decode(encoded, type=Case)
        return self._decoded[case_id]

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._encoded

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)
