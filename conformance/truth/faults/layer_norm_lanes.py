"""Statistics of layer normalisation over lanes: the features, padded to a multiple of a width.

A vector unit takes four, eight or sixteen numbers at once. Where the last ones are padding they
are no features, and don't count.
"""

from __future__ import annotations

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.reference import Reference

_MEND = "Divide by the number of features, and leave padded lanes out of the sum of squares."


class _Counted(Reference):
    """Both sums are right, and are divided by the number of lanes."""

    lanes: int

    def mean(self, x: Node) -> Node:
        return x.sum(-1, keepdims=True) / _padded(x, self.lanes)

    def variance(self, centred: Node) -> Node:
        return (centred * centred).sum(-1, keepdims=True) / _padded(centred, self.lanes)


class _Squared(_Counted):
    """The zeros in the padded lanes are features: less the mean, they are squared as well."""

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        mean = self.mean(x)
        padding = _padded(x, self.lanes) - x.shape[-1]
        variance = self.variance(x - mean) + padding * (mean * mean) / _padded(x, self.lanes)
        return self.affine((x - mean) / self.root(variance, eps), gamma, beta)


def _padded(x: Node, lanes: int) -> int:
    return -(-x.shape[-1] // lanes) * lanes


class _SquaredInFour(_Squared):
    lanes = 4


class PaddedToFour(_Counted, Fault):
    """Mean and variance were divided by the width rounded up to a multiple of four."""

    breaks = "LN-POPULATION-VARIANCE"
    also = ("LN-MEAN",)
    mend = _MEND
    other_ways = (_SquaredInFour,)
    lanes = 4


class _SquaredInEight(_Squared):
    lanes = 8


class PaddedToEight(_Counted, Fault):
    """Mean and variance were divided by the width rounded up to a multiple of eight."""

    breaks = "LN-POPULATION-VARIANCE"
    also = ("LN-MEAN",)
    mend = _MEND
    other_ways = (_SquaredInEight,)
    lanes = 8


class _SquaredInSixteen(_Squared):
    lanes = 16


class PaddedToSixteen(_Counted, Fault):
    """Mean and variance were divided by the width rounded up to a multiple of sixteen."""

    breaks = "LN-POPULATION-VARIANCE"
    also = ("LN-MEAN",)
    mend = _MEND
    other_ways = (_SquaredInSixteen,)
    lanes = 16
