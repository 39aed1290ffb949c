"""Keeps the truth of a family, as doubles, in the user's cache folder, by the digest of its file.

To turn decimals of 25 digits into pairs of doubles takes longer than to judge an answer by them.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import numpy as np

from conformance.frozen.files import (
    FrozenFamily,
    join_key,
    split_key,
)
from conformance.frozen.proven import CaseTruth, Proven, thaw
from conformance.frozen.truth import Truth
from conformance.model import Case
from conformance.specification import cache

#: The folder in the user's cache, and how many families are kept there: those of four versions.
_ROOM = "truth"
_MOST = 64


class _Output(msgspec.Struct, frozen=True):
    """A FrozenTensor whose decimals are decoded when they are asked for, and what it gives.

    Arrays are the bytes of doubles, row-major.
    """

    shape: tuple[int, ...]
    dtype: str
    free: bool
    encoded: msgspec.Raw
    high: bytes
    low: bytes
    bounds: dict[str, bytes]

    @property
    def data(self) -> tuple[str, ...]:
        """The decimals."""
        return msgspec.msgpack.decode(self.encoded, type=tuple[str, ...])


class _Case(msgspec.Struct, frozen=True):
    """What is frozen of a case, and the digest of the questions it was proven for."""

    digest: str
    outputs: dict[str, _Output]
    dtypes: tuple[str, ...]


class _Family(msgspec.Struct, frozen=True):
    """The cases of a family, each as the bytes of a ``_Case``."""

    cases: dict[str, msgspec.Raw]


class KeptTruth(Truth):
    """The same truth, sooner. What can't be kept is read as it is, each time."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is ``spec/truth`` or a copy of it."""
        super().__init__(folder)
        self._kept: dict[str, _Family] = {}

    def _found(self, case: Case) -> CaseTruth:
        encoded = self._kept_family(case.family).cases.get(case.id)
        if encoded is None:
            return super()._found(case)
        kept = msgspec.msgpack.decode(encoded, type=_Case)
        if kept.digest != case.question_digest or not set(case.dtypes) <= set(kept.dtypes):
            return super()._found(case)  # which says what is wrong
        return {split_key(key): _proven(output) for key, output in kept.outputs.items()}

    def _kept_family(self, name: str) -> _Family:
        if name not in self._kept:
            path = self.folder / f"{name}.json"
            key = cache.digest_of_file(path) if path.is_file() else None
            kept = None if key is None else cache.read(key, _Family, room=_ROOM)
            if kept is None:
                kept = _Family(_encoded(self.family(name)))
                if key is not None:
                    cache.write(key, kept, room=_ROOM, most=_MOST)
            self._kept[name] = kept
        return self._kept[name]


def _encoded(family: FrozenFamily) -> dict[str, msgspec.Raw]:
    """The cases of ``family`` whose parts fit together."""
    cases = {}
    for case_id, frozen in family.cases.items():
        with contextlib.suppress(ArithmeticError, LookupError, ValueError):
            outputs = {
                join_key(*key): _Output(
                    proven.shape,
                    proven.dtype,
                    proven.free,
                    msgspec.Raw(msgspec.msgpack.encode(frozen.values[join_key(*key)].data)),
                    proven.high.tobytes(),
                    proven.low.tobytes(),
                    {dtype: bound.tobytes() for dtype, bound in proven.bounds.items()},
                )
                for key, proven in thaw(frozen).items()
            }
            whole = _Case(frozen.digest, outputs, tuple(frozen.bounds))
            cases[case_id] = msgspec.Raw(msgspec.msgpack.encode(whole))
    return cases


def _proven(kept: _Output) -> Proven:
    shape = kept.shape
    return Proven(
        kept,
        _array(kept.high, shape),
        {dtype: _array(bound, shape) for dtype, bound in kept.bounds.items()},
        _array(kept.low, shape),
    )


def _array(kept: bytes, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(kept, np.float64).reshape(shape)
