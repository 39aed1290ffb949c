"""Mistakes of the activation."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from conformance.model import Tensor
from conformance.truth.faults import Fault
from conformance.truth.functions import exp
from conformance.truth.tape import Node


class TanhGelu(Fault):
    """GELU was computed by its tanh approximation."""

    breaks = "GELU-EXACT"
    mend = "Use the exact form x Phi(x) with erf; libraries call it approximate='none' or False."

    def normal_cdf(self, x: Node) -> Node:
        """(1 + tanh(s)) / 2 = 1 / (1 + exp(-2 s)), s = sqrt(2/pi) (x + 0.044715 x^3)."""
        cubic = x.tape.leaf(Tensor(shape=(), data=(Decimal("0.044715"),)))
        s = (x + cubic * (x * x * x)) * x.tape.constant("sqrt_two_over_pi")
        half: Node = 1 / (1 + exp(-(s + s)))
        return half


class Relu(Fault):
    """GELU was replaced by ReLU."""

    breaks = "GELU-EXACT"
    mend = "Use GELU, x Phi(x): a negative input gives a small negative output, not zero."

    def normal_cdf(self, x: Node) -> Node:
        positive = np.where(x.tape.domain.sign(x.value) > 0, 1.0, 0.0)
        return x.tape.floats(positive)
