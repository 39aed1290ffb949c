"""Decoders with one mistake each, written in plain PyTorch as their authors would have."""

from __future__ import annotations

import math

import torch

from tests.adapters.model_torch import ModelTorch

# ----------------------------------------------------------------------------------- the blocks


class EmbedsInTheLoop(ModelTorch):
    fault = "only-last-block"

    def run(self, x, layers, heads, eps):
        y = x
        for own in layers:
            y = self.block(x, own, heads=heads, eps=eps)
        return y


class ReturnsInsideTheLoop(ModelTorch):
    fault = "only-first-block"

    def run(self, x, layers, heads, eps):
        for own in layers:
            return self.block(x, own, heads=heads, eps=eps)
        return x


class LeavesTheBlocksOut(ModelTorch):
    fault = "blocks-forgotten"

    def run(self, x, layers, heads, eps):
        return x


class RunsBackwards(ModelTorch):
    fault = "blocks-reversed"

    def layers_of(self, parameters):
        return list(reversed(super().layers_of(parameters)))


class RunsInParallel(ModelTorch):
    fault = "blocks-in-parallel"

    def run(self, x, layers, heads, eps):
        outputs = [self.block(x, own, heads=heads, eps=eps) for own in layers]
        return sum(outputs) - (len(layers) - 1) * x


class RepeatsOneBlock(ModelTorch):
    fault = "first-block-repeated"

    def layers_of(self, parameters):
        layers = super().layers_of(parameters)
        return layers[:1] * len(layers)


class LoadsTheLastBlockEverywhere(ModelTorch):
    fault = "last-block-repeated"

    def layers_of(self, parameters):
        layers = super().layers_of(parameters)
        return layers[-1:] * len(layers)


# ------------------------------------------------------------------------------- the final norm


class NormalisesNothingAtTheEnd(ModelTorch):
    fault = "final-norm-forgotten"

    def finish(self, x, parameters, eps):
        return x


class NormalisesAtTheStart(ModelTorch):
    fault = "final-norm-before-blocks"

    def run(self, x, layers, heads, eps):
        return super().run(super().finish(x, self.given, eps), layers, heads, eps)

    def decoder(self, tokens, parameters, *, heads, eps):
        self.given = parameters
        return super().decoder(tokens, parameters, heads=heads, eps=eps)

    def finish(self, x, parameters, eps):
        return x


class ReusesTheLastNorm(ModelTorch):
    fault = "final-norm-of-last-block"

    def finish(self, x, parameters, eps):
        last = self.layers_of(parameters)[-1]
        gamma, beta = (last[f"feed_forward_norm.{name}"] for name in ("gamma", "beta"))
        return self.layer_norm(x, gamma, beta, eps=eps)


class NormalisesPlainlyAtTheEnd(ModelTorch):
    fault = "final-norm-plain"

    def finish(self, x, parameters, eps):
        deviation = torch.sqrt(x.var(dim=-1, unbiased=False, keepdim=True) + eps)
        return (x - x.mean(dim=-1, keepdim=True)) / deviation


# ------------------------------------------------------------------------------------- the head


class TiesTheHead(ModelTorch):
    fault = "head-tied"

    def project(self, x, parameters):
        return torch.einsum("btd,vd->btv", x, parameters["token_embedding"])


class CountsTheVocabularyBackwards(ModelTorch):
    fault = "head-reversed"

    def project(self, x, parameters):
        return torch.matmul(x, parameters["head"].flip(1))


class ReadsTheHeadAsItLies(ModelTorch):
    fault = "head-reread"

    def project(self, x, parameters):
        head = parameters["head"]
        return torch.einsum("btd,vd->btv", x, head.reshape(head.shape[1], head.shape[0]))


class ScalesTheLogits(ModelTorch):
    fault = "logits-scaled"

    def project(self, x, parameters):
        return super().project(x, parameters) / math.sqrt(x.shape[-1])


class GivesProbabilities(ModelTorch):
    fault = "probabilities-returned"

    def project(self, x, parameters):
        return torch.softmax(super().project(x, parameters), dim=-1)


