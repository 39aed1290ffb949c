"""Attention sublayers with one mistake each in how they are put together."""

from __future__ import annotations

from tests.adapters.decoder_torch import DecoderTorch


class Sublayer(DecoderTorch):
    """Norm and attention as two functions of the trunk, put together by the subclass."""

    def attention_sublayer(self, x, gamma, beta, w_q, w_k, w_v, w_o, *, heads, eps):
        return self.together(
            x,
            lambda trunk: self.layer_norm(trunk, gamma, beta, eps=eps),
            lambda trunk: self.causal_attention(trunk, w_q, w_k, w_v, w_o, heads=heads),
        )


class OverwritesTheTrunk(Sublayer):
    fault = "attention-trunk-normalised"

    def together(self, x, norm, attention):
        x = norm(x)
        return x + attention(x)


class ReturnsTheBranch(Sublayer):
    fault = "attention-trunk-forgotten"

    def together(self, x, norm, attention):
        return attention(norm(x))


class AddsTheTrunkInTheBranchToo(Sublayer):
    fault = "attention-trunk-twice"

    def together(self, x, norm, attention):
        return x + (x + attention(norm(x)))


class NormalisesTheSum(Sublayer):
    fault = "norm-after-attention-sum"

    def together(self, x, norm, attention):
        return norm(x + attention(x))


class NeverNormalises(Sublayer):
    fault = "norm-before-attention-forgotten"

    def together(self, x, norm, attention):
        return x + attention(x)


class NormalisesBothEnds(Sublayer):
    fault = "norm-around-attention"

    def together(self, x, norm, attention):
        return x + norm(attention(norm(x)))


class BroadcastsTheFirstPosition(Sublayer):
    fault = "attention-of-first-position"

    def together(self, x, norm, attention):
        return x + attention(norm(x))[:, 0:1, :]


class CutsTheBranch(Sublayer):
    fault = "attention-detached"

    def together(self, x, norm, attention):
        return x + attention(norm(x)).detach()


class CutsTheBranchAtItsEntrance(Sublayer):
    fault = "attention-input-detached"

    def together(self, x, norm, attention):
        return x + attention(norm(x.detach()))


class CutsTheTrunk(Sublayer):
    fault = "attention-trunk-detached"

    def together(self, x, norm, attention):
        return x.detach() + attention(norm(x))
