"""Mistakes in the values of the linear layer, and of the sums in its gradients."""

from __future__ import annotations

import numpy as np

from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import average
from conformance.truth.reference import Reference

# ------------------------------------------------------------------------------------ the weight


class TransposedWeight(Fault):
    """The weight [in, out] was used as if stored [out, in]."""

    breaks = "LIN-ORIENTATION"
    also = ("FF-ORIENTATION",)
    sources = ("C-25", "BUG-LIN-01")
    mend = "The weight is [in, out]: y = x W + b. A layer that stores [out, in] takes W transposed."

    def product(self, x: Node, weight: Node) -> Node:
        return x @ weight.swap_last()


class WeightReread(Fault):
    """The memory of the weight [in, out] was read again as [out, in] without moving a number."""

    breaks = "LIN-ORIENTATION"
    also = ("FF-ORIENTATION",)
    sources = ("C-25",)
    mend = "Transpose the weight where the layout changes; reshaping leaves the numbers in place."

    def product(self, x: Node, weight: Node) -> Node:
        return x @ weight.reshape((weight.shape[1], weight.shape[0])).swap_last()


class PositionsMixed(Fault):
    """The weight was applied along the positions instead of along the features."""

    breaks = "LIN-POSITIONS"
    sources = ("C-74",)
    mend = "Contract the last axis of the input with the first axis of the weight."

    def product(self, x: Node, weight: Node) -> Node:
        return (x.swap_last() if x.ndim > 1 else x) @ weight


class SequencesMixed(Fault):
    """The input was averaged over the sequences of the batch."""

    breaks = "LIN-POSITIONS"
    mend = "Keep every leading axis: each sequence is projected by itself."

    def product(self, x: Node, weight: Node) -> Node:
        return (average(x, (0,)).broadcast_to(x.shape) if x.ndim > 2 else x) @ weight


# -------------------------------------------------------------------------------------- the bias


class BiasForgotten(Fault):
    """The bias was not added."""

    breaks = "LIN-AFFINE"
    also = ("FF-BIASES",)
    mend = "Add the bias at every position."

    def add_bias(self, y: Node, bias: Node) -> Node:
        return y


class BiasAtFirstPosition(Fault):
    """The bias was added at the first position alone."""

    breaks = "LIN-AFFINE"
    also = ("LIN-POSITIONS",)
    sources = ("C-73",)
    mend = "Add the bias at every position."

    def add_bias(self, y: Node, bias: Node) -> Node:
        first = np.zeros((*y.shape[:-1], 1))
        first[(slice(None),) * (y.ndim - 2) + (slice(1),) * (y.ndim > 1)] = 1.0
        return y + bias * y.tape.floats(first)


class BiasTwice(Fault):
    """The bias was added twice."""

    breaks = "LIN-AFFINE"
    sources = ("C-73",)
    mend = "Add the bias once."

    def add_bias(self, y: Node, bias: Node) -> Node:
        return super().add_bias(super().add_bias(y, bias), bias)


class BiasSubtracted(Fault):
    """The bias was subtracted."""

    breaks = "LIN-AFFINE"
    sources = ("C-73",)
    mend = "Add the bias: y = x W + b."

    def add_bias(self, y: Node, bias: Node) -> Node:
        return y - bias


class BiasOfOnes(Fault):
    """A layer without a bias added one all the same, of ones."""

    breaks = "LIN-BIAS-FREE"
    sources = ("C-73",)
    mend = "Add nothing where no bias is given."

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        ones = weight.tape.floats(np.ones(weight.shape[-1:]))
        return super().linear(x, weight, ones if bias is None else bias)


class _AskedOnceBefore(Reference):
    """By another case, or for a twin: what came then is still in the bias."""

    before = 1

    def add_bias(self, y: Node, bias: Node) -> Node:
        for _ in range(self.before):
            bias = super().add_bias(y.detach(), bias)
        return super().add_bias(y, bias)


class _AskedTwiceBefore(_AskedOnceBefore):
    before = 2


class _AskedThriceBefore(_AskedOnceBefore):
    before = 3


class AccumulatedIntoBias(Fault):
    """The bias was the place to sum in: asked the same again, the layer went on from its result."""

    breaks = "LIN-REPEATABLE"
    sources = ("BUG-LIN-06",)
    mend = "Sum into a place of its own, filled with the bias at every call."
    stateful = True
    other_ways = (_AskedOnceBefore, _AskedTwiceBefore, _AskedThriceBefore)

    def add_bias(self, y: Node, bias: Node) -> Node:
        places: dict[tuple[str, ...], Node] = vars(self).setdefault("_places", {})
        asked = tuple(str(number) for node in (y, bias) for number in node.value.reshape(-1))
        total = y + places.get(asked, bias)
        places[asked] = total
        return total.with_rule((y, bias), lambda g: (g, self.bias_gradient(g)))