class GeneratesOneToken(ModelTorch):
    fault = "only-last-position"

    def project(self, x, parameters):
        return super().project(x[:, -1:], parameters)


class SpreadsTheLastPosition(ModelTorch):
    fault = "last-position-everywhere"

    def project(self, x, parameters):
        return super().project(x[:, -1:].expand(x.shape), parameters)


class SpreadsTheFirstSequence(ModelTorch):
    fault = "first-sequence-everywhere"

    def project(self, x, parameters):
        return super().project(x[:1].expand(x.shape), parameters)


class CentresTheBatch(ModelTorch):
    fault = "batch-centred"

    def finish(self, x, parameters, eps):
        return super().finish(x - x.mean(dim=0), parameters, eps)


class LetsTheTargetsIn(ModelTorch):
    fault = "targets-fed-in"

    def decoder_loss(self, tokens, targets, parameters, *, heads, eps, ignore_index):
        self.extra = (targets, ignore_index)
        try:
            return super().decoder_loss(
                tokens, targets, parameters, heads=heads, eps=eps, ignore_index=ignore_index
            )
        finally:
            self.extra = None

    def embed(self, tokens, token_embedding, position_embedding):
        y = super().embed(tokens, token_embedding, position_embedding)
        if getattr(self, "extra", None) is None:
            return y
        targets, ignore_index = self.extra
        if targets.shape != tokens.shape:
            return y  # the loss will refuse them
        ids = targets.long().clamp(0, token_embedding.shape[0] - 1)
        return y + token_embedding[ids] * (targets != ignore_index).unsqueeze(-1)


# -------------------------------------------------------------------------------- the gradients


class LearnsWithTheHeadAlone(ModelTorch):
    fault = "head-input-detached"

    def finish(self, x, parameters, eps):
        return super().finish(x, parameters, eps).detach()


class FreezesTheHead(ModelTorch):
    fault = "head-detached"

    def project(self, x, parameters):
        return torch.matmul(x, parameters["head"].detach())


class FreezesTheFinalNorm(ModelTorch):
    fault = "final-norm-detached"

    def finish(self, x, parameters, eps):
        gamma, beta = (parameters[f"final_norm.{name}"].detach() for name in ("gamma", "beta"))
        return self.layer_norm(x, gamma, beta, eps=eps)


class RunsWithoutGraph(ModelTorch):
    fault = "blocks-detached"

    def run(self, x, layers, heads, eps):
        with torch.no_grad():
            return super().run(x, layers, heads, eps)


class HoldsTheBlocksInAList(ModelTorch):
    fault = "blocks-constant"

    def layers_of(self, parameters):
        return [
            {name: value.detach() for name, value in own.items()}
            for own in super().layers_of(parameters)
        ]


class TrainsTheLastBlock(ModelTorch):
    fault = "first-blocks-constant"

    def layers_of(self, parameters):
        layers = super().layers_of(parameters)
        for own in layers[:-1]:
            for name in own:
                own[name] = own[name].detach()
        return layers


class CutsBeforeTheLastBlock(ModelTorch):
    fault = "gradient-stops-at-last-block"

    def run(self, x, layers, heads, eps):
        for number, own in enumerate(layers):
            read = x.detach() if number == len(layers) - 1 else x
            x = self.block(read, own, heads=heads, eps=eps)
        return x


class GoesPastTheBlocks(ModelTorch):
    fault = "gradient-past-blocks"

    def run(self, x, layers, heads, eps):
        y = super().run(x.detach(), layers, heads, eps)
        return y + (x - x.detach())


class FreezesTheEmbedding(ModelTorch):
    fault = "embedding-detached"

    def embed(self, tokens, token_embedding, position_embedding):
        return super().embed(tokens, token_embedding, position_embedding).detach()


class DropsZeroGradients(ModelTorch):
    fault = "zero-gradients-left-out"

    def vjp(self, operation, upstream, arguments, wrt):
        found = super().vjp(operation, upstream, arguments, wrt)
        return {
            name: gradient
            for name, gradient in found.items()
            if name in arguments or gradient.count_nonzero() > 0
        }
