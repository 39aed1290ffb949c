"""NumPy's basic slices, written as text, on exact tensors: ``"x[:, 2:]"``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TypeAlias

from conformance.model import Number, Tensor
from conformance.specification.tensors import Malformed

Index: TypeAlias = tuple[int | slice, ...]

_TARGET = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)(\[.*\])?$")
_STEP = re.compile(r"(-?\d+)?:(-?\d+)?(?::(-?\d+))?$")


def parse_target(text: str) -> tuple[str, Index]:
    """``"x[:, 2:]"`` as the name and the index; a bare name means the whole argument."""
    match = _TARGET.match(text.strip())
    if match is None:
        raise Malformed(f"{text!r} is not a name with an optional slice, as in x[:, 2:]")
    return match[1], parse_index(match[2] or "")


def parse_index(text: str) -> Index:
    """``"[:, 2:]"`` as a tuple of whole numbers and slices; empty text selects everything."""
    inner = text.strip()
    if not inner:
        return ()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise Malformed(f"{text!r} is not a slice in square brackets, as in [:, 2:]")
    return tuple(_parse_part(part.strip(), text) for part in inner[1:-1].split(","))


def _parse_part(part: str, text: str) -> int | slice:
    if re.match(r"-?\d+$", part):
        return int(part)
    match = _STEP.match(part)
    if match is None:
        raise Malformed(f"{part!r} in {text!r} is neither a whole number nor start:stop:step")
    part_ = slice(*(int(group) if group else None for group in match.groups()))
    if part_.step == 0:
        raise Malformed(f"{part!r} in {text!r} has a step of 0")
    return part_


def assign(target: Tensor, index: Index, value: Tensor) -> Tensor:
    """A copy of ``target`` with the elements at ``index`` set to ``value``.

    ``value`` has rank 0, or exactly the shape that the index selects. Raises Malformed otherwise.
    """
    positions, selected = _positions(target.shape, index)
    if value.shape not in ((), selected):
        raise Malformed(f"shape {list(value.shape)} where the slice has {list(selected)}")
    data = list(target.data)
    source: Sequence[Number] = value.data * len(positions) if value.shape == () else value.data
    for position, number in zip(positions, source, strict=True):
        data[position] = number
    return Tensor(shape=target.shape, data=tuple(data), dtype=target.dtype)


def _positions(shape: tuple[int, ...], index: Index) -> tuple[list[int], tuple[int, ...]]:
    """Flat positions that ``index`` selects, in row-major order, and the shape they form."""
    if len(index) > len(shape):
        raise Malformed(f"{len(index)} indices for a tensor of shape {list(shape)}")
    axes: list[list[int]] = []
    selected: list[int] = []
    for axis, size in enumerate(shape):
        part = index[axis] if axis < len(index) else slice(None)
        if isinstance(part, int):
            if not -size <= part < size:
                raise Malformed(f"index {part} on an axis of {size}")
            axes.append([part % size])
        else:
            axes.append(list(range(size))[part])
            selected.append(len(axes[-1]))
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    positions = [
        sum(place * stride for place, stride in zip(places, strides, strict=True))
        for places in itertools.product(*axes)
    ]
    return positions, tuple(selected)
