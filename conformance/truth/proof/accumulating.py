"""Forms that accumulate: running sums, running statistics, and attention key by key."""

from __future__ import annotations

import math

import numpy as np

from conformance.truth.arithmetic.functions import log
from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.reference import Reference

#: The roundings of a scale that is folded into two factors: two constants and two products.
_SCALING = 4.0

#: The roundings of one rescaling: an exponential near 1, to 3 ulp, and a product. What the
#: exponential of t is off by beyond, 2|t| ulp, adds up over all rescalings to what the exponential
#: of the whole distance to the largest score is allowed.
_RESCALING = 7.0

#: An honest score that is off by more acts on its exponential by so much more than to first order
#: that the guard refuses it. So only scores as close as this can change places.
_CLOSE = 0.5


class Accumulating(Reference):
    """Sums that begin at the bias, or at the trunk, and take up the products from there.

    Each partial sum then holds the bias or the trunk, so that its rounding counts once for every
    term: n u |b| and f u |x| more than a sum that adds them last. ``addmm`` of the frameworks and
    most handwritten kernels do this. Running means and variances accumulate likewise.
    """

    def linear(self, x: Node, weight: Node, bias: Node | None = None) -> Node:
        y = super().linear(x, weight, bias)
        if bias is None:
            return y
        return y.allowing(weight.shape[0], lambda: np.broadcast_to(bias.magnitude(), y.shape))

    def layer_norm(self, x: Node, gamma: Node, beta: Node, *, eps: Node) -> Node:
        mean, variance = self.moments(x)
        return self.affine((x - mean) / self.root(variance, eps), gamma, beta)

    def moments(self, x: Node) -> tuple[Node, Node]:
        """Mean and variance, the variance as far off as Welford's one pass over the features.

        His running mean is off by up to about n u mean|x| at any feature. That error enters the
        sum of squares to first order, times the deviation of the feature from the mean, so that
        the variance is off by up to 2 sqrt(2) n u mean|x| sigma (Cauchy and Schwarz over the
        features). 3 (n + 1) covers it together with the rounding of the update.
        """
        mean = self.mean(x)
        variance = self.variance(x - mean)
        width = x.shape[-1]

        def extent() -> np.ndarray:
            typical = x.magnitude().sum(-1, keepdims=True) / width
            return np.asarray(np.sqrt(variance.magnitude()) * typical)

        return mean, variance.allowing(3 * (width + 1), extent)

    # ------------------------------------------------------------------------------- softmax

    def probabilities(self, scores: Node, allowed: np.ndarray) -> Node:
        """``plain`` probabilities are those of a kernel whose every step is differentiated."""
        weights = self.exponentials(scores, allowed)
        plain, p = super().normalise(weights), _by_logarithm(self.normalise(weights), scores)

        def rule(g: Node) -> tuple[Node]:
            at_peak = self.at_peak(self.softmax_gradient(plain, g), scores, allowed)
            return (self.softmax_gradient(p, g) + at_peak,)

        return p.with_rule((scores,), rule)

    def normalise(self, weights: Node) -> Node:
        total = weights.sum(-1, keepdims=True)
        return weights / total.allowing(
            _RESCALING, lambda: _rescaled(weights).sum(-1, keepdims=True)
        )

    def at_peak(self, moved: Node, scores: Node, allowed: np.ndarray) -> Node:
        """What the largest score gets more where it is differentiated as well: zero, with errors.

        Subtracting it changes nothing. Its share is minus the sum of all gradients ``moved`` of
        the scores, off by their errors, as far as they don't cancel, and by those of the sum.
        """
        domain = scores.tape.domain
        distance = domain.magnitude(scores.value - domain.peak(scores.value, allowed))
        largest = scores.tape.floats(allowed * (distance <= _CLOSE))
        return -moved.sum(-1, keepdims=True) * largest

    # ----------------------------------------------------------------------------- attention

    def causal_attention(
        self, x: Node, w_q: Node, w_k: Node, w_v: Node, w_o: Node, *, heads: int
    ) -> Node:
        """Queries, keys and values by one product, whose input gradient is one product too.

        It adds up three times as many terms: 2 d roundings more than three products of d terms.
        """
        self.check_attention(x, heads)
        weights = (w_q, w_k, w_v)
        attended = self.attend(*(self.split_heads(self.linear(x, w), heads) for w in weights))

        def rule(g: Node) -> tuple[Node, ...]:
            moved = [self.merge_heads(d) for d in attended.rule(self.split_heads(g, heads)) if d]
            dq, dk, dv = (self.input_gradient(d, w) for d, w in zip(moved, weights, strict=True))

            def terms() -> np.ndarray:
                pairs = zip(moved, weights, strict=True)
                return np.asarray(sum(d.magnitude() @ w.magnitude().T for d, w in pairs))

            dx = (dq + dk + dv).allowing(2 * x.shape[-1], terms)
            return dx, *(self.weight_gradient(x, d) for d in moved)

        y = self.merge_heads(attended).with_rule((x, *weights), rule)
        return self.linear(y, w_o)

    def attend(self, q: Node, k: Node, v: Node) -> Node:
        """Key by key, as fused kernels attend, with the gradient that they have.

        The scale may be folded into q and k before their product, so its roundings count with the
        magnitudes of the terms. Weighted values are summed before they are divided, and rescaled
        whenever a larger score turns up. Backward, the weights are computed again, and sum(p dp)
        over the keys is taken as sum(g y) over the features of the answer, with the error that
        the answer was computed with.
        """
        width, length = q.shape[-1], k.shape[-2]

        def terms() -> np.ndarray:
            product = q.magnitude() @ np.swapaxes(k.magnitude(), -1, -2)
            return np.asarray(product / np.sqrt(width))

        scores = self.scores(q, k).allowing(_SCALING, terms)
        allowed = self.allowed(length)
        plain = self.normalise(self.exponentials(scores, allowed))
        weights = _by_logarithm(plain, scores)
        y = (weights @ v).allowing(_RESCALING, lambda: _rescaled(weights) @ v.magnitude())

        def rule(g: Node) -> tuple[Node, Node, Node]:
            dp = g @ v.swap_last()
            moved = weights * (dp - (g * y).sum(-1, keepdims=True))
            moved = moved + self.at_peak(self.softmax_gradient(plain, dp), scores, allowed)
            dq, dk = moved @ k, moved.swap_last() @ q
            return self.scale(dq, width), self.scale(dk, width), weights.swap_last() @ g

        return y.with_rule((q, k, v), rule)

    # ---------------------------------------------------------------------------------- loss

    def negative_log_likelihood(self, logits: Node, targets: np.ndarray) -> Node:
        everywhere = np.ones(logits.shape[-1])
        weights = self.exponentials(logits, everywhere)
        total = weights.sum(-1).allowing(_RESCALING, lambda: _rescaled(weights).sum(-1))
        centred = logits - self.peak(logits, everywhere)
        return log(total) - take(centred, (np.arange(len(targets)), targets))

    def loss_gradient(self, logits: Node, targets: np.ndarray, g: Node) -> Node:
        everywhere = np.ones(logits.shape[-1])
        plain = super().normalise(self.exponentials(logits, everywhere))
        y = plain.tape.floats(np.eye(logits.shape[-1])[targets])
        moved = g.reshape((*g.shape, 1)) * (plain - y)
        at_peak = self.at_peak(moved, logits, everywhere)
        return super().loss_gradient(logits, targets, g) + at_peak

    def mean_loss(self, losses: Node, targets: np.ndarray) -> Node:
        """The mean, as far off as one that is updated loss by loss.

        The update at k adds (loss - mean) / k, and its errors reach the end times k / n. Those of
        the n sums are at most n u mean|loss| together; those of differences and quotients at most
        2 u mean|loss| for the losses, and (2 + 2 log n) u mean|loss| for the means so far, which
        are sums of losses over k: n + 4 + 2 log n, where one sum, divided, is allowed n + 6.
        """
        count = losses.shape[0]
        typical = losses.magnitude().sum() / count
        mean = super().mean_loss(losses, targets)
        return mean.allowing(2 * math.log(count), lambda: np.asarray(typical))

    # ------------------------------------------------------------------------------ residual

    def feed_forward_sublayer(
        self,
        x: Node,
        gamma: Node,
        beta: Node,
        w_1: Node,
        b_1: Node,
        w_2: Node,
        b_2: Node,
        *,
        eps: Node,
    ) -> Node:
        y = super().feed_forward_sublayer(x, gamma, beta, w_1, b_1, w_2, b_2, eps=eps)
        return y.allowing(w_2.shape[0], x.magnitude)

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
        y = super().attention_sublayer(x, gamma, beta, w_q, w_k, w_v, w_o, heads=heads, eps=eps)
        return y.allowing(w_o.shape[0], x.magnitude)


def _rescaled(weights: Node) -> np.ndarray:
    """Every weight as often as a running sum that holds it may be rescaled.

    That happens when a larger score turns up, in any order of the keys: at most once for each
    other score that is larger, or so close that it may be.
    """
    size = weights.magnitude()
    larger = size[..., None, :] >= size[..., :, None] * math.exp(-_CLOSE)
    return np.asarray(size * (larger.sum(-1) - 1))


def _by_logarithm(p: Node, scores: Node) -> Node:
    """Probabilities as exp(score - L) with the rounded log-sum-exp L.

    The exponential is off by 3 + 2|log p| ulp, the logarithm in L by 5 ulp. L itself is rounded
    as a sum, and as a product and a quotient where powers of two are taken; the difference rounds
    |score| + |L| once more. Unlike the errors of a sum of exponentials, these don't cancel where
    one probability is nearly 1.
    """

    def extent() -> np.ndarray:
        size, score = p.magnitude(), scores.tape.domain.sign(scores.value) * scores.magnitude()
        logarithm = np.log(np.where(size > 0, size, 1.0))
        total = np.abs(score - logarithm)
        return np.asarray(size * (8 * (1 + np.abs(logarithm)) + np.abs(score) + 4 * total))

    return p.allowing(1.0, extent)
