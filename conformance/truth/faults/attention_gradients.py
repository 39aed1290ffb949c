"""Mistakes in the gradients of attention, its values being right."""

from __future__ import annotations

import numpy as np

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault


class ScoreGradientUnscaled(Fault):
    """The gradient of the scores was not divided by the root of the width of a head."""

    breaks = "ATT-GRADIENT"
    mend = "Scale the gradient as the scores were scaled."

    def scale(self, scores: Node, d_head: int) -> Node:
        return super().scale(scores, d_head).with_rule((scores,), lambda g: (g,))


class ScoreGradientScaledTwice(Fault):
    """The gradient of the scores was divided by the root of the width of a head twice."""

    breaks = "ATT-GRADIENT"
    mend = "Scale the gradient once: either that of the scores or those of queries and keys."

    def scale(self, scores: Node, d_head: int) -> Node:
        def twice(g: Node) -> tuple[Node]:
            return (g / d_head,)

        return super().scale(scores, d_head).with_rule((scores,), twice)


class MaskedScoresDifferentiated(Fault):
    """The gradient took the softmax of all scores: the masked ones received some too."""

    breaks = "ATT-GRADIENT"
    also = ("ATT-CAUSAL",)
    mend = "Recompute the weights with the mask, so that masked scores get no gradient."

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        weights = super().probabilities(scores, allowed)
        everywhere = super().probabilities(scores, np.ones(allowed.shape))
        return weights.with_rule((scores,), lambda g: (self.softmax_gradient(everywhere, g),))


class QueriesDetached(Fault):
    """The queries were taken as constants."""

    breaks = "ATT-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Compute the queries inside the graph."

    def scores(self, q: Node, k: Node) -> Node:
        return super().scores(q.detach(), k)


class KeysDetached(Fault):
    """The keys were taken as constants."""

    breaks = "ATT-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Compute the keys inside the graph; a cache of them is for inference."

    def scores(self, q: Node, k: Node) -> Node:
        return super().scores(q, k.detach())


class ValuesDetached(Fault):
    """The values were taken as constants."""

    breaks = "ATT-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Compute the values inside the graph; a cache of them is for inference."

    def attend(self, q: Node, k: Node, v: Node) -> Node:
        return super().attend(q, k, v.detach())


class AttentionWeightsDetached(Fault):
    """The weights of attention were taken as constants: queries and keys received no gradient."""

    breaks = "ATT-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Compute the weights inside the graph."

    def attention_weights(self, scores: Node) -> Node:
        return super().attention_weights(scores).detach()


class OutputWeightDetached(Fault):
    """The map of the output was taken as a constant, and no gradient came for it."""

    breaks = "ATT-GRADIENT"
    also = ("GRAD-PRESENT",)
    mend = "Register w_o as a parameter whose gradient is asked for."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        return super().causal_attention(x, w_q, w_k, w_v, w_o.detach(), heads=heads)


class OutputWeightGradientTransposed(Fault):
    """The gradient of the map of the output was transposed, those of the others were right."""

    breaks = "ATT-GRADIENT"
    mend = "Multiply the transposed merged heads by the upstream gradient: [in, out]."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        turned = w_o.with_rule((w_o,), lambda g: (g.swap_last(),))
        return super().causal_attention(x, w_q, w_k, w_v, turned, heads=heads)


class KeyGradientUntransposed(Fault):
    """The gradient of the keys was that of the scores times the queries, without transposing."""

    breaks = "ATT-GRADIENT"
    mend = "Sum over the queries: dK = dS^T q."

    def scores(self, q: Node, k: Node) -> Node:
        products = (q @ k.swap_last()).with_rule((q, k), lambda g: (g @ k, g @ q))
        return self.scale(products, q.shape[-1])


class ValueGradientUntransposed(Fault):
    """The gradient of the values was the weights times the upstream, without transposing."""

    breaks = "ATT-GRADIENT"
    mend = "Sum over the queries: dV = P^T g."

    def attend(self, q: Node, k: Node, v: Node) -> Node:
        weights = self.attention_weights(self.scores(q, k))
        mixed = weights @ v
        return mixed.with_rule((weights, v), lambda g: (g @ v.swap_last(), weights @ g))


class InputGradientOfValues(Fault):
    """The gradient of the input came from the values alone, without queries and keys."""

    breaks = "ATT-GRADIENT"
    mend = "Add what comes back through the queries, the keys and the values."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        self.check_attention(x, heads)
        sources = ((x.detach(), w_q), (x.detach(), w_k), (x, w_v))
        q, k, v = (self.split_heads(self.linear(*source), heads) for source in sources)
        return self.linear(self.merge_heads(self.attend(q, k, v)), w_o)


class InputGradientWithoutQueries(Fault):
    """What comes back through the queries was missing in the gradient of the input."""

    breaks = "ATT-GRADIENT"
    mend = "Add what comes back through the queries, the keys and the values."

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        self.check_attention(x, heads)
        sources = ((x.detach(), w_q), (x, w_k), (x, w_v))
        q, k, v = (self.split_heads(self.linear(*source), heads) for source in sources)
        return self.linear(self.merge_heads(self.attend(q, k, v)), w_o)
