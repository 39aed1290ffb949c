"""Mistakes of the linear layer about shapes: what it returns, what it refuses, what it accepts."""

from __future__ import annotations

from conformance.errors import Rejected
from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault

# -------------------------------------------------------------------------------- what comes back


class RankOneLifted(Fault):
    """An input of rank one came back with a leading axis of length one."""

    breaks = "LIN-RANK-ONE"
    sources = ("C-75",)
    mend = "Take away the leading axis that was added on the way in."

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        y = super().linear(x, weight, bias)
        return y.reshape((1, *y.shape)) if x.ndim == 1 else y


class LeadingAxesMerged(Fault):
    """All leading axes came back as one."""

    breaks = "LIN-LEADING-AXES"
    mend = "Give the output the leading axes of the input."

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        y = super().linear(x, weight, bias)
        return y.rows() if x.ndim > 1 else y


class LeadingOneDropped(Fault):
    """A leading axis of length one was dropped."""

    breaks = "LIN-LEADING-AXES"
    mend = "Keep every leading axis, one of length one included."

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        y = super().linear(x, weight, bias)
        return y.reshape((*(size for size in y.shape[:-1] if size != 1), y.shape[-1]))


# ------------------------------------------------------------------------- refused and is valid


class EmptyRefused(Fault):
    """An input without positions was refused."""

    breaks = "LIN-EMPTY"
    sources = ("C-76", "BUG-LIN-03")
    mend = "Accept a leading axis of length zero: the output has it too, and the sums are zero."

    def check_linear(self, x: Node, weight: Node, bias: Node | None) -> None:
        super().check_linear(x, weight, bias)
        if x.value.size == 0:
            raise Rejected("input-empty", "the input has no positions")


class BiasDemanded(Fault):
    """A layer without a bias was refused."""

    breaks = "LIN-BIAS-FREE"
    mend = "Take the bias as optional."

    def check_linear(self, x: Node, weight: Node, bias: Node | None) -> None:
        super().check_linear(x, weight, bias)
        if bias is None:
            raise Rejected("bias-missing", "there is no bias")


# ----------------------------------------------------------------------- accepted and is not valid


class WeightRankAccepted(Fault):
    """A weight that is no matrix was multiplied all the same."""

    breaks = "LIN-ERR-WEIGHT-RANK"
    mend = "Refuse a weight of any rank but two."

    def check_linear(self, x: Node, weight: Node, bias: Node | None) -> None:
        if weight.ndim == 2:
            super().check_linear(x, weight, bias)

    def product(self, x: Node, weight: Node) -> Node:
        return x * weight if weight.ndim == 0 else super().product(x, weight)


class ZeroInputWidthAccepted(Fault):
    """A weight without rows was accepted, and gave the bias or zeros."""

    breaks = "LIN-ERR-ZERO-INPUT-WIDTH"
    sources = ("C-76", "BUG-LIN-04")
    mend = "Refuse a weight without rows."

    def check_linear(self, x: Node, weight: Node, bias: Node | None) -> None:
        if weight.ndim != 2 or weight.shape[0] > 0:
            super().check_linear(x, weight, bias)


class ZeroOutputWidthAccepted(Fault):
    """A weight without columns was accepted, and gave an output without features."""

    breaks = "LIN-ERR-ZERO-OUTPUT-WIDTH"
    sources = ("C-76",)
    mend = "Refuse a weight without columns."

    def check_linear(self, x: Node, weight: Node, bias: Node | None) -> None:
        if weight.ndim != 2 or weight.shape[1] > 0:
            super().check_linear(x, weight, bias)


class BiasRankAccepted(Fault):
    """A bias that is no vector was broadcast."""

    breaks = "LIN-ERR-BIAS-RANK"
    sources = ("C-77",)
    mend = "Refuse a bias of any rank but one."

    def check_bias(self, bias: Node, d_out: int) -> None:
        if bias.ndim == 1:
            super().check_bias(bias, d_out)


class BiasWidthAccepted(Fault):
    """A bias of width one was broadcast over the features."""

    breaks = "LIN-ERR-BIAS-WIDTH"
    sources = ("C-77",)
    mend = "Refuse a bias whose width is not that of the output, one included."

    def check_bias(self, bias: Node, d_out: int) -> None:
        if bias.shape != (1,):
            super().check_bias(bias, d_out)


class NumberTakenForVector(Fault):
    """An input that is a single number was taken for a vector of one feature."""

    breaks = "LIN-ERR-INPUT-RANK"
    mend = "Refuse an input of rank zero."

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        return super().linear(x.reshape((1,)) if x.ndim == 0 else x, weight, bias)


class InputWidthAccepted(Fault):
    """An input of another width was cut, or met only as many rows of the weight as it is wide."""

    breaks = "LIN-ERR-INPUT-WIDTH"
    mend = "Refuse an input whose last axis is not d_in wide."

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        if x.ndim == 0 or weight.ndim != 2 or x.shape[-1] == weight.shape[0]:
            return super().linear(x, weight, bias)
        width = min(x.shape[-1], weight.shape[0])
        return super().linear(take(x, (..., slice(width))), take(weight, slice(width)), bias)
