"""Mistakes of the decoder's head, of what it returns, and of what enters it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformance.truth.arithmetic.functions import sqrt
from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.faults._pieces import average

# ------------------------------------------------------------------------------------- the head


class HeadTied(Fault):
    """The transposed token table was used for the head."""

    breaks = "DEC-HEAD"
    sources = ("C-49",)
    mend = "Give the head its own weight: this decoder does not tie it to the embedding."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        return self.linear(x, parameters["token_embedding"].swap_last())


class HeadReversed(Fault):
    """The logits came in the opposite order of the vocabulary."""

    breaks = "DEC-HEAD"
    sources = ("C-39",)
    mend = "Column v of the head gives the logit of token v."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        return take(super().head(x, parameters), (..., slice(None, None, -1)))


class HeadReread(Fault):
    """The numbers of the head were read as [V, d] without being transposed."""

    breaks = "DEC-HEAD"
    sources = ("C-39",)
    mend = "Store the head [d, V], or transpose what is stored [V, d]."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        weight = parameters["head"]
        return self.linear(x, weight.reshape(weight.shape[::-1]).swap_last())


class LogitsScaled(Fault):
    """The logits were divided by the square root of the width."""

    breaks = "DEC-HEAD"
    mend = "Give the product with the head as it is."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        return super().head(x, parameters) / sqrt(x.tape.floats(np.array(x.shape[-1])))


class ProbabilitiesReturned(Fault):
    """The decoder gave probabilities instead of logits."""

    breaks = "DEC-HEAD"
    mend = "Leave softmax to the loss."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        return self.softmax(super().head(x, parameters))


class OnlyLastPosition(Fault):
    """Logits came for the last position alone."""

    breaks = "DEC-ALL-POSITIONS"
    sources = ("C-41",)
    mend = "Apply the head at every position; picking the last belongs to generation."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        return super().head(take(x, (slice(None), slice(-1, None))), parameters)


class LastPositionEverywhere(Fault):
    """The logits of the last position came at every position."""

    breaks = "DEC-ALL-POSITIONS"
    also = ("DEC-CAUSAL",)
    mend = "Apply the head to each position's own features."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        last = super().head(take(x, (slice(None), slice(-1, None))), parameters)
        return last.broadcast_to((*x.shape[:-1], last.shape[-1]))


class FirstSequenceEverywhere(Fault):
    """The logits of the first sequence came for every sequence of the batch."""

    breaks = "DEC-BATCH"
    mend = "Give each sequence its own logits."

    def head(self, x: Node, parameters: Mapping[str, Node]) -> Node:
        first = super().head(take(x, slice(1)), parameters)
        return first.broadcast_to((x.shape[0], *first.shape[1:]))


class BatchCentred(Fault):
    """What the last block gave was centred over the batch."""

    breaks = "DEC-BATCH"
    mend = "Treat every sequence as if it were alone."

    def final_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        centred = x - average(x, (0,))
        return super().final_norm(centred, gamma, beta, eps=eps)


class TargetsFedIn(Fault):
    """The token rows of the targets were added to the hidden state of their own places."""

    breaks = "LOSS-TARGETS-OUTSIDE"
    also = ("TRAIN-CONFLICT",)
    sources = ("C-83",)
    mend = "Let the targets enter the cross-entropy alone."

    def decoder_loss(
        self,
        tokens: np.ndarray,
        targets: np.ndarray,
        parameters: Mapping[str, Node],
        *,
        heads: int,
        eps: Node,
        ignore_index: int,
    ) -> Node:
        p = parameters
        x = self.embed(tokens, p["token_embedding"], p["position_embedding"])
        self.check_targets(self.head(x, p), targets, ignore_index)
        scored = self.scored(targets, ignore_index)
        rows = self.token_rows(p["token_embedding"], np.where(scored, targets, 0))
        x = x + rows * x.tape.floats(scored.astype(np.float64)[..., None])
        x = self.run_blocks(x, self.blocks(p), heads=heads, eps=eps)
        x = self.final_norm(x, p["final_norm.gamma"], p["final_norm.beta"], eps=eps)
        return self.cross_entropy(self.head(x, p), targets, ignore_index=ignore_index)
