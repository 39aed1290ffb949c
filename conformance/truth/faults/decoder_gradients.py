"""Gradients of the decoder that do not come, or come from too little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault

Blocks = Sequence[Mapping[str, Node]]


class HeadInputDetached(Fault):
    """What the head reads was detached, so that nothing but the head received a gradient."""

    breaks = "DEC-GRADIENT"
    also = ("GRAD-PRESENT",)
    sources = ("C-50",)
    mend = "Let the gradient pass from the head into the final norm; no detach, no copy."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        return super().head(x.detach(), parameters)


class HeadDetached(Fault):
    """The head was taken as a constant, and no gradient came for it."""

    breaks = "DEC-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Register the head as a parameter."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        return super().head(x, {**parameters, "head": parameters["head"].detach()})


class FinalNormDetached(Fault):
    """Scale and shift of the final norm were taken as constants, and no gradient came for them."""

    breaks = "DEC-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Register the scale and shift of the final norm as parameters."

    def final_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        return super().final_norm(x, gamma.detach(), beta.detach(), eps=eps)


class BlocksDetached(Fault):
    """The blocks were run without a graph: neither they nor the embedding received a gradient."""

    breaks = "DEC-GRADIENT"
    also = ("GRAD-PRESENT",)
    sources = ("C-51",)
    mend = "Run the blocks inside the graph; no_grad belongs to inference."

    def run_blocks(self, x: Node, blocks: Blocks, *, heads: int, eps: Node) -> Node:
        return super().run_blocks(x, blocks, heads=heads, eps=eps).detach()


class BlocksConstant(Fault):
    """The parameters of the blocks were taken as constants, and no gradient came for them."""

    breaks = "DEC-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Keep the blocks in a container that registers their parameters."

    def blocks(self, parameters: Mapping[str, Node]) -> Blocks:
        return [
            {name: node.detach() for name, node in block.items()}
            for block in super().blocks(parameters)
        ]


class FirstBlocksConstant(Fault):
    """The parameters of all blocks but the last were taken as constants."""

    breaks = "DEC-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Train every block; freezing the lower ones is another procedure."

    def blocks(self, parameters: Mapping[str, Node]) -> Blocks:
        *lower, last = super().blocks(parameters)
        return [*({name: node.detach() for name, node in block.items()} for block in lower), last]


class GradientStopsAtLastBlock(Fault):
    """What the last block reads was detached, so that nothing below it received a gradient."""

    breaks = "DEC-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Let the gradient pass through every block."

    def run_blocks(self, x: Node, blocks: Blocks, *, heads: int, eps: Node) -> Node:
        below = super().run_blocks(x, blocks[:-1], heads=heads, eps=eps).detach()
        return super().run_blocks(below, blocks[-1:], heads=heads, eps=eps)


class GradientPastBlocks(Fault):
    """The gradient reached the embedding along the trunk alone, past the branches."""

    breaks = "DEC-GRADIENT"
    sources = ("C-51",)
    mend = "Compute the branches inside the graph: their input needs its gradient too."

    def run_blocks(self, x: Node, blocks: Blocks, *, heads: int, eps: Node) -> Node:
        y = super().run_blocks(x.detach(), blocks, heads=heads, eps=eps)
        return y.with_rule((y, x), lambda g: (g, g))


class EmbeddingDetached(Fault):
    """The embedding was detached, so that neither of its tables received a gradient."""

    breaks = "DEC-GRADIENT"
    also = ("GRAD-PRESENT", "EMB-GRADIENT")
    mend = "Look the rows up inside the graph."

    def embed(self, tokens: np.ndarray, token_embedding: Node, position_embedding: Node) -> Node:
        return super().embed(tokens, token_embedding, position_embedding).detach()


class ZeroGradientsLeftOut(Fault):
    """A gradient that is zero everywhere was left out, as if nothing had depended on it."""

    breaks = "DEC-ZERO-GRADIENTS"
    also = ("TRAIN-ABSENT-NOT-ZERO",)
    mend = "Give an array of zeros: a gradient that is absent says something else."

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        named = {name for value in arguments.values() if isinstance(value, dict) for name in value}
        return {
            name: node
            for name, node in super().deliver(outputs, arguments).items()
            if name not in named or np.any(node.magnitude() != 0)
        }

    def backward(self, loss: Node, parameters: Mapping[str, Node]) -> dict[str, Node]:
        found = super().backward(loss, parameters)
        return {name: node for name, node in found.items() if np.any(node.magnitude() != 0)}
