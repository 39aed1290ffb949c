"""Mistakes of layer normalisation."""

from __future__ import annotations

from decimal import Decimal

from conformance.model import Tensor
from conformance.truth.faults import Fault
from conformance.truth.functions import sqrt
from conformance.truth.tape import Node


class SampleVariance(Fault):
    """The variance was divided by d - 1, as for a sample."""

    breaks = "LN-POPULATION-VARIANCE"
    mend = "Divide the sum of squared deviations by d: the population variance."

    def variance(self, centred: Node) -> Node:
        return (centred * centred).sum(-1, keepdims=True) / (centred.shape[-1] - 1)


class EpsOutsideRoot(Fault):
    """Epsilon was added to the standard deviation, outside the root."""

    breaks = "LN-EPS-INSIDE"
    mend = "Add epsilon to the variance before taking the root: sqrt(variance + eps)."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance) + eps


class EpsOneMillionth(Fault):
    """Epsilon was 1e-6, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + eps.tape.leaf(Tensor(shape=(), data=(Decimal("1e-6"),))))


class AffineForgotten(Fault):
    """Scale gamma and shift beta were not applied."""

    breaks = "LN-AFFINE"
    mend = "Multiply the normalised vector by gamma and add beta."

    def affine(self, z: Node, gamma: Node, beta: Node) -> Node:
        return z
