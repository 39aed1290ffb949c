"""Mistakes about epsilon: another size than the one given, or another use of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from conformance.truth.arithmetic.functions import sqrt
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import number, where


class EpsOneThousandth(Fault):
    """Epsilon was 1e-3, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    sources = ("C-04", "BUG-LN-03")
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-3")))


class EpsOneTrillionth(Fault):
    """Epsilon was 1e-12, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    sources = ("C-04", "BUG-LN-03")
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-12")))


class EpsOneHundredThousandth(Fault):
    """Epsilon was 1e-5, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    mend = "Pass the epsilon that is given on to the normalisation instead of its default."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-5")))


class EpsOneTenThousandth(Fault):
    """Epsilon was 1e-4, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-4")))


class EpsOneTenMillionth(Fault):
    """Epsilon was 1e-7, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-7")))


class EpsOneHundredMillionth(Fault):
    """Epsilon was 1e-8, whatever was asked for."""

    breaks = "LN-EPS-GIVEN"
    also = ("LN-NO-EPS-UNDEFINED",)
    mend = "Pass the epsilon that is given (1e-5 in the documents) to the normalisation."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + number(variance, Decimal("1e-8")))


class EpsAsFloor(Fault):
    """Epsilon was a floor under the variance instead of a term added to it."""

    breaks = "LN-EPS-INSIDE"
    mend = "Add epsilon to every variance, large or small."

    def root(self, variance: Node, eps: Node) -> Node:
        sign = variance.tape.domain.sign((variance - eps).value)
        return sqrt(where(sign > 0, variance, eps))


class EpsAsFloorOfDeviation(Fault):
    """Epsilon was a floor under the standard deviation."""

    breaks = "LN-EPS-INSIDE"
    mend = "Add epsilon to the variance and take the root of the sum."

    def root(self, variance: Node, eps: Node) -> Node:
        sign = variance.tape.domain.sign((variance - eps * eps).value)
        return where(sign > 0, sqrt(where(sign > 0, variance, eps)), eps)


class EpsRelative(Fault):
    """Epsilon was taken relative to the variance, so that the scale of x made no difference."""

    breaks = "LN-SCALE"
    also = ("LN-EPS-INSIDE",)
    mend = "Add epsilon as it is given, not multiplied by the variance."

    def root(self, variance: Node, eps: Node) -> Node:
        return sqrt(variance + eps * variance)


class EpsRoundedToFloat32(Fault):
    """Epsilon was rounded to float32 on its way."""

    breaks = "LN-EPS-GIVEN"
    mend = "Keep epsilon in float64 where the computation is in float64."
    unseen: Mapping[str, str] = {"float32": "epsilon is given in float32 there"}

    def root(self, variance: Node, eps: Node) -> Node:
        rounded = np.asarray(variance.tape.domain.magnitude(eps.value), dtype=np.float32)
        return sqrt(variance + eps.tape.floats(rounded.astype(np.float64)))


class EpsRoundedToFloat16(Fault):
    """Epsilon was rounded to float16 on its way, where 1e-5 is off by a thousandth."""

    breaks = "LN-EPS-GIVEN"
    sources = ("BUG-LN-06",)
    mend = "Keep epsilon in the precision of the computation; below 6e-8 float16 makes it zero."

    def root(self, variance: Node, eps: Node) -> Node:
        rounded = np.asarray(variance.tape.domain.magnitude(eps.value), dtype=np.float16)
        return sqrt(variance + eps.tape.floats(rounded.astype(np.float64)))


class ZeroVarianceGuarded(Fault):
    """Where variance + eps is zero the output was beta, as if the division had a result."""

    breaks = "LN-NO-EPS-UNDEFINED"
    mend = "Let the division by zero show, as an exception or as a value that is not finite."

    def root(self, variance: Node, eps: Node) -> Node:
        total = variance + eps
        one = total.tape.floats(np.ones(total.shape))
        return sqrt(where(total.magnitude() > 0, total, one))
