"""Mistakes in the loop of training: what is cleared, held, measured and told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault

ByName = Mapping[str, Node]
Moments = dict[str, tuple[Node, Node]]
Settings = Mapping[str, Node]


class GradientsNotCleared(Fault):
    """The gradients of earlier steps were added to those of the step."""

    breaks = "TRAIN-GRADIENTS-CLEARED"
    also = ("TRAIN-GRADIENT-NORMS",)
    sources = ("BUG-OPT-10",)
    mend = "Clear the gradients in every step, before the backward pass."

    def gathered(self, before: ByName, gradients: ByName) -> ByName:
        return {
            name: before[name] + gradient if name in before else gradient
            for name, gradient in gradients.items()
        }


class StaleGradientsAtStart(Fault):
    """A backward pass before the first step had left its gradients behind."""

    breaks = "TRAIN-GRADIENTS-CLEARED"
    sources = ("BUG-OPT-10",)
    mend = "Clear the gradients before the first step as well."

    def gathered(self, before: ByName, gradients: ByName) -> ByName:
        return gradients if before else {name: each + each for name, each in gradients.items()}


class LossAfterStep(Fault):
    """The loss was measured after the step it belongs to."""

    breaks = "TRAIN-LOSSES"
    mend = "Keep the loss that the step was made from."

    def reported(self, before: Node, after: Callable[[], Node]) -> Node:
        del before
        return after()


class ClippedNormsReported(Fault):
    """The gradients and their norms were told after clipping."""

    breaks = "TRAIN-GRADIENT-NORMS"
    also = ("TRAIN-GRADIENTS",)
    mend = "Take the gradients and their norms before they are clipped."

    def observed(
        self, gradients: ByName, limited: ByName, parameters: ByName, settings: Settings
    ) -> ByName:
        return limited


class ClearedGradientsReported(Fault):
    """The gradients and their norms were told when they had been cleared, as zeros."""

    breaks = "TRAIN-GRADIENTS"
    also = ("TRAIN-GRADIENT-NORMS",)
    sources = ("BUG-OPT-10",)
    mend = "Keep the gradients before they are cleared; a view of them is cleared with them."

    def observed(
        self, gradients: ByName, limited: ByName, parameters: ByName, settings: Settings
    ) -> ByName:
        return {name: each.tape.floats(np.zeros(each.shape)) for name, each in gradients.items()}


class FirstGradientsReported(Fault):
    """The gradients were those of the first step, kept before the loop went on."""

    breaks = "TRAIN-GRADIENTS"
    mend = "Keep the gradients of the last step."

    def kept(self, seen: Sequence[ByName]) -> ByName:
        return seen[0]


class GradientsOfAllSteps(Fault):
    """The gradients were the sums of those of all steps, though each step was made with its own."""

    breaks = "TRAIN-GRADIENTS"
    mend = "Keep the gradients of the last step alone."

    def kept(self, seen: Sequence[ByName]) -> ByName:
        total = dict(seen[0])
        for each in seen[1:]:
            total = {name: total[name] + gradient for name, gradient in each.items()}
        return total


class DecayInGradientNorms(Fault):
    """Weight decay was counted in the gradients and their norms."""

    breaks = "TRAIN-GRADIENT-NORMS"
    also = ("TRAIN-GRADIENTS",)
    sources = ("C-54",)
    mend = "Take the gradient of the loss alone, and its norm."

    def observed(
        self, gradients: ByName, limited: ByName, parameters: ByName, settings: Settings
    ) -> ByName:
        decay = settings["weight_decay"]
        return {name: each + decay * parameters[name] for name, each in gradients.items()}


class ClippingSkipped(Fault):
    """Training did not clip the gradients, though the operation does."""

    breaks = "TRAIN-STEP"
    mend = "Clip the gradients between the backward pass and the step."

    def limited(self, gradients: ByName, max_norm: Node) -> ByName:
        del max_norm
        return gradients


class EarlyPredictions(Fault):
    """The predictions were those of the parameters before the last step."""

    breaks = "TRAIN-STEP"
    mend = "Run the decoder once more after the last step."

    def predicting(self, before: ByName, after: ByName) -> ByName:
        del after
        return before


class OnlyHeadHeld(Fault):
    """The optimiser held the head alone."""

    breaks = "TRAIN-ALL-HELD"
    sources = ("C-53",)
    mend = "Give the optimiser every parameter of the model."

    def held(self, parameters: ByName) -> list[str]:
        return [name for name in super().held(parameters) if name == "head"]


class HeadNotHeld(Fault):
    """The optimiser was older than the head, and held one that the model no longer has."""

    breaks = "TRAIN-ALL-HELD"
    also = ("TRAIN-FITS",)
    sources = ("C-52",)
    mend = "Build the optimiser after the last layer of the model is in place."

    def held(self, parameters: ByName) -> list[str]:
        return [name for name in super().held(parameters) if name != "head"]


class EmbeddingsNotHeld(Fault):
    """Both embedding tables were left out of the optimiser."""

    breaks = "TRAIN-ALL-HELD"
    sources = ("C-53",)
    mend = "Give the optimiser every parameter of the model, the embeddings too."

    def held(self, parameters: ByName) -> list[str]:
        return [name for name in super().held(parameters) if not name.endswith("_embedding")]


class BlocksNotHeld(Fault):
    """The parameters of the blocks were left out of the optimiser."""

    breaks = "TRAIN-ALL-HELD"
    sources = ("C-53",)
    mend = "Give the optimiser the parameters of the blocks."

    def held(self, parameters: ByName) -> list[str]:
        return [name for name in super().held(parameters) if not name.startswith("blocks.")]


class VectorsNotHeld(Fault):
    """The scales, shifts and biases were left out of the optimiser."""

    breaks = "TRAIN-ALL-HELD"
    sources = ("C-53",)
    mend = "Give the optimiser every parameter of the model, whatever its rank."

    def held(self, parameters: ByName) -> list[str]:
        return [name for name in super().held(parameters) if parameters[name].ndim > 1]


class VectorsNotDecayed(Fault):
    """Scales, shifts and biases did not decay."""

    breaks = "TRAIN-STEP"
    mend = "Decay every parameter: these settings know no exceptions."

    def decayed(self, parameter: Node, learning_rate: Node, weight_decay: Node) -> Node:
        if parameter.ndim == 1:
            return parameter
        return super().decayed(parameter, learning_rate, weight_decay)


class OptimiserMadeAnew(Fault):
    """Every step had a new optimiser, with moments of zero and a first step to make."""

    breaks = "TRAIN-STEP"
    mend = "Build the optimiser once, before the loop."

    def update(
        self,
        parameters: ByName,
        gradients: ByName,
        moments: Moments,
        step: int,
        settings: Settings,
    ) -> dict[str, Node]:
        return super().update(parameters, gradients, {}, 1, settings)


class StepsCountedPerParameter(Fault):
    """The number of the step went up with every parameter instead of every step."""

    breaks = "TRAIN-STEP"
    mend = "Count a step once for all parameters."

    def update(
        self,
        parameters: ByName,
        gradients: ByName,
        moments: Moments,
        step: int,
        settings: Settings,
    ) -> dict[str, Node]:
        after = dict(parameters)
        held = self.held(self.found(parameters))
        for k, name in enumerate(held):
            number = (step - 1) * len(held) + k + 1
            alone = {name: parameters[name]}
            after |= super().update(alone, gradients, moments, number, settings)
        return after


class AbsentGradientsAsZeros(Fault):
    """What the head reads was detached, and the gradients that did not come were told as zero."""

    breaks = "TRAIN-ABSENT-NOT-ZERO"
    also = ("TRAIN-GRADIENT-NORMS",)
    sources = ("C-50",)
    mend = "Let the gradient pass, and tell a gradient that is absent from one that is zero."

    def head(self, x: Node, parameters: ByName) -> Node:
        return super().head(x.detach(), parameters)

    def backward(self, loss: Node, parameters: ByName) -> dict[str, Node]:
        found = super().backward(loss, parameters)
        return {
            name: found.get(name, node.tape.floats(np.zeros(node.shape)))
            for name, node in parameters.items()
        }