# ------------------------------------------------------------- sums over positions, in gradients


class _BiasGradientMean(Reference):
    """The mean as a library has it: over no positions it is NaN."""

    def bias_gradient(self, g: Node) -> Node:
        return g.rows().sum(0) / _count(g)


class BiasGradientAveraged(Fault):
    """The bias gradient was averaged over the positions instead of summed."""

    breaks = "LIN-GRAD-SUM"
    also = ("LIN-GRAD-BIAS",)
    sources = ("C-69", "BUG-LIN-02")
    mend = "Sum the upstream gradient over all positions, without dividing by their number."
    other_ways = (_BiasGradientMean,)

    def bias_gradient(self, g: Node) -> Node:
        return g.rows().sum(0) / _positions(g)


class _WeightGradientMean(Reference):
    """Divided by the number of positions, which may be zero."""

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(x, g) / _count(g)


class WeightGradientAveraged(Fault):
    """The weight gradient was averaged over the positions instead of summed."""

    breaks = "LIN-GRAD-SUM"
    also = ("LIN-GRAD-WEIGHT",)
    sources = ("C-69",)
    mend = "Sum the contributions of all positions, without dividing by their number."
    other_ways = (_WeightGradientMean,)

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(x, g) / _positions(g)


class _GradientsMean(_WeightGradientMean, _BiasGradientMean):
    """Both of the two."""


class GradientsAveraged(Fault):
    """The gradients of weight and bias were averaged over the positions instead of summed."""

    breaks = "LIN-GRAD-SUM"
    also = ("LIN-GRAD-WEIGHT", "LIN-GRAD-BIAS")
    sources = ("C-69",)
    mend = "Sum the contributions of all positions, without dividing by their number."
    other_ways = (_GradientsMean,)

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(x, g) / _positions(g)

    def bias_gradient(self, g: Node) -> Node:
        return super().bias_gradient(g) / _positions(g)


class WeightGradientOfLastPosition(Fault):
    """The weight gradient kept only the contribution of the last position."""

    breaks = "LIN-GRAD-WEIGHT"
    also = ("LIN-GRAD-SUM",)
    sources = ("C-70",)
    mend = "Add up the contributions of all positions instead of overwriting them."

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(x, _only(g, slice(-1, None)))


class WeightGradientOfFirstPosition(Fault):
    """The weight gradient kept only the contribution of the first position."""

    breaks = "LIN-GRAD-WEIGHT"
    also = ("LIN-GRAD-SUM",)
    sources = ("C-70",)
    mend = "Add up the contributions of all positions."

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(x, _only(g, slice(1)))


class BiasGradientOfLastPosition(Fault):
    """The bias gradient kept only the upstream gradient of the last position."""

    breaks = "LIN-GRAD-BIAS"
    also = ("LIN-GRAD-SUM",)
    sources = ("C-70",)
    mend = "Add up the upstream gradients of all positions instead of overwriting them."

    def bias_gradient(self, g: Node) -> Node:
        return super().bias_gradient(_only(g, slice(-1, None)))


class BiasGradientOfFirstPosition(Fault):
    """The bias gradient kept only the upstream gradient of the first position."""

    breaks = "LIN-GRAD-BIAS"
    also = ("LIN-GRAD-SUM",)
    sources = ("C-70",)
    mend = "Add up the upstream gradients of all positions."

    def bias_gradient(self, g: Node) -> Node:
        return super().bias_gradient(_only(g, slice(1)))


class GradientsOfLastPosition(Fault):
    """The gradients of weight and bias kept only what came from the last position."""

    breaks = "LIN-GRAD-SUM"
    also = ("LIN-GRAD-WEIGHT", "LIN-GRAD-BIAS")
    sources = ("C-70",)
    mend = "Add up the contributions of all positions instead of overwriting them."

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(x, _only(g, slice(-1, None)))

    def bias_gradient(self, g: Node) -> Node:
        return super().bias_gradient(_only(g, slice(-1, None)))


class PositionsExchangedInWeightGradient(Fault):
    """In the weight gradient, inputs met the upstream gradients of the positions in reverse."""

    breaks = "LIN-GRAD-WEIGHT"
    sources = ("C-81",)
    mend = "Pair the input at each position with the upstream gradient at the same position."

    def weight_gradient(self, x: Node, g: Node) -> Node:
        return super().weight_gradient(x, take(g.rows(), slice(None, None, -1)))


def _count(g: Node) -> int:
    return int(np.prod(g.shape[:-1], dtype=np.int64))


def _positions(g: Node) -> int:
    return max(1, _count(g))


def _only(g: Node, kept: slice) -> Node:
    """The rows of ``g``, all but the ``kept`` ones zero."""
    mask = np.zeros((_count(g), 1))
    mask[kept] = 1.0
    rows: Node = g.rows() * g.tape.floats(mask)
    return rows
