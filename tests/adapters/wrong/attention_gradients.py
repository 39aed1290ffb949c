"""Attention whose values are right, with one mistake each in its gradients."""

from __future__ import annotations

import math

import torch

from tests.adapters.decoder_torch import DecoderTorch, by_hand


class Steps(DecoderTorch):
    """The whole operation, with the sources of queries, keys and values open."""

    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        self.check(x, heads)
        sources = zip(self.sources(x), (w_q, w_k, w_v), strict=True)
        q, k, v = (self.split(source @ weight, heads) for source, weight in sources)
        mixed = self.mix(self.weights(self.scores(q, k)), v)
        return self.merge(mixed) @ self.last(w_o)

    def sources(self, x):
        return x, x, x

    def last(self, w_o):
        return w_o


class ForgetsTheScaleGoingBack(DecoderTorch):
    fault = "score-gradient-unscaled"

    def scores(self, q, k):
        products = q @ k.mT
        return by_hand(products / math.sqrt(q.shape[-1]), (products,), lambda g: (g,))


class ScalesTwiceGoingBack(DecoderTorch):
    fault = "score-gradient-scaled-twice"

    def scores(self, q, k):
        products = q @ k.mT
        return by_hand(products / math.sqrt(q.shape[-1]), (products,), lambda g: (g / q.shape[-1],))


class RecomputesWithoutTheMask(DecoderTorch):
    fault = "masked-scores-differentiated"

    def weights(self, scores):
        def backward(g):
            p = torch.softmax(scores.detach(), dim=-1)
            return (p * (g - (p * g).sum(-1, keepdim=True)),)

        return by_hand(super().weights(scores), (scores,), backward)


class CutsTheQueries(DecoderTorch):
    fault = "queries-detached"

    def scores(self, q, k):
        return super().scores(q.detach(), k)


class CachesTheKeys(DecoderTorch):
    fault = "keys-detached"

    def scores(self, q, k):
        return super().scores(q, k.detach())


class CachesTheValues(DecoderTorch):
    fault = "values-detached"

    def mix(self, weights, v):
        return weights @ v.detach()


class CutsTheWeights(DecoderTorch):
    fault = "attention-weights-detached"

    def mix(self, weights, v):
        return weights.detach() @ v


class KeepsTheLastMapConstant(Steps):
    fault = "output-weight-detached"

    def last(self, w_o):
        return w_o.detach()


class TurnsTheGradientOfTheLastMap(Steps):
    fault = "output-weight-gradient-transposed"

    def last(self, w_o):
        return by_hand(w_o, (w_o,), lambda g: (g.T.contiguous(),))


class SumsKeysOverKeys(DecoderTorch):
    fault = "key-gradient-untransposed"

    def scores(self, q, k):
        root = math.sqrt(q.shape[-1])
        return by_hand(q @ k.mT / root, (q, k), lambda g: (g @ k / root, g @ q / root))


class SumsValuesOverKeys(DecoderTorch):
    fault = "value-gradient-untransposed"

    def mix(self, weights, v):
        return by_hand(weights @ v, (weights, v), lambda g: (g @ v.mT, weights @ g))


class KeepsTheLastOfThreePaths(Steps):
    fault = "input-gradient-of-values"

    def sources(self, x):
        return x.detach(), x.detach(), x


class ForgetsThePathOfTheQueries(Steps):
    fault = "input-gradient-without-queries"

    def sources(self, x):
        return x.detach(), x, x
