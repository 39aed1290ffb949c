"""Arrays as JSON has them: a dtype, a shape, and numbers row by row, or the bytes of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from conformance.harness.wording import tame
from conformance.model import MOST_NUMBERS

_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

#: The dtypes whose values travel, by the character that NumPy has for each; ``name`` is slow.
_BY_CHARACTER = {each: np.dtype(each).name for each in np.typecodes["AllInteger"] + "?efd"}
NUMBERS = frozenset(_BY_CHARACTER.values())

#: What may stand in the data of an array of a kind; any other would be changed on the way in.
_TYPES: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {float, int, str}}

#: Other dtypes that are believed: NumPy would make an array of any size out of some names.
_OTHER = re.compile(r"[<>|]?[A-Za-z]+[0-9]{0,3}(\[[0-9A-Za-z]+\])?")


class Array(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An array in JSON: as many numbers as its shape has places, or their bytes in base64.

    ``dtype`` is ``bool``, ``int8`` to ``int64``, ``uint8`` to ``uint64`` or ``float16`` to
    ``float64``. Under any other name, which is wrong for every answer, there is no data. The bytes
    are little-endian, a number after the other.
    """

    dtype: str
    shape: list[Annotated[int, msgspec.Meta(ge=0)]]
    data: list[bool | int | float | Literal["NaN", "Infinity", "-Infinity"]] | bytes


def number_name(dtype: np.dtype[Any]) -> str | None:
    """The name of a dtype whose values travel, in whatever byte order; None for any other."""
    return _BY_CHARACTER.get(dtype.char)


def pack(value: np.ndarray, *, as_bytes: bool = False) -> Array:
    """An array as numbers, or as their bytes, which takes a fraction of the time.

    What has no numbers (objects, complex) keeps dtype and shape alone.
    """
    name = number_name(value.dtype)
    if name is None:
        return Array(dtype=str(value.dtype), shape=list(value.shape), data=[])
    if as_bytes:
        data = np.asarray(value, value.dtype.newbyteorder("<")).tobytes()
        return Array(dtype=name, shape=list(value.shape), data=data)
    flat = value.reshape(-1)
    numbers: list[Any] = flat.tolist()  # floats of any width as doubles, exactly
    if value.dtype.kind == "f" and not np.isfinite(flat).all():
        numbers = [number if math.isfinite(number) else _name(number) for number in numbers]
    return Array(dtype=name, shape=list(value.shape), data=numbers)


def unpack(array: Array) -> np.ndarray:
    """The array that was packed. Raises ValueError where the parts don't fit together."""
    if array.dtype not in NUMBERS:
        if math.prod(array.shape) > MOST_NUMBERS:
            raise ValueError(f"an array of the shape {array.shape}")
        return blank(_other(array.dtype), array.shape)
    dtype = np.dtype(array.dtype)
    try:
        if isinstance(array.data, bytes):
            return _read(array.data, dtype).reshape(array.shape)
        return _written(array.data, dtype).reshape(array.shape)
    except OverflowError as error:  # an integer too large for its dtype, or a length, is none
        raise ValueError(str(error)) from None


def _written(data: list[Any], dtype: np.dtype[Any]) -> np.ndarray:
    """The array of so many numbers."""
    types = set(map(type, data))
    if not types <= _TYPES[dtype.kind]:
        raise ValueError(f"an array of {dtype} with something else in it")
    if str in types:
        data = [_NAMES[item] if isinstance(item, str) else item for item in data]
    with np.errstate(over="ignore"):  # a number too large for its dtype is infinite there
        return np.array(data, dtype=dtype)


def _read(data: bytes, dtype: np.dtype[Any]) -> np.ndarray:
    """The array of so many bytes; nobody can write into it."""
    if dtype.kind == "b" and data.strip(b"\0\1"):
        raise ValueError(f"an array of {dtype} with something else in it")
    return np.frombuffer(data, dtype.newbyteorder("<"))


def blank(dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray:
    """An array that has a dtype and a shape, and no values: one item stands for all of them."""
    return np.broadcast_to(np.empty((), dtype=dtype), tuple(shape))


def _other(name: str) -> np.dtype[Any]:
    """A dtype without numbers that the judge understands."""
    try:
        dtype = np.dtype(name) if _OTHER.fullmatch(name) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.name in NUMBERS:  # f4 is float32, by a name of Python's own
        raise ValueError(f"an array of {tame(name)!r}")
    return dtype


def _name(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
