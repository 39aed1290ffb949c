"""Mistakes about where the numbers of an array lie in memory; the arithmetic is right.

They show in questions whose arrays are not contiguous, and nowhere else.
"""

from __future__ import annotations

from conformance.questions.strides import read_from_start, read_without_offset, read_without_strides
from conformance.truth.faults import Fault


class StridesIgnored(Fault):
    """Arrays were read in the order of memory, as if nothing lay between their elements."""

    breaks = "ARG-LAYOUT"
    mend = "Step by the strides of the array, or make a contiguous copy before taking its memory."
    reads = read_without_strides


class StorageReadFromStart(Fault):
    """Arrays were read from the start of the buffer they are a part of, strides and all ignored."""

    breaks = "ARG-LAYOUT"
    mend = "Begin at the first element of the array, not at that of its buffer; mind the strides."
    reads = read_from_start


class OffsetIgnored(Fault):
    """Arrays were read in the right steps, but from the start of the buffer they are a part of."""

    breaks = "ARG-LAYOUT"
    mend = "Add the offset of the first element to where the buffer starts."
    reads = read_without_offset
