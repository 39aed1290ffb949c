"""Mistakes in one step of AdamW."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from conformance.truth.arithmetic.functions import sqrt
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import number

Betas = tuple[Node, Node]


class BiasCorrectionForgotten(Fault):
    """The moments were used as they are, too small in the first steps."""

    breaks = "ADAMW-BIAS-CORRECTION"
    sources = ("BUG-OPT-01",)
    mend = "Divide each moment by 1 - beta^t before the step is made with it."

    def corrected(self, moment: Node, beta: Node, step: int) -> Node:
        del beta, step
        return moment


class FirstMomentUncorrected(Fault):
    """The second moment was corrected, and the first was used as it is."""

    breaks = "ADAMW-BIAS-CORRECTION"
    mend = "Divide the first moment by 1 - beta_1^t as well."

    def corrected_direction(
        self, first: Node, second: Node, *, step: int, betas: Betas, eps: Node
    ) -> Node:
        return self.direction(first, self.corrected(second, betas[1], step), eps)


class SecondMomentUncorrected(Fault):
    """The first moment was corrected, and the second was used as it is."""

    breaks = "ADAMW-BIAS-CORRECTION"
    mend = "Divide the second moment by 1 - beta_2^t as well."

    def corrected_direction(
        self, first: Node, second: Node, *, step: int, betas: Betas, eps: Node
    ) -> Node:
        return self.direction(self.corrected(first, betas[0], step), second, eps)


class EpsBeforeCorrection(Fault):
    """The epsilon of AdamW was added to the root before the second moment was corrected."""

    breaks = "ADAMW-EPS-OUTSIDE"
    sources = ("BUG-OPT-02",)
    mend = "Correct the second moment, take its root, and add epsilon to that."

    def corrected_direction(
        self, first: Node, second: Node, *, step: int, betas: Betas, eps: Node
    ) -> Node:
        ones = first.tape.floats(np.ones(()))
        scale = sqrt(self.corrected(ones, betas[1], step))
        return self.corrected(first, betas[0], step) / ((sqrt(second) + eps) * scale)


class AdamEpsInsideRoot(Fault):
    """The epsilon of AdamW was added to the second moment, inside the root."""

    breaks = "ADAMW-EPS-OUTSIDE"
    mend = "Take the root of the corrected second moment, then add epsilon."

    def direction(self, first: Node, second: Node, eps: Node) -> Node:
        return first / sqrt(second + eps)


class AdamEpsForgotten(Fault):
    """The step was divided by the root of the second moment alone, without epsilon."""

    breaks = "ADAMW-EPS-OUTSIDE"
    also = ("ADAMW-ZERO-GRADIENT",)
    mend = "Add epsilon to the root, so that a gradient of zero divides by something."

    def direction(self, first: Node, second: Node, eps: Node) -> Node:
        del eps
        return first / sqrt(second)


class AdamRootForgotten(Fault):
    """The step was divided by the second moment itself instead of its root."""

    breaks = "ADAMW-MOMENTS"
    mend = "Divide by the root of the corrected second moment."

    def direction(self, first: Node, second: Node, eps: Node) -> Node:
        return first / (second + eps)


class StepFromZero(Fault):
    """The steps were counted from 0, which divides the first one by zero."""

    breaks = "ADAMW-STEP-FROM-ONE"
    sources = ("BUG-OPT-07",)
    mend = "Count the first step as 1 before the moments are corrected."

    def corrected(self, moment: Node, beta: Node, step: int) -> Node:
        if step == 1:
            return moment / (1 - beta / beta)
        return super().corrected(moment, beta, step - 1)


class StepFromTwo(Fault):
    """The steps were counted from 2."""

    breaks = "ADAMW-STEP-FROM-ONE"
    sources = ("BUG-OPT-07",)
    mend = "Count each step once, the first one as 1."

    def corrected(self, moment: Node, beta: Node, step: int) -> Node:
        return super().corrected(moment, beta, step + 1)


class StepsNotCounted(Fault):
    """Every step was corrected as if it were the first."""

    breaks = "ADAMW-STEP-FROM-ONE"
    mend = "Count the steps, and correct step t with beta^t."

    def corrected(self, moment: Node, beta: Node, step: int) -> Node:
        return super().corrected(moment, beta, 1)


class CorrectionLinear(Fault):
    """The correction took 1 - beta * t for 1 - beta^t."""

    breaks = "ADAMW-BIAS-CORRECTION"
    mend = "Raise beta to the number of the step."

    def corrected(self, moment: Node, beta: Node, step: int) -> Node:
        return moment / (1 - beta * step)


class AscentTaken(Fault):
    """The step was added, so that it went up the loss."""

    breaks = "ADAMW-MOMENTS"
    mend = "Take the rate times the direction off the parameter."

    def moved(
        self, parameter: Node, direction: Node, learning_rate: Node, weight_decay: Node
    ) -> Node:
        return super().moved(parameter, -direction, learning_rate, weight_decay)


class MomentsSwapped(Fault):
    """The two moments were handed back in each other's place."""

    breaks = "ADAMW-MOMENTS"
    mend = "Keep the mean of the gradients first and that of their squares second."

    def adamw_step(self, *_: Any, **given: Any) -> dict[str, Node]:
        found = super().adamw_step(**given)
        first, second = found["first_moment"], found["second_moment"]
        return {**found, "first_moment": second, "second_moment": first}


