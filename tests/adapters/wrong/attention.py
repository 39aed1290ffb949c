"""Attention with one mistake each in its mask, its scale, its heads or its maps."""

from __future__ import annotations

import math

import torch

from tests.adapters.decoder_torch import DecoderTorch

# ---------------------------------------------------------------------------------------- the mask


def ones(length):
    return torch.ones(length, length, dtype=torch.bool)


class SeesEverything(DecoderTorch):
    fault = "mask-forgotten"

    def weights(self, scores):
        return torch.softmax(scores, dim=-1)


class SeesEverythingGoingForward(DecoderTorch):
    """The kernel lost the mask, the gradient beside it did not."""

    fault = "mask-forgotten"

    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        arguments = (x, w_q, w_k, w_v, w_o)
        right = super().causal_attention(*arguments, heads=heads)
        wrong = SeesEverything().causal_attention(*arguments, heads=heads)
        return right + (wrong - right).detach()


class SeesTheNextPosition(DecoderTorch):
    fault = "mask-one-too-far"

    def hidden(self, length):
        return ones(length).triu(2)


class NeverSeesItself(DecoderTorch):
    fault = "mask-one-short"

    def hidden(self, length):
        return ones(length).triu()


class KeepsWhatItShouldDrop(DecoderTorch):
    fault = "mask-inverted"

    def hidden(self, length):
        return ones(length).tril()


class SwapsRowsAndColumnsOfTheMask(DecoderTorch):
    fault = "mask-transposed"

    def hidden(self, length):
        return ones(length).triu(1).T


class DropsAfterSoftmax(DecoderTorch):
    fault = "mask-after-softmax"

    def weights(self, scores):
        return torch.softmax(scores, dim=-1).tril()


class MultipliesWithTheMask(DecoderTorch):
    fault = "masked-scores-zero"

    def weights(self, scores):
        return torch.softmax(scores.tril(), dim=-1)


class FillsWithANumber(DecoderTorch):
    fault = "masked-scores-finite"

    def weights(self, scores):
        return torch.softmax(scores.masked_fill(self.hidden(scores.shape[-1]), -1e4), dim=-1)


class AddsANumber(DecoderTorch):
    fault = "mask-added-finite"

    def weights(self, scores):
        bias = self.hidden(scores.shape[-1]).to(scores.dtype) * -1e4
        return torch.softmax(scores + bias, dim=-1)


class ShiftsByAMaskedMaximum(DecoderTorch):
    fault = "maximum-of-masked-scores"

    def weights(self, scores):
        weights = torch.exp(scores - scores.detach().amax(dim=-1, keepdim=True)).tril()
        return weights / weights.sum(dim=-1, keepdim=True)


class PacksTheBatch(DecoderTorch):
    fault = "sequences-joined"

    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        self.check(x, heads)
        packed = x.reshape(1, -1, x.shape[-1])
        return super().causal_attention(packed, w_q, w_k, w_v, w_o, heads=heads).view(x.shape)


# --------------------------------------------------------------------------------------- the scale


class NeverScales(DecoderTorch):
    fault = "scale-forgotten"

    def scores(self, q, k):
        return q @ k.mT


class ForgetsTheRoot(DecoderTorch):
    fault = "scale-without-root"

    def scores(self, q, k):
        return q @ k.mT / q.shape[-1]


class ScalesByTheModel(DecoderTorch):
    fault = "scale-of-whole-width"

    def scores(self, q, k):
        return q @ k.mT / math.sqrt(q.shape[-1] * q.shape[-3])


class ScalesByTheHeads(DecoderTorch):
    fault = "scale-of-heads"

    def scores(self, q, k):
        return q @ k.mT / math.sqrt(q.shape[-3])


class DividesByAReciprocal(DecoderTorch):
    fault = "scale-multiplied"

    def scores(self, q, k):
        return q @ k.mT / q.shape[-1] ** -0.5


# --------------------------------------------------------------------------------------- the heads


class HasOneHead(DecoderTorch):
    fault = "heads-forgotten"

    def split(self, x, heads):
        return x.unsqueeze(1)


class Interleaves(DecoderTorch):
    fault = "heads-interleaved"

    def split(self, x, heads):
        return torch.stack([x[..., head::heads] for head in range(heads)], dim=1)

    def merge(self, x):
        return torch.stack(x.unbind(1), dim=-1).flatten(-2)


class ReadsTheBufferAnew(DecoderTorch):
    fault = "heads-reread"

    def split(self, x, heads):
        return x.reshape(x.shape[0], heads, x.shape[1], -1)

    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


class SplitsByReshaping(DecoderTorch):
    fault = "heads-split-without-transpose"

    def split(self, x, heads):
        return x.reshape(x.shape[0], heads, x.shape[1], -1)


class MergesByReshaping(DecoderTorch):
    fault = "heads-merged-without-transpose"

    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


class LooksThroughOneHead(DecoderTorch):
    fault = "first-head-for-all"

    def mix(self, weights, v):
        return weights[:, :1] @ v


class TakesAnyNumberOfHeads(DecoderTorch):
    fault = "heads-unchecked"

    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        if heads < 1 or x.shape[-1] % heads:
            heads = 1
        return super().causal_attention(x, w_q, w_k, w_v, w_o, heads=heads)


class TakesAnyRank(DecoderTorch):
    fault = "sequence-accepted"

    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        batch = torch.atleast_2d(x)
        batch = batch.reshape(-1, *batch.shape[-2:])
        return super().causal_attention(batch, w_q, w_k, w_v, w_o, heads=heads).reshape(x.shape)


# ---------------------------------------------------------------------------------------- the rest


class SumsToOneOverQueries(DecoderTorch):
    fault = "softmax-over-queries"

    def weights(self, scores):
        hidden = self.hidden(scores.shape[-1])
        return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-2)


class ScoresTheOtherWay(DecoderTorch):
    fault = "scores-transposed"

    def scores(self, q, k):
        return super().scores(q, k).mT


class Attention(DecoderTorch):
    """The whole operation, with the maps as the subclass applies them."""

    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        self.check(x, heads)
        q, k, v = (self.split(y, heads) for y in self.project(x, w_q, w_k, w_v))
        return self.out(self.merge(self.mix(self.weights(self.scores(q, k)), v)), w_o)

    def project(self, x, w_q, w_k, w_v):
        return x @ w_q, x @ w_k, x @ w_v

    def out(self, merged, w_o):
        return merged @ w_o


class UnpacksInTheWrongOrder(Attention):
    fault = "keys-for-values"

    def project(self, x, w_q, w_k, w_v):
        return x @ w_q, x @ w_v, x @ w_k


class ScoresQueriesAgainstThemselves(Attention):
    fault = "queries-for-keys"

    def project(self, x, w_q, w_k, w_v):
        return x @ w_q, x @ w_q, x @ w_v


class WeightsTheInput(Attention):
    fault = "values-unprojected"

    def project(self, x, w_q, w_k, w_v):
        return x @ w_q, x @ w_k, x


class ReturnsTheMergedHeads(Attention):
    fault = "output-unprojected"

    def out(self, merged, w_o):
        return merged


class StoresAllMapsOutByIn(Attention):
    fault = "attention-weights-transposed"

    def project(self, x, w_q, w_k, w_v):
        return x @ w_q.T, x @ w_k.T, x @ w_v.T

    def out(self, merged, w_o):
        return merged @ w_o.T


class StoresTheLastMapOutByIn(Attention):
    fault = "output-weight-transposed"

    def out(self, merged, w_o):
        return torch.nn.functional.linear(merged, w_o)
