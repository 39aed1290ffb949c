"""Steps of AdamW, and clipping, with one mistake each."""

from __future__ import annotations

import torch

from tests.adapters.training_torch import TrainingTorch

# --------------------------------------------------------------------------------- bias correction


class NeverCorrects(TrainingTorch):
    fault = "bias-correction-forgotten"

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / (v.sqrt() + eps)


class CorrectsTheSecondOnly(TrainingTorch):
    fault = "first-moment-uncorrected"

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / ((v / (1 - beta_2**t)).sqrt() + eps)


class CorrectsTheFirstOnly(TrainingTorch):
    fault = "second-moment-uncorrected"

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / (1 - beta_1**t) / (v.sqrt() + eps)


class MultipliesInsteadOfRaising(TrainingTorch):
    fault = "correction-linear"

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / (1 - beta_1 * t) / ((v / (1 - beta_2 * t)).sqrt() + eps)


class CountsFromZero(TrainingTorch):
    fault = "step-from-zero"

    def count_of(self, step):
        return step - 1

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        one, two = (torch.tensor(beta, dtype=m.dtype) ** t for beta in (beta_1, beta_2))
        return m / (1 - one) / ((v / (1 - two)).sqrt() + eps)


class CountsFromTwo(TrainingTorch):
    fault = "step-from-two"

    def count_of(self, step):
        return step + 1


class AlwaysAtTheFirstStep(TrainingTorch):
    fault = "steps-not-counted"

    def count_of(self, step):
        return 1


# --------------------------------------------------------------------------------------- epsilon


class UsesEpsHat(TrainingTorch):
    """As in the text of Adam before its section 2, with epsilon hat."""

    fault = "eps-before-correction"

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return (1 - beta_2**t) ** 0.5 / (1 - beta_1**t) * m / (v.sqrt() + eps)


class AddsEpsUnderTheRoot(TrainingTorch):
    fault = "adam-eps-inside-root"

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / (1 - beta_1**t) / (v / (1 - beta_2**t) + eps).sqrt()


class AddsNoEps(TrainingTorch):
    fault = "adam-eps-forgotten"

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / (1 - beta_1**t) / (v / (1 - beta_2**t)).sqrt()


class TakesNoRoot(TrainingTorch):
    fault = "adam-root-forgotten"

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / (1 - beta_1**t) / (v / (1 - beta_2**t) + eps)


# ----------------------------------------------------------------------------------------- decay


class RegularisesTheLoss(TrainingTorch):
    fault = "decay-coupled"

    def adamw_step(self, parameter, gradient, first_moment, second_moment, **settings):
        decay = settings.pop("weight_decay")
        pulled = gradient + decay * parameter
        return super().adamw_step(
            parameter, pulled, first_moment, second_moment, weight_decay=0, **settings
        )


class NeverDecays(TrainingTorch):
    fault = "decay-forgotten"

    def shrunk(self, parameter, rate, decay):
        return parameter


class DecaysByDecayAlone(TrainingTorch):
    fault = "decay-without-rate"

    def shrunk(self, parameter, rate, decay):
        return parameter * (1 - decay)


class PullsEvenly(TrainingTorch):
    fault = "decay-without-parameter"

    def shrunk(self, parameter, rate, decay):
        return parameter - rate * decay


class Grows(TrainingTorch):
    fault = "decay-with-wrong-sign"

    def shrunk(self, parameter, rate, decay):
        return parameter * (1 + rate * decay)


class DecaysLast(TrainingTorch):
    fault = "decay-after-step"

    def applied(self, parameter, change, rate, decay):
        return (parameter - change) * (1 - rate * decay)


class SkipsZeros(TrainingTorch):
    fault = "zero-gradient-skipped"

    def adamw_step(self, parameter, gradient, first_moment, second_moment, **settings):
        if gradient.any():
            return super().adamw_step(parameter, gradient, first_moment, second_moment, **settings)
        kept = {"parameter": parameter, "first_moment": first_moment}
        return {name: value.clone() for name, value in kept.items()} | {
            "second_moment": second_moment.clone()
        }


# --------------------------------------------------------------------------------------- moments


class Climbs(TrainingTorch):
    fault = "ascent-taken"

    def applied(self, parameter, change, rate, decay):
        return super().applied(parameter, -change, rate, decay)