class BetasSwapped(Fault):
    """Each moment was averaged and corrected with the beta of the other."""

    breaks = "ADAMW-MOMENTS"
    mend = "Use beta_1 for the gradients and beta_2 for their squares."

    def adamw_step(self, *_: Any, **given: Any) -> dict[str, Node]:
        return super().adamw_step(**{**given, "beta_1": given["beta_2"], "beta_2": given["beta_1"]})


class BetasIgnored(Fault):
    """The betas were 0.9 and 0.999, whatever was asked for."""

    breaks = "ADAMW-MOMENTS"
    mend = "Take both betas from the settings."

    def adamw_step(self, *_: Any, **given: Any) -> dict[str, Node]:
        near = given["parameter"]
        usual = {"beta_1": number(near, Decimal("0.9")), "beta_2": number(near, Decimal("0.999"))}
        return super().adamw_step(**{**given, **usual})


class FirstMomentForgotten(Fault):
    """The step was made with the gradient itself instead of its running mean."""

    breaks = "ADAMW-MOMENTS"
    mend = "Average the gradients with beta_1."

    def first_moment(self, moment: Node, gradient: Node, beta_1: Node) -> Node:
        return super().first_moment(moment, gradient, beta_1 - beta_1)

    def corrected_direction(
        self, first: Node, second: Node, *, step: int, betas: Betas, eps: Node
    ) -> Node:
        return self.direction(first, self.corrected(second, betas[1], step), eps)


class FirstMomentUnweighted(Fault):
    """The gradient was added to the decaying first moment with its full weight."""

    breaks = "ADAMW-MOMENTS"
    mend = "Weigh the gradient by 1 - beta_1."

    def first_moment(self, moment: Node, gradient: Node, beta_1: Node) -> Node:
        return beta_1 * moment + gradient


class SecondMomentUnweighted(Fault):
    """The squared gradient was added to the decaying second moment with its full weight."""

    breaks = "ADAMW-MOMENTS"
    mend = "Weigh the squared gradient by 1 - beta_2."

    def second_moment(self, moment: Node, gradient: Node, beta_2: Node) -> Node:
        return beta_2 * moment + gradient * gradient


class SecondMomentOfTensor(Fault):
    """One second moment, the mean over the tensor, served all of its elements."""

    breaks = "ADAMW-MOMENTS"
    mend = "Keep a second moment of its own for every element."

    def second_moment(self, moment: Node, gradient: Node, beta_2: Node) -> Node:
        axes = tuple(range(gradient.ndim))
        count = max(int(np.prod(gradient.shape, dtype=np.int64)), 1)
        square = gradient * gradient
        mean = square.sum(axes, keepdims=True) / count if axes else square
        return beta_2 * moment + (1 - beta_2) * mean.broadcast_to(gradient.shape)
