"""Mistakes of the activation and of its derivative."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from conformance.precision import DTYPES
from conformance.truth.arithmetic.functions import erf, exp
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import logistic, number
from conformance.truth.reference import Reference
from conformance.truth.reference.halves import halved


def _tanh_argument(x: Node) -> Node:
    """sqrt(2 / pi) (x + 0.044715 x^3)."""
    cubic = number(x, Decimal("0.044715"))
    return (x + cubic * (x * x * x)) * x.tape.constant("sqrt_two_over_pi")


class TanhGelu(Fault):
    """GELU was computed by its tanh approximation."""

    breaks = "GELU-EXACT"
    sources = ("C-13", "BUG-GELU-01")
    mend = "Use the exact form x Phi(x) with erf; libraries call it approximate='none' or False."

    def normal_cdf(self, x: Node) -> Node:
        """(1 + tanh(s)) / 2 is the logistic function of 2 s."""
        s = _tanh_argument(x)
        return logistic(s + s)


class TanhOverflow(Fault):
    """GELU was computed by its tanh approximation, with a tanh whose exponentials overflow."""

    breaks = "GELU-EXACT"
    sources = ("BUG-GELU-03",)
    mend = "Use erf; a tanh made of exponentials needs a limit on its argument."
    native = True

    def normal_cdf(self, x: Node) -> Node:
        """(1 + (e - 1) / (e + 1)) / 2 with e = exp(2 s)."""
        s = _tanh_argument(x)
        e = exp(s + s)
        return (1 + (e - 1) / (e + 1)) / 2


class Relu(Fault):
    """GELU was replaced by ReLU."""

    breaks = "GELU-EXACT"
    also = ("GELU-NEGATIVE",)
    sources = ("C-11",)
    mend = "Use GELU, x Phi(x): a negative input gives a small negative output, not zero."

    def normal_cdf(self, x: Node) -> Node:
        return _where_positive(x)


class NegativeSideCut(Fault):
    """GELU was kept for positive inputs, and negative inputs were cut to zero."""

    breaks = "GELU-NEGATIVE"
    also = ("GELU-ODD-PART",)
    sources = ("C-12",)
    mend = "Use x Phi(x) on both sides: a negative input gives a small negative output."

    def normal_cdf(self, x: Node) -> Node:
        return super().normal_cdf(x) * _where_positive(x)


class Silu(Fault):
    """GELU was replaced by SiLU, x times the logistic function of x."""

    breaks = "GELU-EXACT"
    sources = ("C-14",)
    mend = "Multiply x by the normal distribution function of x, not by the logistic function."

    def normal_cdf(self, x: Node) -> Node:
        return logistic(x)


class QuickGelu(Fault):
    """GELU was computed with the logistic function of 1.702 x."""

    breaks = "GELU-EXACT"
    sources = ("C-14", "BUG-GELU-02")
    mend = "Multiply x by the normal distribution function itself, (1 + erf(x / sqrt 2)) / 2."

    def normal_cdf(self, x: Node) -> Node:
        return logistic(x * number(x, Decimal("1.702")))


class IdentityForGelu(Fault):
    """GELU gave its input back: there was no activation."""

    breaks = "GELU-EXACT"
    also = ("GELU-ODD-PART",)
    mend = "Multiply the input by Phi of the input."

    def normal_cdf(self, x: Node) -> Node:
        return x.tape.floats(np.ones(x.shape))


class RootTwoForgotten(Fault):
    """GELU took erf of x instead of erf of x / sqrt 2."""

    breaks = "GELU-EXACT"
    mend = "Divide the input by the square root of two before erf."

    def normal_cdf(self, x: Node) -> Node:
        return (1 + erf(x)) / 2


class HalfForgotten(Fault):
    """GELU was not halved: x (1 + erf(x / sqrt 2))."""

    breaks = "GELU-EXACT"
    mend = "Halve 1 + erf(x / sqrt 2)."

    def normal_cdf(self, x: Node) -> Node:
        cdf = super().normal_cdf(x)
        return cdf + cdf


class Float32Constants(Fault):
    """A constant of GELU, 1 / sqrt 2, was rounded to float32."""

    breaks = "GELU-EXACT"
    mend = "Compute the constants of a float64 kernel in float64."
    unseen: Mapping[str, str] = {"float32": "every constant is rounded to float32 there"}

    def normal_cdf(self, x: Node) -> Node:
        rounded = Decimal(float(np.float32(np.sqrt(0.5))))
        return (1 + erf(x * number(x, rounded))) / 2


class LeftTailLost(Fault):
    """GELU was computed with 1 + erf(x / sqrt 2), which loses the left tail to cancellation."""

    breaks = "GELU-EXACT"
    mend = "Use erfc(-x / sqrt 2), which keeps every digit of a negative input's small output."
    native = True
    unseen: Mapping[str, str] = dict.fromkeys(
        DTYPES, "it is the formula of the documents, whose own rounding every bound allows"
    )

    def normal_cdf(self, x: Node) -> Node:
        """Near x = -6 in float32 and x = -9 in float64 the sum is zero."""
        return (1 + erf(x * x.tape.constant("sqrt_half"))) / 2


class DensityTermForgotten(Fault):
    """The derivative of GELU was taken to be Phi(x), without x phi(x)."""

    breaks = "GELU-GRADIENT"
    mend = "Add x times the normal density to Phi(x): both factors of x Phi(x) depend on x."

    def gelu(self, x: Node) -> Node:
        return x * self.normal_cdf(x).detach()


class TanhGeluBackward(Fault):
    """The derivative of GELU was that of the tanh approximation, behind an exact value."""

    breaks = "GELU-GRADIENT"
    sources = ("BUG-GELU-02",)
    mend = "Differentiate the form that was computed: Phi(x) + x phi(x)."

    def gelu(self, x: Node) -> Node:
        return halved("gelu", Reference(), TanhGelu(), (x,), {})


class QuickGeluBackward(Fault):
    """The derivative of GELU was that of x times the logistic of 1.702 x, behind an exact value."""

    breaks = "GELU-GRADIENT"
    mend = "Differentiate the form that was computed: Phi(x) + x phi(x)."

    def gelu(self, x: Node) -> Node:
        return halved("gelu", Reference(), QuickGelu(), (x,), {})


class ReluBackward(Fault):
    """The derivative of GELU was that of ReLU, one or zero, behind an exact value."""

    breaks = "GELU-GRADIENT"
    mend = "Differentiate the form that was computed: Phi(x) + x phi(x)."

    def gelu(self, x: Node) -> Node:
        return halved("gelu", Reference(), Relu(), (x,), {})


def _where_positive(x: Node) -> Node:
    return x.tape.floats(np.where(x.tape.domain.sign(x.value) > 0, 1.0, 0.0))
