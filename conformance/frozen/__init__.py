"""Reads the frozen truth of ``spec/truth``: proven values and bounds.

Made by ``conformance freeze``; nothing here computes a right value. A value is kept as the sum of
two doubles, so that an error far below one ulp is still measured.
"""

from conformance.frozen.files import (
    FORMAT,
    FrozenCase,
    FrozenFamily,
    FrozenTensor,
    dotted,
    freeze_again,
    join_key,
    read_family,
    split_key,
)
from conformance.frozen.proven import CaseTruth, Proven, thaw, thaw_output
from conformance.frozen.truth import Truth

__all__ = [
    "FORMAT",
    "CaseTruth",
    "FrozenCase",
    "FrozenFamily",
    "FrozenTensor",
    "Proven",
    "Truth",
    "dotted",
    "freeze_again",
    "join_key",
    "read_family",
    "split_key",
    "thaw",
    "thaw_output",
]
