"""The rules of AdamW and of clipping (trainable-decoder, "Overfit a Fixed Batch …")."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from conformance.model import Tensor
from conformance.truth.arithmetic.functions import power, sqrt
from conformance.truth.arithmetic.nodes import Node

#: Added to the norm by the clipping of the documents' code, so that zero gradients do no harm.
_MARGIN = Tensor(shape=(), data=(Decimal("1e-6"),))


class OptimiserRules:
    """I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, alg. 2."""

    def adamw_step(
        self,
        parameter: Node,
        gradient: Node,
        first_moment: Node,
        second_moment: Node,
        *,
        step: int,
        learning_rate: Node,
        beta_1: Node,
        beta_2: Node,
        eps: Node,
        weight_decay: Node,
    ) -> dict[str, Node]:
        """One step, number ``step`` counted from 1; all arguments of one shape."""
        first = self.first_moment(first_moment, gradient, beta_1)
        second = self.second_moment(second_moment, gradient, beta_2)
        betas = (beta_1, beta_2)
        direction = self.corrected_direction(first, second, step=step, betas=betas, eps=eps)
        return {
            "parameter": self.moved(parameter, direction, learning_rate, weight_decay),
            "first_moment": first,
            "second_moment": second,
        }

    def first_moment(self, moment: Node, gradient: Node, beta_1: Node) -> Node:
        return beta_1 * moment + (1 - beta_1) * gradient

    def second_moment(self, moment: Node, gradient: Node, beta_2: Node) -> Node:
        return beta_2 * moment + (1 - beta_2) * (gradient * gradient)

    def corrected(self, moment: Node, beta: Node, step: int) -> Node:
        """moment / (1 - beta^step): what the zeros at the start took away."""
        return moment / (1 - power(beta, step))

    def corrected_direction(
        self, first: Node, second: Node, *, step: int, betas: tuple[Node, Node], eps: Node
    ) -> Node:
        """The direction of both moments, each corrected before anything else is done with it."""
        corrected = (self.corrected(first, betas[0], step), self.corrected(second, betas[1], step))
        return self.direction(*corrected, eps)

    def direction(self, first: Node, second: Node, eps: Node) -> Node:
        """first / (sqrt(second) + eps), both corrected; eps stands outside the root."""
        return first / (sqrt(second) + eps)

    def moved(
        self, parameter: Node, direction: Node, learning_rate: Node, weight_decay: Node
    ) -> Node:
        """What decay leaves of the parameter, less the rate times the direction."""
        return self.decayed(parameter, learning_rate, weight_decay) - learning_rate * direction

    def decayed(self, parameter: Node, learning_rate: Node, weight_decay: Node) -> Node:
        """Decoupled: scaled by the rate, and apart from the gradient."""
        return parameter - learning_rate * weight_decay * parameter

    def clip_gradients(
        self, gradients: Mapping[str, Node], *, max_norm: Node
    ) -> dict[str, Node | Mapping[str, Node]]:
        """All gradients times one factor: max_norm / (norm + 1e-6) where that is less than 1."""
        norm = self.norm(list(gradients.values()))
        return {"gradients": self.all_clipped(gradients, norm, max_norm), "norm": norm}

    def all_clipped(
        self, gradients: Mapping[str, Node], norm: Node, max_norm: Node
    ) -> dict[str, Node]:
        """Every gradient times the same factor; ``norm`` is that of all of them together."""
        factor = self.clipping_factor(norm, max_norm)
        return {name: self.clipped(gradient, factor) for name, gradient in gradients.items()}

    def norm(self, nodes: list[Node]) -> Node:
        """The root of the sum of the squares of all elements."""
        total = self.sum_of_squares(nodes[0])
        for node in nodes[1:]:
            total = total + self.sum_of_squares(node)
        return sqrt(total)

    def sum_of_squares(self, node: Node) -> Node:
        flat = node.reshape((int(np.prod(node.shape, dtype=np.int64)),))
        return (flat * flat).sum(0)

    def clipping_factor(self, norm: Node, max_norm: Node) -> Node | None:
        """None where nothing is clipped."""
        factor = max_norm / self.with_margin(norm)
        domain = norm.tape.domain
        return factor if float(domain.sign((factor - 1).value)) < 0 else None

    def with_margin(self, norm: Node) -> Node:
        """What the largest norm is divided by."""
        return norm + norm.tape.leaf(_MARGIN)

    def clipped(self, gradient: Node, factor: Node | None) -> Node:
        return gradient if factor is None else gradient * factor
