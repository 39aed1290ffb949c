"""Exact tensors from what a fixture writes: nested lists, explicit tensors, and fills.

A fill draws dyadic rationals, exact in every dtype, from SplitMix64 (Steele, Lea and Flood,
"Fast splittable pseudorandom number generators", OOPSLA 2014), so that any language can repeat it
in a dozen lines. ``spec/README.md`` has test vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext
from fractions import Fraction
from typing import Any, TypeGuard, get_args

from conformance.model import MOST_NUMBERS, Number, Tensor, TensorDtype

TENSOR_DTYPES: tuple[TensorDtype, ...] = get_args(TensorDtype)

_MASK = (1 << 64) - 1

#: Enough digits for the numbers of every dtype; an error where they are not.
_EXACT = Context(prec=1200, traps=[Inexact, InvalidOperation])

_WHOLE = {"int64": (-(2**63), 2**63 - 1), "int32": (-(2**31), 2**31 - 1), "bool": (0, 1)}


class Malformed(Exception):
    """A value is no tensor; ``path`` leads from the value to the fault."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


def splitmix64(seed: int) -> Iterator[int]:
    """The 64-bit outputs of SplitMix64 from the state ``seed``."""
    state = seed & _MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        yield z ^ (z >> 31)


def fill(seed: int, shape: tuple[int, ...], scale: Number = 1, offset: Number = 0) -> Tensor:
    """A tensor of ``offset + scale * k / 64`` with k odd, from -63 to 63, so never at the centre.

    The six top bits of each draw z choose k = 2 (z >> 58) - 63.
    """
    draws = splitmix64(seed)
    count = math.prod(shape)
    with localcontext(_EXACT):
        step = Decimal(scale) / 64
        data = tuple(offset + (2 * (next(draws) >> 58) - 63) * step for _ in range(count))
    return Tensor(shape=shape, data=data)


def tensor(value: Any) -> Tensor:
    """The tensor that ``value``, a nested list or a mapping of a fixture, stands for.

    Raises Malformed where it is ragged, empty without a shape, or has an unknown key.
    """
    if isinstance(value, list):
        shape: list[int] = []
        data: list[Number] = []
        _walk(value, 0, shape, data, ())
        return Tensor(shape=tuple(shape), data=tuple(data))
    if isinstance(value, dict):
        return _filled(value["fill"]) if set(value) == {"fill"} else _explicit(value)
    if is_number(value):
        return Tensor(shape=(), data=(value,))
    raise Malformed(f"expected numbers, got {type(value).__name__} {value!r}")


def is_number(value: Any) -> TypeGuard[Number]:
    """Whether ``value`` is an exact number (a flag is not)."""
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def is_dyadic(number: Number) -> bool:
    """Whether ``number`` is a whole number over a power of two, of a size that dtypes have."""
    if number and not -400 < Decimal(number).adjusted() < 400:
        return False
    denominator = Fraction(number).denominator
    return denominator & (denominator - 1) == 0


def _walk(
    value: list[Any], depth: int, shape: list[int], data: list[Number], path: tuple[int, ...]
) -> None:
    if not value:
        raise Malformed("an empty list has no shape: write {shape: [...], data: []}", *path)
    if depth == len(shape):
        if data:
            raise Malformed("ragged: a list where the rows before have a number", *path)
        shape.append(len(value))
    elif shape[depth] != len(value):
        raise Malformed(f"ragged: {len(value)} entries, the rows before have {shape[depth]}", *path)
    for position, item in enumerate(value):
        here = (*path, position)
        if isinstance(item, list):
            _walk(item, depth + 1, shape, data, here)
        elif not is_number(item):
            raise Malformed(f"expected a number, got {type(item).__name__} {item!r}", *here)
        elif depth + 1 != len(shape):
            raise Malformed("ragged: a number where the rows before have a list", *here)
        else:
            data.append(item)


def _explicit(value: dict[str, Any]) -> Tensor:
    unknown = set(value) - {"dtype", "shape", "data"}
    if unknown or not {"shape", "data"} <= set(value):
        raise Malformed("a tensor is a list, {shape, data} with an optional dtype, or {fill: …}")
    shape = _shape(value["shape"], "shape")
    dtype = value.get("dtype", "real")
    if dtype not in TENSOR_DTYPES:
        raise Malformed(f"unknown dtype {dtype!r}; one of {', '.join(TENSOR_DTYPES)}", "dtype")
    data = value["data"]
    if not isinstance(data, list) or not all(is_number(item) for item in data):
        raise Malformed("data is a flat list of numbers, the last axis fastest", "data")
    if dtype in _WHOLE:
        low, high = _WHOLE[dtype]
        if not all(isinstance(item, int) and low <= item <= high for item in data):
            raise Malformed(f"{dtype} has whole numbers from {low} to {high}", "data")
    if len(data) != math.prod(shape):
        needed = math.prod(shape)
        raise Malformed(
            f"{len(data)} numbers for shape {list(shape)}, which needs {needed}", "data"
        )
    return Tensor(shape=shape, data=tuple(data), dtype=dtype)


def _filled(value: Any) -> Tensor:
    if not isinstance(value, dict) or not {"seed", "shape"} <= set(value):
        raise Malformed("a fill is {seed, shape} with an optional scale and offset", "fill")
    unknown = set(value) - {"seed", "shape", "scale", "offset"}
    if unknown:
        raise Malformed(f"unknown key {min(unknown)!r}", "fill", min(unknown))
    if not isinstance(value["seed"], int) or isinstance(value["seed"], bool) or value["seed"] < 0:
        raise Malformed("the seed is a whole number, not negative", "fill", "seed")
    for name in ("scale", "offset"):
        if not is_number(value.get(name, 0)):
            raise Malformed(f"{name} is a number", "fill", name)
        if not is_dyadic(value.get(name, 0)):
            raise Malformed(f"{name} is a binary fraction, so that all is exact", "fill", name)
    shape = _shape(value["shape"], "fill", "shape")
    return fill(value["seed"], shape, value.get("scale", 1), value.get("offset", 0))


def _shape(value: Any, *path: str) -> tuple[int, ...]:
    whole = isinstance(value, list) and all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in value
    )
    if not whole:
        raise Malformed("a shape is a list of whole numbers, not negative", *path)
    if math.prod(value) > MOST_NUMBERS:
        raise Malformed(f"no question has more than {MOST_NUMBERS} numbers", *path)
    return tuple(value)
