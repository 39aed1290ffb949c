"""Mistakes in the weight decay of AdamW, and at a gradient of zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault


class DecayCoupled(Fault):
    """Weight decay was added to the gradient, and went through the moments."""

    breaks = "ADAMW-DECAY-DECOUPLED"
    sources = ("BUG-OPT-04",)
    mend = "Keep decay out of the gradient: scale the parameter by 1 - rate * decay."

    def adamw_step(self, *_: Any, **given: Any) -> dict[str, Node]:
        gradient = given["gradient"] + given["weight_decay"] * given["parameter"]
        return super().adamw_step(**{**given, "gradient": gradient})

    def decayed(self, parameter: Node, learning_rate: Node, weight_decay: Node) -> Node:
        del learning_rate, weight_decay
        return parameter


class DecayForgotten(Fault):
    """The parameter did not decay."""

    breaks = "ADAMW-DECAY-DECOUPLED"
    also = ("ADAMW-ZERO-GRADIENT",)
    mend = "Scale the parameter by 1 - rate * decay in every step."

    def decayed(self, parameter: Node, learning_rate: Node, weight_decay: Node) -> Node:
        del learning_rate, weight_decay
        return parameter


class DecayWithoutRate(Fault):
    """Weight decay was not scaled by the learning rate."""

    breaks = "ADAMW-DECAY-SCALED"
    sources = ("BUG-OPT-05",)
    mend = "Take off rate * decay * parameter, not decay * parameter."

    def decayed(self, parameter: Node, learning_rate: Node, weight_decay: Node) -> Node:
        del learning_rate
        return parameter - weight_decay * parameter


class DecayWithoutParameter(Fault):
    """Weight decay took off the same from every element, whatever its size."""

    breaks = "ADAMW-DECAY-SCALED"
    sources = ("BUG-OPT-05",)
    mend = "Take off rate * decay * parameter, not rate * decay."

    def decayed(self, parameter: Node, learning_rate: Node, weight_decay: Node) -> Node:
        return parameter - learning_rate * weight_decay


class DecayWithWrongSign(Fault):
    """Weight decay was added, so that the parameters grew."""

    breaks = "ADAMW-DECAY-DECOUPLED"
    sources = ("BUG-OPT-04", "BUG-TST-06")
    mend = "Take rate * decay * parameter off."

    def decayed(self, parameter: Node, learning_rate: Node, weight_decay: Node) -> Node:
        return parameter + learning_rate * weight_decay * parameter


class DecayAfterStep(Fault):
    """Weight decay scaled what the step had left, not the parameter before it."""

    breaks = "ADAMW-DECAY-DECOUPLED"
    sources = ("BUG-OPT-07",)
    mend = "Decay the parameter first, then take the step off."

    def moved(
        self, parameter: Node, direction: Node, learning_rate: Node, weight_decay: Node
    ) -> Node:
        return self.decayed(parameter - learning_rate * direction, learning_rate, weight_decay)


class ZeroGradientSkipped(Fault):
    """A gradient of zeros was taken for none: parameter and moments stayed as they were."""

    breaks = "ADAMW-ZERO-GRADIENT"
    sources = ("C-54",)
    mend = "Skip a parameter whose gradient is absent, and not one whose gradient is zero."

    def adamw_step(self, *_: Any, **given: Any) -> dict[str, Node]:
        if np.any(given["gradient"].magnitude() != 0):
            return super().adamw_step(**given)
        return {name: given[name] for name in ("parameter", "first_moment", "second_moment")}
