"""Training loops with one mistake each."""

from __future__ import annotations

import torch

from tests.adapters.training_torch import TrainingTorch


class NeverClears(TrainingTorch):
    fault = "gradients-not-cleared"

    def accumulated(self, old, new):
        return {name: g + old.get(name, 0) for name, g in new.items()}


class HasRunBackwardBefore(TrainingTorch):
    fault = "stale-gradients-at-start"

    def accumulated(self, old, new):
        return new if old else {name: 2 * g for name, g in new.items()}


class MeasuresTheLossLate(TrainingTorch):
    fault = "loss-after-step"

    def noted(self, loss, after):
        return after()


class ShowsClippedNorms(TrainingTorch):
    fault = "clipped-norms-reported"

    def shown(self, gradients, clipped, model, decay):
        return clipped


class ShowsWhatWasCleared(TrainingTorch):
    fault = "cleared-gradients-reported"

    def shown(self, gradients, clipped, model, decay):
        kept = {name: g.clone() for name, g in gradients.items()}
        for g in kept.values():
            g.zero_()
        return kept


class KeepsTheFirstGradients(TrainingTorch):
    fault = "first-gradients-reported"

    def kept(self, told):
        return told[0]


class AddsTheGradientsUp(TrainingTorch):
    fault = "gradients-of-all-steps"

    def kept(self, told):
        return {name: sum(each[name] for each in told) for name in told[0]}


class TakesDecayForAGradient(TrainingTorch):
    fault = "decay-in-gradient-norms"

    def shown(self, gradients, clipped, model, decay):
        return {name: g + decay * model[name] for name, g in gradients.items()}


class DoesNotClip(TrainingTorch):
    fault = "clipping-skipped"

    def limited(self, gradients, max_norm):
        return gradients


class KeepsTheLastLogits(TrainingTorch):
    fault = "early-predictions"

    def asked_last(self, before, after):
        return before


class TrainsTheHead(TrainingTorch):
    fault = "only-head-held"

    def handed_over(self, names):
        return ["head"]


class ReplacesTheHeadLate(TrainingTorch):
    fault = "head-not-held"

    def handed_over(self, names):
        return [name for name in names if name != "head"]


class LeavesTheTablesOut(TrainingTorch):
    fault = "embeddings-not-held"

    def handed_over(self, names):
        return [name for name in names if "embedding" not in name]


class LeavesTheLayersOut(TrainingTorch):
    fault = "blocks-not-held"

    def handed_over(self, names):
        return [name for name in names if "blocks" not in name]


class LeavesTheVectorsOut(TrainingTorch):
    fault = "vectors-not-held"

    def handed_over(self, names):
        vectors = (".gamma", ".beta", ".b_1", ".b_2")
        return [name for name in names if not name.endswith(vectors)]


class SparesTheVectors(TrainingTorch):
    fault = "vectors-not-decayed"

    def one(self, name, value, gradient, state, step, settings):
        own = {**settings, "weight_decay": 0} if value.ndim == 1 else settings
        return super().one(name, value, gradient, state, step, own)


class BuildsItsOptimiserInTheLoop(TrainingTorch):
    fault = "optimiser-made-anew"

    def stepped(self, model, gradients, held, state, step, settings):
        return super().stepped(model, gradients, held, {}, 1, settings)


class CountsEveryTensor(TrainingTorch):
    fault = "steps-counted-per-parameter"

    def stepped(self, model, gradients, held, state, step, settings):
        after = dict(model)
        for place, name in enumerate(held, start=(step - 1) * len(held) + 1):
            after[name] = self.one(name, model[name], gradients[name], state, place, settings)
        return after


class FillsWhatDidNotCome(TrainingTorch):
    fault = "absent-gradients-as-zeros"

    def project(self, x, parameters):
        return super().project(x.detach(), parameters)

    def differentiated(self, loss_of, model, seen):
        loss, found = super().differentiated(loss_of, model, seen)
        return loss, {name: found.get(name, torch.zeros_like(model[name])) for name in seen}
