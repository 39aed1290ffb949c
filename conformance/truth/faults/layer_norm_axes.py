"""Statistics of layer normalisation over other axes than the features of one position.

Each leaves alone what has no such axis: an input of rank one has no positions to mix.
"""

from __future__ import annotations

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import average
from conformance.truth.reference import Reference


class StatisticsOverTime(Fault):
    """Mean and variance ran over the positions of a sequence, feature by feature."""

    breaks = "LN-LAST-AXIS"
    sources = ("C-05", "BUG-LN-11")
    mend = "Take mean and variance over the last axis of each position."

    def mean(self, x: Node) -> Node:
        return average(x, (-2 if x.ndim > 1 else -1,))

    def variance(self, centred: Node) -> Node:
        return self.mean(centred * centred)


class StatisticsOverSequence(Fault):
    """Mean and variance ran over all positions and features of a sequence together."""

    breaks = "LN-LAST-AXIS"
    sources = ("C-06", "BUG-LN-11")
    mend = "Take mean and variance over the last axis alone, for each position by itself."

    def mean(self, x: Node) -> Node:
        return average(x, (-2, -1) if x.ndim > 1 else (-1,))

    def variance(self, centred: Node) -> Node:
        return self.mean(centred * centred)


class _OverBatchAndFeatures(Reference):
    """Over the features as well: a sequence alone is normalised as it should be."""

    def mean(self, x: Node) -> Node:
        return average(x, (0, -1) if x.ndim > 2 else (-1,))

    def variance(self, centred: Node) -> Node:
        return self.mean(centred * centred)


class StatisticsOverBatch(Fault):
    """Mean and variance ran over the sequences of the batch, position by position."""

    breaks = "LN-LAST-AXIS"
    sources = ("C-07",)
    mend = "Take mean and variance over the last axis of each position."
    other_ways = (_OverBatchAndFeatures,)

    def mean(self, x: Node) -> Node:
        return average(x, (0 if x.ndim > 2 else -1,))

    def variance(self, centred: Node) -> Node:
        return self.mean(centred * centred)


class StatisticsOverAllPositions(Fault):
    """Mean and variance ran over all leading axes, as in batch normalisation."""

    breaks = "LN-LAST-AXIS"
    mend = "Take mean and variance over the last axis of each position."

    def mean(self, x: Node) -> Node:
        return average(x, tuple(range(x.ndim - 1)) or (-1,))

    def variance(self, centred: Node) -> Node:
        return self.mean(centred * centred)


class StatisticsOverEverything(Fault):
    """Mean and variance ran over all elements of the input together."""

    breaks = "LN-LAST-AXIS"
    mend = "Take mean and variance over the last axis alone, for each position by itself."

    def mean(self, x: Node) -> Node:
        return average(x, tuple(range(x.ndim)))

    def variance(self, centred: Node) -> Node:
        return self.mean(centred * centred)
