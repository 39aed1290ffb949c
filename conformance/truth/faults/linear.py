"""Mistakes of the linear layer and of its gradients."""

from __future__ import annotations

import numpy as np

from conformance.truth.faults import Fault
from conformance.truth.tape import Node


class TransposedWeight(Fault):
    """The weight [in, out] was used as if stored [out, in]."""

    breaks = "LIN-ORIENTATION"
    mend = "The weight is [in, out]: y = x W + b. A layer that stores [out, in] takes W transposed."

    def product(self, x: Node, weight: Node) -> Node:
        return x @ weight.swap_last()


class BiasForgotten(Fault):
    """The bias was not added."""

    breaks = "LIN-AFFINE"
    mend = "Add the bias at every position."

    def add_bias(self, y: Node, bias: Node) -> Node:
        return y


class BiasGradientAveraged(Fault):
    """The bias gradient was averaged over the positions instead of summed."""

    breaks = "LIN-GRAD-SUM"
    mend = "Sum the upstream gradient over all positions, without dividing by their number."

    def bias_gradient(self, g: Node) -> Node:
        positions = int(np.prod(g.shape[:-1], dtype=np.int64))
        return g.rows().sum(0) / max(1, positions)


class WeightGradientOfLastPosition(Fault):
    """The weight gradient kept only the contribution of the last position."""

    breaks = "LIN-GRAD-WEIGHT"
    mend = "Add up the contributions of all positions instead of overwriting them."

    def weight_gradient(self, x: Node, g: Node) -> Node:
        positions = int(np.prod(g.shape[:-1], dtype=np.int64))
        last = np.zeros((positions, 1))
        last[-1:] = 1.0
        kept: Node = g.rows() * g.tape.floats(last)
        return x.rows().swap_last() @ kept
