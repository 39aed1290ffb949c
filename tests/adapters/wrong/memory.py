"""Implementations that take memory for the array, written with NumPy's view of a raw buffer."""

from __future__ import annotations

from numpy.lib.stride_tricks import as_strided

from conformance.backends.numpy import NumpyBackend


def buffer_of(array):
    """All the memory that the array is a part of, in order, and where in it the array begins."""
    owner = array
    while owner.base is not None:
        owner = owner.base
    memory = owner.ravel(order="K")
    place = array.ctypes.data - owner.ctypes.data
    return memory, place // array.itemsize


class Raw(NumpyBackend):
    """Takes each array for what its memory holds, before anything is computed."""

    def to_native(self, array):
        return self.taken(array).astype(array.dtype) if array.size else array


class CountsOnContiguousArrays(Raw):
    """A kernel that is handed a pointer to the first element, and the sizes."""

    fault = "strides-ignored"

    def taken(self, array):
        memory, first = buffer_of(array)
        return memory[first : first + array.size].reshape(array.shape)


class TakesTheStorage(Raw):
    """A kernel that is handed the storage of the array, and the sizes."""

    fault = "storage-read-from-start"

    def taken(self, array):
        return buffer_of(array)[0][: array.size].reshape(array.shape)


class LosesTheOffset(Raw):
    """A kernel that is handed the storage, the sizes and the strides."""

    fault = "offset-ignored"

    def taken(self, array):
        return as_strided(buffer_of(array)[0], array.shape, array.strides).copy()
