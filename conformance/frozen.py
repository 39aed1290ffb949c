"""Reads the frozen truth of ``spec/truth``: proven values and bounds, as the judge needs them.

Made by ``conformance freeze``; nothing here computes a right value. A value is kept as the sum of
two doubles, so that an error far below one ulp is still measured.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from conformance.errors import Problem, SpecificationError
from conformance.model import Case

FORMAT = "conformance-truth/1"


class FrozenTensor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Decimals with 25 proven digits, row-major, or whole numbers of ``dtype``.

    None at all: the values are free.
    """

    shape: tuple[int, ...]
    data: tuple[str, ...]
    dtype: Literal["real", "int64", "uint64"] = "real"


class FrozenCase(msgspec.Struct, frozen=True):
    """The truth of one case, by ``output`` or ``call:output``; a bound of None is no verdict.

    ``digest`` is that of the questions the truth was proven for.
    """

    digest: str
    values: dict[str, FrozenTensor]
    bounds: dict[str, dict[str, tuple[float | None, ...]]]


class FrozenFamily(msgspec.Struct, frozen=True):
    """One file of ``spec/truth``. ``kills``: fault -> dtype -> the sharpest (case, D)."""

    format: str
    cases: dict[str, FrozenCase]
    kills: dict[str, dict[str, tuple[tuple[str, float], ...]]] = {}


class Proven:
    """The proven values of one output: ``high + low``, the decimal ``text``, the ``bounds``.

    ``dtype`` is ``real`` or that of whole numbers, whose bounds are zero. What is ``free`` has a
    shape and no values; relations between free outputs allow nothing, so its bounds are zero too.
    """

    def __init__(
        self, frozen: FrozenTensor, bounds: Mapping[str, tuple[float | None, ...]]
    ) -> None:
        self.dtype = frozen.dtype
        self.free = not frozen.data and 0 not in frozen.shape
        if self.free:
            self._allow_nothing(frozen.shape, bounds)
            return
        self.shape = frozen.shape
        self.text = np.array(frozen.data, dtype=object).reshape(frozen.shape)
        self.high = _doubles(map(float, frozen.data), frozen.shape)
        self.bounds = {
            dtype: _doubles((math.inf if b is None else b for b in row), frozen.shape)
            for dtype, row in bounds.items()
        }

    def _allow_nothing(self, shape: tuple[int, ...], dtypes: Iterable[str]) -> None:
        self.shape = shape
        self.text = np.full(shape, "free", dtype=object)
        self.high = np.zeros(shape)
        self.bounds = {dtype: np.zeros(shape) for dtype in dtypes}

    @cached_property
    def low(self) -> np.ndarray:
        """What the values are beyond ``high``, as doubles."""
        if self.free:
            return np.zeros(self.shape)
        pairs = zip(self.text.reshape(-1), self.high.reshape(-1).tolist(), strict=True)
        return _doubles((float(Decimal(t) - Decimal(high)) for t, high in pairs), self.shape)

    def error(self, got: np.ndarray) -> np.ndarray:
        """How far ``got``, of the same shape, is from the values, to far below one ulp."""
        if self.dtype == "real":
            return np.asarray(np.abs((got.astype(np.float64) - self.high) - self.low))
        pairs = zip(got.reshape(-1).tolist(), self.text.reshape(-1), strict=True)
        differences = [abs(int(number) - int(text)) for number, text in pairs]
        return np.array(differences, dtype=np.float64).reshape(self.shape)


def _doubles(numbers: Iterable[float], shape: tuple[int, ...]) -> np.ndarray:
    """``numbers``, which must be as many as ``shape`` has elements, as an array."""
    return np.array(list(numbers), dtype=np.float64).reshape(shape)


#: By (call, output).
CaseTruth = Mapping[tuple[str, str], Proven]


class Truth:
    """The frozen truth of a folder, read a family at a time when first asked for."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is ``spec/truth`` or a copy of it."""
        self.folder = folder
        self._families: dict[str, FrozenFamily] = {}
        self._latest: tuple[str, CaseTruth] = (
            "",
            {},
        )  # a case is judged in one dtype after another

    def family(self, name: str) -> FrozenFamily:
        """The frozen family ``name``; empty where it was never frozen.

        Raises SpecificationError where the file can't be read as truth.
        """
        if name not in self._families:
            self._families[name] = read_family(self.folder / f"{name}.json")
        return self._families[name]

    def of(self, case: Case) -> CaseTruth:
        """The proven values of ``case``.

        Raises SpecificationError where there are none, or where they are of another question.
        """
        if self._latest[0] == case.id:
            return self._latest[1]
        frozen = self.family(case.family).cases.get(case.id)
        hint = "run `conformance freeze`"
        if frozen is None:
            message = f"no truth is frozen for this case: {hint}"
            raise SpecificationError([Problem(case.file, case.line, case.id, message)])
        if frozen.digest != question_digest(case):
            message = f"what it asks has changed since its truth was frozen: {hint}"
            raise SpecificationError([Problem(case.file, case.line, case.id, message)])
        if not set(case.dtypes) <= frozen.bounds.keys():
            message = f"its frozen bounds are of other dtypes: {hint}"
            raise SpecificationError([Problem(case.file, case.line, case.id, message)])
        try:
            truth = {
                split_key(key): Proven(
                    value, {dtype: rows.get(key, ()) for dtype, rows in frozen.bounds.items()}
                )
                for key, value in frozen.values.items()
            }
        except (ArithmeticError, LookupError, ValueError):  # no freeze has written it so
            message = f"its frozen values and bounds do not fit together: {hint}"
            raise SpecificationError([Problem(case.file, case.line, case.id, message)]) from None
        self._latest = (case.id, truth)
        return truth


def read_family(path: Path) -> FrozenFamily:
    """The family in the file ``path``; empty where there is no file."""
    if not path.exists():
        return FrozenFamily(FORMAT, {})
    try:
        family = msgspec.json.decode(path.read_bytes(), type=FrozenFamily)
    except msgspec.MsgspecError as error:
        message = f"can't be read as frozen truth: {error}: run `conformance freeze`"
        raise SpecificationError(
            [Problem(f"{path.parent.parent.name}/truth/{path.name}", 0, "", message)]
        ) from None
    if family.format != FORMAT:
        message = f"has format {family.format!r}, not {FORMAT!r}: run `conformance freeze`"
        raise SpecificationError(
            [Problem(f"{path.parent.parent.name}/truth/{path.name}", 0, "", message)]
        )
    return family


def question_digest(case: Case) -> str:
    """A digest of everything a case asks, and of nothing that it only says."""
    asked = msgspec.json.encode([case.operation, case.mode, case.calls, case.dtypes])
    return hashlib.sha256(asked).hexdigest()[:16]


def join_key(call: str, output: str) -> str:
    """``("a", "y")`` as ``a:y``; the only call of a case has no name."""
    return f"{call}:{output}" if call else output


def split_key(key: str) -> tuple[str, str]:
    """The inverse of ``join_key``; the name of a parameter has dots in it, none has a colon."""
    call, colon, output = key.partition(":")
    return (call, output) if colon else ("", call)


def dotted(call: str, output: str) -> str:
    """``("a", "y")`` as people write it: ``a.y``."""
    return f"{call}.{output}" if call else output
