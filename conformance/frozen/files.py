"""The files of ``spec/truth``, as ``conformance freeze`` writes them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

import msgspec

from conformance.errors import Problem, SpecificationError
from conformance.layout import SPEC

FORMAT = "conformance-truth/1"


class FrozenTensor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Decimals with 25 proven digits, row-major, or whole numbers of ``dtype``.

    None at all: the values are free.
    """

    shape: tuple[int, ...]
    data: tuple[str, ...]
    dtype: Literal["real", "int64", "uint64"] = "real"

    @property
    def free(self) -> bool:
        """Whether there are no values, though there is room for some."""
        return not self.data and 0 not in self.shape


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


def read_family(path: Path) -> FrozenFamily:
    """The family in the file ``path``; empty where there is no file."""
    if not path.exists():
        return FrozenFamily(FORMAT, {})
    again = freeze_again(path.parent.parent)
    try:
        family = msgspec.json.decode(path.read_bytes(), type=FrozenFamily)
    except msgspec.MsgspecError as error:
        message = f"can't be read as frozen truth: {error}: {again}"
        raise SpecificationError(
            [Problem(f"{path.parent.parent.name}/truth/{path.name}", 0, "", message)]
        ) from None
    if family.format != FORMAT:
        message = f"has format {family.format!r}, not {FORMAT!r}: {again}"
        raise SpecificationError(
            [Problem(f"{path.parent.parent.name}/truth/{path.name}", 0, "", message)]
        )
    return family


def freeze_again(spec: Path) -> str:
    """What to do where the truth of the specification in the folder ``spec`` is not its own."""
    where = "" if spec.resolve() == SPEC.resolve() else f" --spec {shlex.quote(str(spec))}"
    return f"run `conformance freeze{where}`"


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
