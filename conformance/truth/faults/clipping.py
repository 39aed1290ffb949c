"""Mistakes in clipping gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import where


class ClippedByValue(Fault):
    """Each element was cut to the largest norm, instead of scaling all of them."""

    breaks = "CLIP-GLOBAL-NORM"
    mend = "Scale all gradients by one factor; keep their direction."

    def all_clipped(
        self, gradients: Mapping[str, Node], norm: Node, max_norm: Node
    ) -> dict[str, Node]:
        return {name: _cut(gradient, max_norm) for name, gradient in gradients.items()}


class ClippedPerTensor(Fault):
    """Each gradient was clipped by its own norm."""

    breaks = "CLIP-GLOBAL-NORM"
    mend = "Take the norm over all gradients together, and one factor for all."

    def all_clipped(
        self, gradients: Mapping[str, Node], norm: Node, max_norm: Node
    ) -> dict[str, Node]:
        factors = {
            name: self.clipping_factor(self.norm([g]), max_norm) for name, g in gradients.items()
        }
        return {name: self.clipped(g, factors[name]) for name, g in gradients.items()}


class NormsAddedUp(Fault):
    """The norms of the gradients were added up, without squares."""

    breaks = "CLIP-GLOBAL-NORM"
    mend = "Add up the squares of all elements and take one root."

    def norm(self, nodes: list[Node]) -> Node:
        first, *others = (super(NormsAddedUp, self).norm([node]) for node in nodes)
        for other in others:
            first = first + other
        return first


class NormOfLargest(Fault):
    """The norm was that of the largest gradient alone."""

    breaks = "CLIP-GLOBAL-NORM"
    mend = "Add up the squares of the elements of all gradients."

    def norm(self, nodes: list[Node]) -> Node:
        norms = [super(NormOfLargest, self).norm([node]) for node in nodes]
        return max(norms, key=lambda each: float(each.magnitude()))


class NormNotRooted(Fault):
    """The sum of the squares was taken for the norm."""

    breaks = "CLIP-GLOBAL-NORM"
    also = ("TRAIN-GRADIENT-NORMS",)
    mend = "Take the root of the sum of the squares."

    def norm(self, nodes: list[Node]) -> Node:
        root = super().norm(nodes)
        return root * root


class ClippingMarginForgotten(Fault):
    """The largest norm was divided by the norm alone, without the 1e-6."""

    breaks = "CLIP-FACTOR"
    mend = "Divide by norm + 1e-6."

    def with_margin(self, norm: Node) -> Node:
        return norm


class ClippedAboveTheLimitAlone(Fault):
    """Gradients whose norm equals the largest were left as they were, without the 1e-6."""

    breaks = "CLIP-FACTOR"
    mend = "Compare the factor with 1, and not the norm with the largest: the factor is less there."

    def clipping_factor(self, norm: Node, max_norm: Node) -> Node | None:
        above = float(norm.tape.domain.sign((norm - max_norm).value)) > 0
        return super().clipping_factor(norm, max_norm) if above else None


class ClippedAlways(Fault):
    """Gradients below the largest norm were scaled up to it."""

    breaks = "CLIP-BELOW-UNTOUCHED"
    mend = "Scale only where the factor is less than 1."

    def clipping_factor(self, norm: Node, max_norm: Node) -> Node | None:
        return max_norm / self.with_margin(norm)


class ClippingForgotten(Fault):
    """The gradients were not clipped."""

    breaks = "CLIP-FACTOR"
    also = ("TRAIN-STEP",)
    mend = "Scale the gradients by max_norm / (norm + 1e-6) where that is less than 1."

    def clipping_factor(self, norm: Node, max_norm: Node) -> Node | None:
        del norm, max_norm
        return None


class ClippedNormReported(Fault):
    """The norm that was told is that of the clipped gradients."""

    breaks = "CLIP-GLOBAL-NORM"
    mend = "Tell the norm from before the gradients are scaled."

    def clip_gradients(
        self, *positional: Any, **named: Any
    ) -> dict[str, Node | Mapping[str, Node]]:
        found: dict[str, Any] = dict(super().clip_gradients(*positional, **named))
        return {**found, "norm": self.norm(list(found["gradients"].values()))}


class FactorAppliedTwice(Fault):
    """The gradients were scaled twice."""

    breaks = "CLIP-FACTOR"
    mend = "Scale the gradients once in each step."

    def clipped(self, gradient: Node, factor: Node | None) -> Node:
        return super().clipped(super().clipped(gradient, factor), factor)


def _cut(gradient: Node, limit: Node) -> Node:
    sign = gradient.tape.domain.sign
    above = sign((gradient - limit).value) > 0
    below = sign((gradient + limit).value) < 0
    return where(np.asarray(above), limit, where(np.asarray(below), -limit, gradient))
