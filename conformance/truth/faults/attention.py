"""Mistakes in the scores of attention, in its heads and in its four maps."""

from __future__ import annotations

import numpy as np

from conformance.truth.arithmetic.functions import sqrt
from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault

# -------------------------------------------------------------------------------------- the scale


class ScaleForgotten(Fault):
    """The scores were not divided by the root of the width of a head."""

    breaks = "ATT-SCALE"
    sources = ("BUG-ATT-06",)
    mend = "Divide the scores by sqrt(d_head)."

    def scale(self, scores: Node, d_head: int) -> Node:
        return scores


class ScaleWithoutRoot(Fault):
    """The scores were divided by the width of a head instead of by its root."""

    breaks = "ATT-SCALE"
    mend = "Divide the scores by sqrt(d_head), once."

    def scale(self, scores: Node, d_head: int) -> Node:
        return scores / d_head


class ScaleOfWholeWidth(Fault):
    """The scores were divided by the root of the whole width, all heads together."""

    breaks = "ATT-SCALE"
    sources = ("BUG-ATT-06",)
    mend = "Divide by sqrt(d_head): a score is a product over the features of one head."

    def scale(self, scores: Node, d_head: int) -> Node:
        return super().scale(scores, d_head * scores.shape[1])


class ScaleOfHeads(Fault):
    """The scores were divided by the root of the number of heads."""

    breaks = "ATT-SCALE"
    sources = ("BUG-ATT-06",)
    mend = "Divide by sqrt(d_head), the root of the width of a head."

    def scale(self, scores: Node, d_head: int) -> Node:
        return super().scale(scores, scores.shape[1])


class ScaleMultiplied(Fault):
    """The scores were multiplied by the root of the width of a head."""

    breaks = "ATT-SCALE"
    sources = ("BUG-ATT-06",)
    mend = "Divide by sqrt(d_head), or multiply by its reciprocal."

    def scale(self, scores: Node, d_head: int) -> Node:
        return scores * sqrt(scores.tape.floats(np.array(d_head)))


# -------------------------------------------------------------------------------------- the heads


class HeadsForgotten(Fault):
    """Attention had one head, whatever the number that was asked for."""

    breaks = "ATT-HEADS"
    mend = "Split the features into the heads, and let each have scores of its own."

    def split_heads(self, x: Node, heads: int) -> Node:
        return super().split_heads(x, 1)


