"""The rules of softmax, causal attention, its sublayer and the block."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformance.errors import Rejected
from conformance.truth.arithmetic.functions import exp, sqrt
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.reference.feed_forward import FeedForwardRules


class AttentionRules(FeedForwardRules):
    """decoder-block, "Building a Block from Two Residual Branches", the first branch.

    The documents name attention and leave its formula to another chapter; the one here is the
    decision of the clause ATT-FORMULA.
    """

    # ------------------------------------------------------------------------------- softmax

    def softmax(self, x: Node) -> Node:
        """exp(x - max) / sum exp(x - max) over the last axis of x [..., n]."""
        return self.probabilities(x, np.ones(x.shape[-1]))

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        """Softmax over the places of the last axis where ``allowed`` is 1, zero at the others."""
        p = self.normalise(self.exponentials(scores, allowed))
        return p.with_rule((scores,), lambda g: (self.softmax_gradient(p, g),))

    def exponentials(self, scores: Node, allowed: np.ndarray) -> Node:
        """exp(score - largest allowed score) where allowed, zero elsewhere.

        The largest is taken as a number: subtracting it changes no value and no gradient.
        """
        mask = scores.tape.floats(allowed)
        return exp((scores - self.peak(scores, allowed)) * mask) * mask

    def peak(self, scores: Node, allowed: np.ndarray) -> Node:
        return scores.tape.floats(scores.tape.domain.peak(scores.value, allowed))

    def normalise(self, weights: Node) -> Node:
        return weights / weights.sum(-1, keepdims=True)

    def softmax_gradient(self, p: Node, g: Node) -> Node:
        """p (g - sum p g): each score moves every probability."""
        return p * (g - (p * g).sum(-1, keepdims=True))

    # ----------------------------------------------------------------------------- attention

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        """merge(softmax(mask(q k^T / sqrt(d_head))) v) w_o for x [B, T, d], weights [d, d].

        Raises Rejected as ``check_attention`` does.
        """
        self.check_attention(x, heads)
        q, k, v = (self.split_heads(self.linear(x, weight), heads) for weight in (w_q, w_k, w_v))
        return self.linear(self.merge_heads(self.attend(q, k, v)), w_o)

    def check_attention(self, x: Node, heads: int) -> None:
        if x.ndim != 3:
            raise Rejected("input-rank", f"the input has rank {x.ndim}, not 3")
        if heads <= 0 or x.shape[-1] % heads:
            raise Rejected("heads", f"{heads} heads do not divide a width of {x.shape[-1]}")

    def split_heads(self, x: Node, heads: int) -> Node:
        """[B, T, d] as [B, h, T, d_head]: head k has the features from k d_head on."""
        batch, length, width = x.shape
        return x.reshape((batch, length, heads, width // heads)).transpose((0, 2, 1, 3))

    def merge_heads(self, x: Node) -> Node:
        """The inverse of ``split_heads``."""
        batch, heads, length, width = x.shape
        return x.transpose((0, 2, 1, 3)).reshape((batch, length, heads * width))

    def attend(self, q: Node, k: Node, v: Node) -> Node:
        """The values of the permitted positions, weighted; all [B, h, T, d_head]."""
        return self.attention_weights(self.scores(q, k)) @ v

    def scores(self, q: Node, k: Node) -> Node:
        return self.scale(q @ k.swap_last(), q.shape[-1])

    def scale(self, scores: Node, d_head: int) -> Node:
        return scores / sqrt(scores.tape.floats(np.array(d_head)))

    def attention_weights(self, scores: Node) -> Node:
        """Softmax over the keys (the last axis) that each query may see."""
        return self.probabilities(scores, self.allowed(scores.shape[-1]))

    def allowed(self, length: int) -> np.ndarray:
        """Row t has ones at 0..t: a position sees itself and what came before."""
        return np.tril(np.ones((length, length)))

    # ----------------------------------------------------------------- sublayer and block

    def attention_sublayer(
        self,
        x: Node,
        gamma: Node,
        beta: Node,
        w_q: Node,
        w_k: Node,
        w_v: Node,
        w_o: Node,
        *,
        heads: int,
        eps: Node,
    ) -> Node:
        """x + causal_attention(layer_norm(x)); the trunk x is not normalised."""
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        increment = self.causal_attention(normalised, w_q, w_k, w_v, w_o, heads=heads)
        return self.residual_add(x, increment)

    def block(self, x: Node, parameters: Mapping[str, Node], *, heads: int, eps: Node) -> Node:
        """Y = U + F(norm(U)) with U = X + A(norm(X)): the second branch reads and adds to U."""
        u = self.first_branch(x, parameters, heads=heads, eps=eps)
        return self.second_branch(u, parameters, eps=eps)

    def first_branch(
        self, x: Node, parameters: Mapping[str, Node], *, heads: int, eps: Node
    ) -> Node:
        names = ("attention_norm.gamma", "attention_norm.beta", *_WEIGHTS)
        return self.attention_sublayer(x, *(parameters[n] for n in names), heads=heads, eps=eps)

    def second_branch(self, u: Node, parameters: Mapping[str, Node], *, eps: Node) -> Node:
        names = ("feed_forward_norm.gamma", "feed_forward_norm.beta", *_MAPS)
        return self.feed_forward_sublayer(u, *(parameters[n] for n in names), eps=eps)


_WEIGHTS = tuple(f"attention.{name}" for name in ("w_q", "w_k", "w_v", "w_o"))
_MAPS = tuple(f"feed_forward.{name}" for name in ("w_1", "b_1", "w_2", "b_2"))
