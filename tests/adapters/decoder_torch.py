"""The decoder block in plain PyTorch, cut into small methods: what wrong adapters change one of.

Written from the signatures alone. No fused attention and no module of ``torch.nn``, so that mask,
scale and heads are visible; autograd differentiates whatever a subclass replaces. It shares no
line with the bundled backends, which change at their own pace.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from conformance import Adapter, Rejected


class DecoderTorch(Adapter):
    """Tensors are float64 or float32; ``...`` stands for any number of leading axes."""

    def to_native(self, array):
        return torch.from_numpy(array.copy())

    def to_numpy(self, native):
        return native.detach().numpy()

    def vjp(self, operation, upstream, arguments, wrt):
        """Gradients by autograd; parameters are named by their own names."""
        leaves = {
            name: tensor.detach().requires_grad_()
            for name, tensor in _flat(arguments).items()
            if name in wrt
        }
        given = {name: _replaced(name, value, leaves) for name, value in arguments.items()}
        output = getattr(self, operation)(**given)
        if not output.requires_grad:
            return {}
        found = torch.autograd.grad(output, tuple(leaves.values()), upstream, allow_unused=True)
        return {name: g for name, g in zip(leaves, found, strict=True) if g is not None}

    # -------------------------------------------------------------------- what is there already

    def linear(self, x, weight, bias=None):
        if weight.ndim != 2:
            raise Rejected("weight-rank", "the weight is no matrix")
        if 0 in weight.shape:
            raise Rejected("zero-width", "the weight is empty")
        if bias is not None and bias.ndim != 1:
            raise Rejected("bias-rank", "the bias is no vector")
        if bias is not None and bias.shape[0] != weight.shape[1]:
            raise Rejected("bias-width", "bias and weight differ in width")
        if x.ndim == 0 or x.shape[-1] != weight.shape[0]:
            raise Rejected("input-width", "input and weight differ in width")
        y = torch.matmul(x, weight)
        return y if bias is None else y + bias

    def layer_norm(self, x, gamma, beta, *, eps):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = (centred * centred).mean(dim=-1, keepdim=True)
        return centred / torch.sqrt(variance + eps) * gamma + beta

    def gelu(self, x):
        return x * torch.special.erfc(-x * math.sqrt(0.5)) / 2

    def residual_add(self, x, increment):
        if x.shape != increment.shape:
            raise Rejected("shape-mismatch", "the shapes differ")
        return x + increment

    def feed_forward(self, x, w_1, b_1, w_2, b_2):
        return self.linear(self.gelu(self.linear(x, w_1, b_1)), w_2, b_2)

    def feed_forward_sublayer(self, x, gamma, beta, w_1, b_1, w_2, b_2, *, eps):
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        return self.residual_add(x, self.feed_forward(normalised, w_1, b_1, w_2, b_2))

    # ----------------------------------------------------------------------------------- softmax

    def softmax(self, x):
        weights = self.exponentials(x)
        return weights / weights.sum(dim=-1, keepdim=True)

    def exponentials(self, x):
        return torch.exp(x - x.detach().amax(dim=-1, keepdim=True))

    # --------------------------------------------------------------------------------- attention

    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        self.check(x, heads)
        q, k, v = (self.split(self.linear(x, w), heads) for w in (w_q, w_k, w_v))
        return self.linear(self.merge(self.mix(self.weights(self.scores(q, k)), v)), w_o)

    def check(self, x, heads):
        if x.ndim != 3:
            raise Rejected("input-rank", "the input is no batch of sequences")
        if heads < 1 or x.shape[-1] % heads:
            raise Rejected("heads", "the heads don't divide the width")

    def split(self, x, heads):
        """[B, T, d] as [B, h, T, d_h]."""
        batch, length, width = x.shape
        return x.view(batch, length, heads, width // heads).permute(0, 2, 1, 3)

    def merge(self, x):
        """[B, h, T, d_h] as [B, T, d]."""
        batch, heads, length, width = x.shape
        return x.permute(0, 2, 1, 3).reshape(batch, length, heads * width)

    def scores(self, q, k):
        return torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])

    def weights(self, scores):
        """Queries along the last axis but one, keys along the last."""
        return self.softmax(scores.masked_fill(self.hidden(scores.shape[-1]), -math.inf))

    def hidden(self, length):
        """True where the key (second axis) comes after the query (first axis)."""
        return torch.ones(length, length, dtype=torch.bool).triu(1)

    def mix(self, weights, v):
        return torch.matmul(weights, v)

    # ----------------------------------------------------------------------- sublayer and block

    def attention_sublayer(self, x, gamma, beta, w_q, w_k, w_v, w_o, *, heads, eps):
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        increment = self.causal_attention(normalised, w_q, w_k, w_v, w_o, heads=heads)
        return self.residual_add(x, increment)

    def block(self, x, parameters, *, heads, eps):
        u = self.attend(x, parameters, heads, eps)
        return self.feed(u, parameters, eps)

    def attend(self, x, parameters, heads, eps):
        return self.attention_sublayer(
            x, *norm(parameters, "attention_norm"), *maps(parameters), heads=heads, eps=eps
        )

    def feed(self, u, parameters, eps):
        return self.feed_forward_sublayer(
            u, *norm(parameters, "feed_forward_norm"), *layers(parameters), eps=eps
        )


# -------------------------------------------------------------------- parameters, by what uses them


def norm(parameters, name):
    """gamma and beta of one of the two norms."""
    return parameters[f"{name}.gamma"], parameters[f"{name}.beta"]


def maps(parameters):
    """w_q, w_k, w_v, w_o."""
    return [parameters[f"attention.w_{name}"] for name in "qkvo"]


def layers(parameters):
    """w_1, b_1, w_2, b_2."""
    return [parameters[f"feed_forward.{name}"] for name in ("w_1", "b_1", "w_2", "b_2")]


# ------------------------------------------------------------------------------ gradients by hand


class _ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rule, value, *operands):
        ctx.rule = rule
        return value.clone()

    @staticmethod
    def backward(ctx, g):
        return (None, None, *ctx.rule(g))


def by_hand(value, operands, rule):
    """``value``, whose gradients with respect to ``operands`` are what ``rule`` makes of its own.

    ``rule`` takes the upstream gradient and gives one gradient, or None, for each operand.
    """
    return _ByHand.apply(rule, value.detach(), *operands)


def _flat(arguments):
    """Every tensor by its name, the parameters among them by their own."""
    found = {}
    for name, value in arguments.items():
        found |= value if isinstance(value, Mapping) else {name: value}
    return found


def _replaced(name, value, leaves):
    if isinstance(value, Mapping):
        return {key: leaves.get(key, item) for key, item in value.items()}
    return leaves.get(name, value)