class HeadsInterleaved(Fault):
    """Neighbouring features went to different heads, and came back the same way."""

    breaks = "ATT-HEADS"
    sources = ("C-32",)
    mend = "Give head k the features from k d_head on: [..., h, d_head], not [..., d_head, h]."

    def split_heads(self, x: Node, heads: int) -> Node:
        batch, length, width = x.shape
        return x.reshape((batch, length, width // heads, heads)).transpose((0, 3, 1, 2))

    def merge_heads(self, x: Node) -> Node:
        batch, heads, length, width = x.shape
        return x.transpose((0, 2, 3, 1)).reshape((batch, length, heads * width))


class HeadsReread(Fault):
    """Features were split as [B, h, T, d_head] and merged without exchanging any axes."""

    breaks = "ATT-HEADS"
    sources = ("C-32",)
    mend = "Reshape to [B, T, h, d_head], then exchange the axes of positions and heads."

    def split_heads(self, x: Node, heads: int) -> Node:
        batch, length, width = x.shape
        return x.reshape((batch, heads, length, width // heads))

    def merge_heads(self, x: Node) -> Node:
        batch, heads, length, width = x.shape
        return x.reshape((batch, length, heads * width))


class HeadsSplitWithoutTranspose(Fault):
    """Features were split as [B, h, T, d_head] without exchanging axes, and merged rightly."""

    breaks = "ATT-HEADS"
    also = ("ATT-CAUSAL",)
    sources = ("C-32",)
    mend = "Reshape to [B, T, h, d_head], then exchange the axes of positions and heads."

    def split_heads(self, x: Node, heads: int) -> Node:
        batch, length, width = x.shape
        return x.reshape((batch, heads, length, width // heads))


class HeadsMergedWithoutTranspose(Fault):
    """Heads were split rightly, and merged as [B, T, d] without exchanging axes."""

    breaks = "ATT-HEADS"
    also = ("ATT-CAUSAL",)
    sources = ("C-32",)
    mend = "Exchange the axes of heads and positions back before merging."

    def merge_heads(self, x: Node) -> Node:
        batch, heads, length, width = x.shape
        return x.reshape((batch, length, heads * width))


class FirstHeadForAll(Fault):
    """The weights of the first head were used for the values of every head."""

    breaks = "ATT-HEADS"
    mend = "Keep the axis of the heads in the weights."

    def attention_weights(self, scores: Node) -> Node:
        weights = super().attention_weights(scores)
        return take(weights, (slice(None), slice(1))).broadcast_to(weights.shape)


class HeadsUnchecked(Fault):
    """A number of heads that does not divide the width was taken as one head."""

    breaks = "ATT-ERR-HEADS"
    mend = "Refuse a number of heads that does not divide the width."

    def check_attention(self, x: Node, heads: int) -> None:
        super().check_attention(x, 1)

    def split_heads(self, x: Node, heads: int) -> Node:
        return super().split_heads(x, heads if heads > 0 and x.shape[-1] % heads == 0 else 1)


class SequenceAccepted(Fault):
    """An input of another rank than three was taken as a batch of sequences."""

    breaks = "ATT-ERR-INPUT-RANK"
    mend = "Refuse whatever has not the three axes of batch, position and feature."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        batch = x if x.ndim == 3 else x.reshape((-1, *((1, *x.shape)[-2:])))
        y = super().causal_attention(batch, w_q, w_k, w_v, w_o, heads=heads)
        return y if x.ndim == 3 else y.reshape(x.shape)


# ----------------------------------------------------------------- queries, keys, values, the maps


class SoftmaxOverQueries(Fault):
    """The weights summed to one over the queries of a key instead of over the keys of a query."""

    breaks = "ATT-OVER-KEYS"
    also = ("ATT-CAUSAL", "BLOCK-CAUSAL")
    sources = ("C-29",)
    mend = "Take softmax over the last axis, that of the keys."

    def attention_weights(self, scores: Node) -> Node:
        allowed = self.allowed(scores.shape[-1])
        return self.probabilities(scores.swap_last(), allowed.T).swap_last()


class ScoresTransposed(Fault):
    """Queries and keys were exchanged in the scores."""

    breaks = "ATT-FORMULA"
    mend = "Multiply the queries by the transposed keys: q k^T."

    def scores(self, q: Node, k: Node) -> Node:
        return super().scores(k, q)


class KeysForValues(Fault):
    """Keys and values were exchanged."""

    breaks = "ATT-FORMULA"
    mend = "Score with the keys, and weight the values."

    def attend(self, q: Node, k: Node, v: Node) -> Node:
        return super().attend(q, v, k)


class QueriesForKeys(Fault):
    """The queries were scored against themselves, the keys were not used."""

    breaks = "ATT-FORMULA"
    mend = "Multiply the queries by the transposed keys: q k^T."

    def scores(self, q: Node, k: Node) -> Node:
        return super().scores(q, q)


class ValuesUnprojected(Fault):
    """The input itself was weighted, without the map of the values."""

    breaks = "ATT-FORMULA"
    mend = "Weight x w_v."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        self.check_attention(x, heads)
        q, k = (self.split_heads(self.linear(x, weight), heads) for weight in (w_q, w_k))
        return self.linear(self.merge_heads(self.attend(q, k, self.split_heads(x, heads))), w_o)


class OutputUnprojected(Fault):
    """The merged heads came back as they were, without the map of the output."""

    breaks = "ATT-FORMULA"
    mend = "Multiply the merged heads by w_o."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        self.check_attention(x, heads)
        q, k, v = (self.split_heads(self.linear(x, w), heads) for w in (w_q, w_k, w_v))
        return self.merge_heads(self.attend(q, k, v))


class AttentionWeightsTransposed(Fault):
    """The four maps of attention were taken as [out, in]."""

    breaks = "ATT-FORMULA"
    mend = "Multiply from the left by rows: x W with W of shape [in, out]; d by d hides it."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        turned = (weight.swap_last() for weight in (w_q, w_k, w_v, w_o))
        return super().causal_attention(x, *turned, heads=heads)


class OutputWeightTransposed(Fault):
    """The map of the output was taken as [out, in], the other three were right."""

    breaks = "ATT-FORMULA"
    mend = "Multiply the merged heads by w_o of shape [in, out]; d by d hides it."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        return super().causal_attention(x, w_q, w_k, w_v, w_o.swap_last(), heads=heads)
