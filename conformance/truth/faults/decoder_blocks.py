"""Mistakes of the decoder's blocks and of its final norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault

Blocks = Sequence[Mapping[str, Node]]

# ---------------------------------------------------------------------------------- the blocks


class OnlyLastBlock(Fault):
    """The last block alone was applied, to the embedding."""

    breaks = "DEC-BLOCKS-IN-ORDER"
    sources = ("C-33", "C-34", "C-35")
    mend = "Feed each block with what the one before it gave, not with the embedding."

    def run_blocks(self, x: Node, blocks: Blocks, *, heads: int, eps: Node) -> Node:
        return super().run_blocks(x, blocks[-1:], heads=heads, eps=eps)


class OnlyFirstBlock(Fault):
    """The first block alone was applied."""

    breaks = "DEC-BLOCKS-IN-ORDER"
    mend = "Apply every block; return after the loop, not inside it."

    def run_blocks(self, x: Node, blocks: Blocks, *, heads: int, eps: Node) -> Node:
        return super().run_blocks(x, blocks[:1], heads=heads, eps=eps)


class BlocksForgotten(Fault):
    """No block was applied."""

    breaks = "DEC-BLOCKS-IN-ORDER"
    mend = "Apply every block to the embedding before the final norm."

    def run_blocks(self, x: Node, blocks: Blocks, *, heads: int, eps: Node) -> Node:
        return x


class BlocksReversed(Fault):
    """The blocks were applied from the last to the first."""

    breaks = "DEC-BLOCKS-IN-ORDER"
    mend = "Apply block 0 first."

    def run_blocks(self, x: Node, blocks: Blocks, *, heads: int, eps: Node) -> Node:
        return super().run_blocks(x, blocks[::-1], heads=heads, eps=eps)


class BlocksInParallel(Fault):
    """Every block read the embedding, and the increments of all of them were added to it."""

    breaks = "DEC-BLOCKS-IN-ORDER"
    sources = ("C-34",)
    mend = "Feed each block with what the one before it gave, not with the embedding."

    def run_blocks(self, x: Node, blocks: Blocks, *, heads: int, eps: Node) -> Node:
        y = x
        for parameters in blocks:
            y = y + (self.block(x, parameters, heads=heads, eps=eps) - x)
        return y


class FirstBlockRepeated(Fault):
    """Every block had the parameters of the first one."""

    breaks = "DEC-BLOCKS-OWN"
    sources = ("C-36",)
    mend = "Build as many blocks as there are; don't repeat one object."

    def blocks(self, parameters: Mapping[str, Node]) -> Blocks:
        found = super().blocks(parameters)
        return [found[0] for _ in found]


class LastBlockRepeated(Fault):
    """Every block had the parameters of the last one."""

    breaks = "DEC-BLOCKS-OWN"
    sources = ("C-36",)
    mend = "Give every block its own parameters; one that is loaded last must not fill them all."

    def blocks(self, parameters: Mapping[str, Node]) -> Blocks:
        found = super().blocks(parameters)
        return [found[-1] for _ in found]


# ------------------------------------------------------------------------------- the final norm


class FinalNormForgotten(Fault):
    """The head read what the last block gave, without the final norm."""

    breaks = "DEC-FINAL-NORM"
    sources = ("C-38",)
    mend = "Normalise what the last block gave before the head."

    def final_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        return x


class FinalNormBeforeBlocks(Fault):
    """The final norm was applied to the embedding, before the blocks."""

    breaks = "DEC-FINAL-NORM"
    mend = "Normalise what the last block gave, and nothing before the first."

    def decoder(
        self, tokens: np.ndarray, parameters: Mapping[str, Node], *, heads: int, eps: Node
    ) -> Node:
        p = parameters
        x = self.embed(tokens, p["token_embedding"], p["position_embedding"])
        x = self.final_norm(x, p["final_norm.gamma"], p["final_norm.beta"], eps=eps)
        return self.head(self.run_blocks(x, self.blocks(p), heads=heads, eps=eps), p)


class FinalNormOfLastBlock(Fault):
    """The final norm had the scale and shift of the second norm of the last block."""

    breaks = "DEC-FINAL-NORM"
    mend = "Give the final norm its own scale and shift."

    def decoder(
        self, tokens: np.ndarray, parameters: Mapping[str, Node], *, heads: int, eps: Node
    ) -> Node:
        last = dict(self.blocks(parameters)[-1])
        own = {f"final_norm.{name}": last[f"feed_forward_norm.{name}"] for name in _SCALES}
        return super().decoder(tokens, {**parameters, **own}, heads=heads, eps=eps)


class FinalNormPlain(Fault):
    """The final norm left its scale and shift out."""

    breaks = "DEC-FINAL-NORM"
    mend = "Multiply by gamma and add beta in the final norm too."

    def final_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        return self.standardise(self.centre(x), eps)


_SCALES = ("gamma", "beta")
