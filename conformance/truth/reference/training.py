"""The rules of training on a fixed batch (trainable-decoder, "Overfit a Fixed Batch …")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.truth.reference.decoder import DecoderRules
from conformance.truth.reference.initialisation import InitialisationRules
from conformance.truth.reference.optimiser import OptimiserRules
from conformance.truth.reverse import adjoints
from conformance.truth.tape import Node, stack

#: Nodes by the name of a parameter.
ByName = Mapping[str, Node]


class TrainingRules(DecoderRules, OptimiserRules, InitialisationRules):
    """Forward, loss, backward, clip, step: the same batch every time."""

    def train(
        self,
        tokens: np.ndarray,
        targets: np.ndarray,
        parameters: ByName,
        *,
        heads: int,
        eps: Node,
        ignore_index: int,
        steps: int,
        learning_rate: Node,
        beta_1: Node,
        beta_2: Node,
        adam_eps: Node,
        weight_decay: Node,
        max_norm: Node,
    ) -> dict[str, Any]:
        """The loss before each step and the norm of each gradient before it is clipped.

        After the last step: the parameters, how many elements of each the optimiser holds, and
        the token that has the largest logit at each position.
        """
        settings = {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "beta_2": beta_2,
            "eps": adam_eps,
            "weight_decay": weight_decay,
        }
        losses: list[Node] = []
        norms: dict[str, list[Node]] = {}
        moments: dict[str, tuple[Node, Node]] = {}
        gradients: ByName = {}
        for step in range(1, steps + 1):
            loss = self.decoder_loss(
                tokens, targets, parameters, heads=heads, eps=eps, ignore_index=ignore_index
            )
            gradients = self.gathered(gradients, self.backward(loss, parameters))
            losses.append(loss.tape.settle(loss))
            for name, gradient in gradients.items():
                norms.setdefault(name, []).append(loss.tape.settle(self.norm([gradient])))
            clipped: Any = self.clip_gradients(gradients, max_norm=max_norm)["gradients"]
            parameters = self.update(parameters, clipped, moments, step, settings)
        logits = self.decoder(tokens, parameters, heads=heads, eps=eps)
        held = self.held(parameters)
        return {
            "losses": stack(losses),
            "gradient_norms": {name: stack(found) for name, found in norms.items()},
            "parameters": dict(parameters),
            "optimised": {name: parameters[name].value.size for name in held},
            "predictions": self.largest(logits),
        }

    def backward(self, loss: Node, parameters: ByName) -> dict[str, Node]:
        """The gradient of every parameter that the loss depends on."""
        found = adjoints(loss, loss.tape.floats(np.ones(())))
        return {name: found[id(node)] for name, node in parameters.items() if id(node) in found}

    def gathered(self, before: ByName, gradients: ByName) -> ByName:
        """What the step is made with: the gradients of ``before`` are cleared."""
        del before
        return gradients

    def held(self, parameters: ByName) -> list[str]:
        """The parameters that the optimiser holds: all of them."""
        return list(parameters)

    def update(
        self,
        parameters: ByName,
        gradients: ByName,
        moments: dict[str, tuple[Node, Node]],
        step: int,
        settings: Mapping[str, Node],
    ) -> dict[str, Node]:
        """One step of every parameter that is held and has a gradient; ``moments`` move along."""
        after = dict(parameters)
        for name in self.held(parameters):
            if name not in gradients:
                continue
            node = parameters[name]
            zeros = node.tape.floats(np.zeros(node.shape))
            first, second = moments.get(name, (zeros, zeros))
            found = self.adamw_step(node, gradients[name], first, second, step=step, **settings)
            settled = {key: node.tape.settle(value) for key, value in found.items()}
            after[name] = settled["parameter"]
            moments[name] = (settled["first_moment"], settled["second_moment"])
        return after

    def largest(self, logits: Node) -> np.ndarray:
        """The index of the largest logit at each position."""
        peak = logits.tape.domain.peak(logits.value, np.ones(logits.shape[-1]))
        # The peak is a double, which the largest ball may lie above or below.
        below = logits.tape.domain.magnitude(logits.value - logits.tape.domain.from_floats(peak))
        return np.asarray(np.argmin(below, axis=-1).astype(np.int64))
