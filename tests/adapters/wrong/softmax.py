"""Softmax with one mistake each, in plain PyTorch; attention uses it."""

from __future__ import annotations

import torch

from tests.adapters.decoder_torch import DecoderTorch, by_hand

# -------------------------------------------------------------------------------------- the values


class TakesAllElements(DecoderTorch):
    fault = "softmax-over-everything"

    def softmax(self, x):
        return torch.softmax(x.flatten(), dim=0).view(x.shape)


class TakesTheFirstAxis(DecoderTorch):
    fault = "softmax-over-first-axis"

    def softmax(self, x):
        return torch.softmax(x, dim=0)


class TakesTheAxisBeforeTheLast(DecoderTorch):
    fault = "softmax-over-positions"

    def softmax(self, x):
        return torch.softmax(x, dim=-2 if x.ndim > 1 else -1)


class NeverDivides(DecoderTorch):
    fault = "sum-forgotten"

    def softmax(self, x):
        return self.exponentials(x)


class NeverDividesNorLooksBack(DecoderTorch):
    """The gradient by the formula of the documents, from the wrong probabilities."""

    fault = "sum-forgotten"

    def softmax(self, x):
        p = self.exponentials(x).detach()
        return by_hand(p, (x,), lambda g: (p * (g - (p * g).sum(-1, keepdim=True)),))


class GivesTheRestToNothing(DecoderTorch):
    fault = "one-added-to-sum"

    def softmax(self, x):
        weights = self.exponentials(x)
        return weights / (1 + weights.sum(dim=-1, keepdim=True))


class MayChooseNothing(DecoderTorch):
    fault = "score-of-zero-added"

    def softmax(self, x):
        nothing = torch.zeros_like(x[..., :1])
        return torch.softmax(torch.cat([x, nothing], dim=-1), dim=-1)[..., :-1]


class DividesByTheCount(DecoderTorch):
    fault = "divided-by-length"

    def softmax(self, x):
        return self.exponentials(x) / x.shape[-1]


class TakesPowersOfTwo(DecoderTorch):
    fault = "powers-of-two"

    def exponentials(self, x):
        return torch.exp2(x - x.amax(dim=-1, keepdim=True).detach())


class TurnsTheDifferenceAround(DecoderTorch):
    fault = "difference-reversed"

    def softmax(self, x):
        return torch.softmax(-x, dim=-1)

    def weights(self, scores):
        return self.softmax(scores.masked_fill(self.hidden(scores.shape[-1]), torch.inf))


class ReturnsLogarithms(DecoderTorch):
    fault = "logarithm-returned"

    def softmax(self, x):
        return torch.log_softmax(x, dim=-1)

    def weights(self, scores):
        hidden = self.hidden(scores.shape[-1])
        return torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)


class NeverShifts(DecoderTorch):
    fault = "maximum-forgotten"

    def exponentials(self, x):
        return torch.exp(x)


class ShiftsAllRowsAlike(DecoderTorch):
    fault = "maximum-of-everything"

    def exponentials(self, x):
        return torch.exp(x - (x.detach().max() if x.numel() else 0))


# ----------------------------------------------------------------------------------- the gradients


class Backward(DecoderTorch):
    """The right probabilities ``p``, and a gradient that the subclass makes of ``g``."""

    def softmax(self, x):
        p = torch.softmax(x.detach(), dim=-1)
        return by_hand(p, (x,), lambda g: (self.backward(p, g),))


class ForgetsTheSum(Backward):
    fault = "softmax-sum-term-forgotten"

    def backward(self, p, g):
        return g * p


class TakesTheDiagonal(Backward):
    fault = "softmax-jacobian-diagonal"

    def backward(self, p, g):
        return g * p * (1 - p)


class SumsUnweighted(Backward):
    fault = "softmax-sum-unweighted"

    def backward(self, p, g):
        return p * (g - g.sum(-1, keepdim=True))


class AveragesTheSum(Backward):
    fault = "softmax-sum-averaged"

    def backward(self, p, g):
        return p * (g - (g * p).mean(-1, keepdim=True))


class SumsOverTheWrongAxis(Backward):
    fault = "softmax-sum-over-positions"

    def backward(self, p, g):
        return p * (g - (g * p).sum(-2 if p.ndim > 1 else -1, keepdim=True))


class SumsOverAllRows(Backward):
    fault = "softmax-sum-over-everything"

    def backward(self, p, g):
        return p * (g - torch.vdot(g.flatten(), p.flatten()))


class ForgetsTheOuterFactor(Backward):
    fault = "softmax-gradient-unweighted"

    def backward(self, p, g):
        return g - (g * p).sum(-1, keepdim=True)


class PassesTheGradientOn(Backward):
    fault = "softmax-gradient-passed-on"

    def backward(self, p, g):
        return g.clone()


class TurnsTheSign(Backward):
    fault = "softmax-gradient-negated"

    def backward(self, p, g):
        return p * ((g * p).sum(-1, keepdim=True) - g)


class CutsTheGraphAtSoftmax(DecoderTorch):
    fault = "softmax-detached"

    def softmax(self, x):
        with torch.no_grad():
            return torch.softmax(x, dim=-1)
