"""How the numbers of a question lie in memory, and which of them careless code would read.

A shape says nothing of strides: a transposed array is read down its columns, a slice of another
one has numbers between its own, or between its rows, that are none of its. Questions come in each
of these layouts, so that code which takes memory for the array is found.
"""

from __future__ import annotations

import math
from typing import get_args

import numpy as np

from conformance.model import Layout

#: What lies before, between and after the numbers of a sliced array: far from anything given.
GAP = 1000

LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def of_place(layout: Layout, place: int) -> Layout:
    """The layout of the argument at ``place``: of mixed ones every second is transposed."""
    if layout != "mixed":
        return layout
    return "transposed" if place % 2 else "contiguous"


def laid_out(array: np.ndarray, layout: Layout) -> np.ndarray:
    """A copy of ``array`` in the given layout: the same dtype, shape and numbers.

    ``contiguous`` has the last axis fastest and nothing in between; ``transposed`` the first axis
    fastest; ``sliced`` is every second element, from the second one on, of a larger buffer;
    ``padded`` has rows without gaps, and something between the rows, as a part of each row of a
    larger array has.
    """
    if layout == "transposed":
        return array.copy(order="F")
    if layout == "sliced":
        buffer = np.full(2 * array.size + 1, GAP, dtype=array.dtype)
        view = buffer[1::2].reshape(array.shape)  # of equal steps, hence no copy
        view[...] = array
        return view
    if layout == "padded" and array.ndim:
        return _wider(array, GAP)[..., 1:-1]
    return array.copy(order="C")


def read_without_strides(shape: tuple[int, ...], layout: Layout) -> np.ndarray:
    """Which elements, by their place in row-major order, are found where none are skipped: in
    memory from the first element on, as if nothing lay in between. -1 is none of them.
    """
    return _memory(shape, layout, start=1).reshape(shape)


def read_from_start(shape: tuple[int, ...], layout: Layout) -> np.ndarray:
    """As ``read_without_strides``, from where the buffer starts and not from the first element."""
    return _memory(shape, layout, start=0).reshape(shape)


def read_without_offset(shape: tuple[int, ...], layout: Layout) -> np.ndarray:
    """Which elements are found in the right steps from where the buffer starts."""
    own = np.arange(math.prod(shape)).reshape(shape)
    if layout == "padded" and shape:
        return _wider(own, -1)[..., :-2]
    return np.full(shape, -1) if layout == "sliced" else own


def _memory(shape: tuple[int, ...], layout: Layout, start: int) -> np.ndarray:
    """As many places as ``shape`` has, in the order of memory."""
    own = np.arange(math.prod(shape))
    if layout == "transposed":
        return own.reshape(shape).ravel(order="F")
    if layout == "sliced":
        buffer = np.full(2 * own.size + 1, -1)
        buffer[1::2] = own
        return buffer[start : start + own.size]
    if layout == "padded" and shape:
        return _wider(own.reshape(shape), -1).reshape(-1)[start : start + own.size]
    return own


def _wider(array: np.ndarray, gap: int) -> np.ndarray:
    """A buffer with the rows of ``array`` in it, and one ``gap`` before and after each of them."""
    buffer = np.full((*array.shape[:-1], array.shape[-1] + 2), gap, dtype=array.dtype)
    buffer[..., 1:-1] = array
    return buffer