class ReturnsThemTheOtherWayRound(TrainingTorch):
    fault = "moments-swapped"

    def adamw_step(self, parameter, gradient, first_moment, second_moment, **settings):
        found = super().adamw_step(parameter, gradient, first_moment, second_moment, **settings)
        m, v = found["first_moment"], found["second_moment"]
        return {"parameter": found["parameter"], "first_moment": v, "second_moment": m}


class MixesTheBetas(TrainingTorch):
    fault = "betas-swapped"

    def averaged(self, m, v, g, beta_1, beta_2):
        return super().averaged(m, v, g, beta_2, beta_1)

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return super().quotient(m, v, t, beta_2, beta_1, eps)


class WiresItsBetas(TrainingTorch):
    fault = "betas-ignored"

    def averaged(self, m, v, g, beta_1, beta_2):
        return super().averaged(m, v, g, 0.9, 0.999)

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return super().quotient(m, v, t, 0.9, 0.999, eps)


class HasNoMomentum(TrainingTorch):
    fault = "first-moment-forgotten"

    def averaged(self, m, v, g, beta_1, beta_2):
        return g.clone(), super().averaged(m, v, g, beta_1, beta_2)[1]

    def quotient(self, m, v, t, beta_1, beta_2, eps):
        return m / (torch.sqrt(v / (1 - beta_2**t)) + eps)


class AddsTheGradientWhole(TrainingTorch):
    fault = "first-moment-unweighted"

    def averaged(self, m, v, g, beta_1, beta_2):
        return m * beta_1 + g, super().averaged(m, v, g, beta_1, beta_2)[1]


class AddsTheSquareWhole(TrainingTorch):
    fault = "second-moment-unweighted"

    def averaged(self, m, v, g, beta_1, beta_2):
        return super().averaged(m, v, g, beta_1, beta_2)[0], v * beta_2 + g.square()


class AveragesTheSquares(TrainingTorch):
    fault = "second-moment-of-tensor"

    def averaged(self, m, v, g, beta_1, beta_2):
        first, _ = super().averaged(m, v, g, beta_1, beta_2)
        return first, v * beta_2 + g.square().mean() * (1 - beta_2)


# -------------------------------------------------------------------------------------- clipping


class ComparesNorms(TrainingTorch):
    fault = "clipped-above-the-limit-alone"

    def scaled(self, gradients, total, max_norm):
        if total > max_norm:
            return super().scaled(gradients, total, max_norm)
        return {name: g.clone() for name, g in gradients.items()}


class Clamps(TrainingTorch):
    fault = "clipped-by-value"

    def scaled(self, gradients, total, max_norm):
        return {name: g.clamp(-max_norm, max_norm) for name, g in gradients.items()}


class ClipsOneByOne(TrainingTorch):
    fault = "clipped-per-tensor"

    def scaled(self, gradients, total, max_norm):
        return {
            name: self.times(g, self.ratio(self.norm_of([g]), max_norm))
            for name, g in gradients.items()
        }


class AddsNorms(TrainingTorch):
    fault = "norms-added-up"

    def norm_of(self, tensors):
        return sum(tensor.square().sum().sqrt() for tensor in tensors)


class TakesTheLargestNorm(TrainingTorch):
    fault = "norm-of-largest"

    def norm_of(self, tensors):
        return torch.stack([tensor.square().sum().sqrt() for tensor in tensors]).max()


class ForgetsTheRootOfTheNorm(TrainingTorch):
    fault = "norm-not-rooted"

    def norm_of(self, tensors):
        return sum(tensor.square().sum() for tensor in tensors)


class HasNoMargin(TrainingTorch):
    fault = "clipping-margin-forgotten"

    def ratio(self, total, max_norm):
        return max_norm / total


class NormalisesAlways(TrainingTorch):
    fault = "clipped-always"

    def times(self, g, ratio):
        return g * ratio


class NeverClips(TrainingTorch):
    fault = "clipping-forgotten"

    def scaled(self, gradients, total, max_norm):
        return {name: g.clone() for name, g in gradients.items()}


class MeasuresAfterwards(TrainingTorch):
    fault = "clipped-norm-reported"

    def clip_gradients(self, gradients, *, max_norm):
        found = super().clip_gradients(gradients, max_norm=max_norm)["gradients"]
        return {"gradients": found, "norm": self.norm_of(found.values())}


class ClipsTwice(TrainingTorch):
    fault = "factor-applied-twice"

    def times(self, g, ratio):
        return super().times(super().times(g, ratio), ratio)
