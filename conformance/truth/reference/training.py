"""The rules of training on a fixed batch (trainable-decoder, "Overfit a Fixed Batch …")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from conformance.truth.arithmetic.gathering import stack
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.reverse import adjoints, ancestry
from conformance.truth.reference.decoder import DecoderRules
from conformance.truth.reference.initialisation import InitialisationRules
from conformance.truth.reference.optimiser import OptimiserRules

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

        Of the last step the gradients themselves, and after it: the parameters, how many elements
        of each the optimiser holds, and the token that has the largest logit at each position.
        """
        settings = {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "beta_2": beta_2,
            "eps": adam_eps,
            "weight_decay": weight_decay,
        }
        loss_of = partial(
            self.decoder_loss, tokens, targets, heads=heads, eps=eps, ignore_index=ignore_index
        )
        losses: list[Node] = []
        norms: dict[str, list[Node]] = {}
        moments: dict[str, tuple[Node, Node]] = {}
        gradients: ByName = {}
        seen: list[ByName] = []
        earlier = parameters
        for step in range(1, steps + 1):
            loss, earlier = loss_of(parameters), parameters
            gradients = self.gathered(gradients, self.backward(loss, self.found(parameters)))
            limited = self.limited(gradients, max_norm)
            seen.append(self.observed(gradients, limited, parameters, settings))
            for name, gradient in seen[-1].items():
                norms.setdefault(name, []).append(loss.tape.settle(self.norm([gradient])))
            parameters = self.update(parameters, limited, moments, step, settings)
            losses.append(loss.tape.settle(self.reported(loss, partial(loss_of, parameters))))
        logits = self.decoder(tokens, self.predicting(earlier, parameters), heads=heads, eps=eps)
        final = self.found(parameters)
        return {
            "losses": stack(losses),
            "gradient_norms": {name: stack(found) for name, found in norms.items()},
            "gradients": self.kept(seen),
            "parameters": final,
            "optimised": {name: final[name].value.size for name in self.held(final)},
            "predictions": self.largest(logits),
        }

    def found(self, parameters: ByName) -> dict[str, Node]:
        """What the model finds of its parameters."""
        return {name: node for name, node in parameters.items() if self.registers(name)}

    def backward(self, loss: Node, parameters: ByName) -> dict[str, Node]:
        """The gradient of every parameter that the loss depends on.

        On a tape that remembers, the steps before are behind the parameters: they are left out.
        """
        ordered = ancestry([loss], ends=parameters.values())
        found = adjoints(loss, loss.tape.floats(np.ones(())), ordered)
        return {name: found[id(node)] for name, node in parameters.items() if id(node) in found}

    def gathered(self, before: ByName, gradients: ByName) -> ByName:
        """The gradients of this step: those of the one ``before`` are cleared."""
        del before
        return gradients

    def limited(self, gradients: ByName, max_norm: Node) -> ByName:
        """What the step is made with: clipped, all together."""
        clipped: Any = self.clip_gradients(gradients, max_norm=max_norm)["gradients"]
        return cast("ByName", clipped)

    def observed(
        self,
        gradients: ByName,
        limited: ByName,
        parameters: ByName,
        settings: Mapping[str, Node],
    ) -> ByName:
        """The gradients that are told, and their norms: those of the loss, before ``limited``."""
        del limited, parameters, settings
        return gradients

    def kept(self, seen: Sequence[ByName]) -> ByName:
        """The gradients that are told element by element: those of the last step."""
        return seen[-1]

    def reported(self, before: Node, after: Callable[[], Node]) -> Node:
        """The loss that is told of a step: the one that it was made from."""
        del after
        return before

    def predicting(self, before: ByName, after: ByName) -> ByName:
        """The parameters that predict: those ``after`` the last step."""
        del before
        return after

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
        """One step of every parameter that is held and has a gradient; ``moments`` move along.

        What makes no step is a node of its own afterwards as well: on a tape that remembers, the
        next backward pass ends there and not in the steps before.
        """
        after = {name: node.reshape(node.shape) for name, node in parameters.items()}
        for name in self.held(self.found(parameters)):
            if name not in gradients:
                continue
            node = parameters[name]
            zeros = node.tape.floats(np.zeros(node.shape))
            first, second = moments.get(name, (zeros, zeros))
            found = self.adamw_step(
                parameter=node,
                gradient=gradients[name],
                first_moment=first,
                second_moment=second,
                step=step,
                **settings,
            )
            settled = {key: node.tape.settle(value) for key, value in found.items()}
            after[name] = settled["parameter"]
            moments[name] = (settled["first_moment"], settled["second_moment"])
        return after

    def largest(self, logits: Node) -> np.ndarray:
        """The index of the first of the largest logits at each position.

        Each is compared with each: rounded to a double, the largest may lie above itself.
        """
        values = logits.value
        signs = logits.tape.domain.sign(values[..., :, None] - values[..., None, :])
        return np.asarray(np.argmax(np.all(signs >= 0, axis=-1), axis=-1).astype(np.int64))
