"""Cross-entropies with one mistake each, written in plain PyTorch as their authors would have."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from tests.adapters.decoder_torch import by_hand
from tests.adapters.model_torch import ModelTorch

# ------------------------------------------------------------------------------ the loss of a row


class ForgetsTheMinus(ModelTorch):
    fault = "loss-negated"

    def row_losses(self, logits, targets):
        return torch.log_softmax(logits, dim=-1)[torch.arange(len(targets)), targets]


class TakesTheLogitAlone(ModelTorch):
    fault = "normaliser-forgotten"

    def row_losses(self, logits, targets):
        return -logits.gather(-1, targets[:, None])[:, 0]


class TakesNoLogarithm(ModelTorch):
    fault = "probability-without-logarithm"

    def row_losses(self, logits, targets):
        return 1 - torch.softmax(logits, dim=-1)[torch.arange(len(targets)), targets]


class CountsInBits(ModelTorch):
    fault = "loss-in-bits"

    def row_losses(self, logits, targets):
        return super().row_losses(logits, targets) * math.log2(math.e)


class TakesSoftmaxTwice(ModelTorch):
    fault = "double-softmax"

    def row_losses(self, logits, targets):
        return functional.cross_entropy(torch.softmax(logits, -1), targets, reduction="none")


class SmoothsTheLabels(ModelTorch):
    fault = "labels-smoothed"

    def row_losses(self, logits, targets):
        return functional.cross_entropy(logits, targets, label_smoothing=0.1, reduction="none")


class CountsTargetsFromOne(ModelTorch):
    fault = "targets-counted-from-one"

    def row_losses(self, logits, targets):
        return super().row_losses(logits.roll(1, dims=-1), targets)


class AddsATinyNumber(ModelTorch):
    fault = "epsilon-in-logarithm"

    def row_losses(self, logits, targets):
        p = torch.softmax(logits, dim=-1).gather(-1, targets[:, None])[:, 0]
        return -torch.log(p + 1e-9)


class ClipsTheProbability(ModelTorch):
    fault = "probability-clipped"

    def row_losses(self, logits, targets):
        p = torch.softmax(logits, dim=-1).gather(-1, targets[:, None])[:, 0]
        return -torch.log(p.clamp(min=1e-7))


class ClipsTheLogits(ModelTorch):
    fault = "logits-clipped"

    def row_losses(self, logits, targets):
        return super().row_losses(logits.clamp(-100, 100), targets)


class TakesTheLogarithmLast(ModelTorch):
    fault = "logarithm-of-softmax"

    def row_losses(self, logits, targets):
        p = torch.softmax(logits, dim=-1)
        return -torch.log(p.gather(-1, targets[:, None])[:, 0])


class SumsOverTime(ModelTorch):
    fault = "normaliser-over-positions"

    def cross_entropy(self, logits, targets, *, ignore_index):
        if logits.ndim < 2:
            return super().cross_entropy(logits, targets, ignore_index=ignore_index)
        self.need_targets(logits, targets, ignore_index)
        scored = targets != ignore_index
        surprise = -torch.log_softmax(logits, dim=-2)
        own = surprise.gather(-1, targets.where(scored, targets * 0)[..., None])[..., 0]
        return own[scored].mean()


# ------------------------------------------------------------------------------------- the mean


class Sums(ModelTorch):
    fault = "loss-summed"

    def mean(self, losses, scored, logits):
        return losses.sum()


class DividesByAllPositions(ModelTorch):
    fault = "loss-over-all-positions"

    def mean(self, losses, scored, logits):
        return losses.sum() / scored.numel()


class DividesByTheBatch(ModelTorch):
    fault = "loss-over-batch"

    def mean(self, losses, scored, logits):
        return losses.sum() / (len(scored) if scored.ndim else 1)


class DividesByTheVocabulary(ModelTorch):
    fault = "loss-over-vocabulary"

    def mean(self, losses, scored, logits):
        return losses.mean() / logits.shape[-1]


class AveragesAverages(ModelTorch):
    fault = "mean-of-means"

    def mean(self, losses, scored, logits):
        whole = torch.zeros(scored.shape, dtype=losses.dtype).masked_scatter(scored, losses)
        rows, counts = whole.reshape(-1, scored.shape[-1]), scored.reshape(-1, scored.shape[-1])
        kept = counts.any(-1)
        return (rows.sum(-1)[kept] / counts.sum(-1)[kept]).mean()


class ReturnsAllLosses(ModelTorch):
    fault = "loss-unreduced"

    def mean(self, losses, scored, logits):
        return torch.zeros(scored.shape, dtype=losses.dtype).masked_scatter(scored, losses)


# ------------------------------------------------------------------------------ what is left out


class Replacing(ModelTorch):
    """Scores all targets, those that should be left out as ``instead`` says."""

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_targets(logits, targets, ignore_index)
        left_out = targets == ignore_index
        rows, size = logits.reshape(-1, logits.shape[-1]), logits.shape[-1]
        taken = self.instead(targets, left_out, size)
        return super().row_losses(rows, taken.flatten()).mean()


class ScoresTheFirst(Replacing):
    fault = "ignored-scored-as-first"

    def instead(self, targets, left_out, size):
        return targets.masked_fill(left_out, 0)


class ScoresFromTheEnd(Replacing):
    fault = "ignored-scored-from-the-end"

    def instead(self, targets, left_out, size):
        return targets.where(~left_out, targets.remainder(size))


class ScoresNoTarget(ModelTorch):
    fault = "ignored-scored-as-none"

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_targets(logits, targets, ignore_index)
        scored = targets != ignore_index
        own = logits.gather(-1, targets.where(scored, targets * 0)[..., None])[..., 0]
        return (torch.logsumexp(logits, dim=-1) - own * scored).mean()


class LeavesMinusHundredOut(ModelTorch):
    fault = "ignore-index-wired-in"

    def cross_entropy(self, logits, targets, *, ignore_index):
        return super().cross_entropy(logits, targets, ignore_index=-100)


class LeavesZeroOut(ModelTorch):
    fault = "first-token-left-out"

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_targets(logits, targets, ignore_index)
        fewer = targets.masked_fill(targets == 0, ignore_index)
        return super().cross_entropy(logits, fewer, ignore_index=ignore_index)


class ShiftsInside(ModelTorch):
    fault = "targets-shifted-inside"

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_targets(logits, targets, ignore_index)
        if targets.ndim:
            logits, targets = logits[..., :-1, :], targets[..., 1:]
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class Rolls(ModelTorch):
    fault = "targets-rolled"

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_targets(logits, targets, ignore_index)
        if targets.ndim:
            targets = targets.roll(-1, dims=-1)
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


# -------------------------------------------------------------------------------- the gradients


class GradientByHand(ModelTorch):
    """The loss of a row with its gradient written out, for the subclass to get wrong."""

    def row_losses(self, logits, targets):
        p = torch.softmax(logits.detach(), dim=-1)
        hot = functional.one_hot(targets, logits.shape[-1])
        value = super().row_losses(logits, targets)
        return by_hand(value, (logits,), lambda g: (g[:, None] * self.slope(p, hot),))


class SubtractsTheOtherWay(GradientByHand):
    fault = "loss-gradient-negated"

    def slope(self, p, hot):
        return hot - p


class ForgetsTheOneHot(GradientByHand):
    fault = "one-hot-forgotten"

    def slope(self, p, hot):
        return p


class MovesTheTargetAlone(GradientByHand):
    fault = "loss-gradient-at-target"

    def slope(self, p, hot):
        return (p - 1) * hot


class DividesTheGradientTwice(GradientByHand):
    fault = "loss-gradient-over-vocabulary"

    def slope(self, p, hot):
        return (p - hot) / p.shape[-1]


class DoesNotDivideTheGradient(ModelTorch):
    fault = "loss-gradient-undivided"

    def mean(self, losses, scored, logits):
        return by_hand(losses.mean(), (losses,), lambda g: (g.expand(losses.shape),))


class DividesTheGradientByAll(ModelTorch):
    fault = "loss-gradient-over-all-positions"

    def mean(self, losses, scored, logits):
        return by_hand(
            losses.mean(), (losses,), lambda g: (g.expand(losses.shape) / scored.numel(),)
        )


class StartsFromOne(ModelTorch):
    fault = "loss-upstream-ignored"

    def mean(self, losses, scored, logits):
        return by_hand(losses.mean(), (losses,), lambda _: (torch.ones_like(losses) / len(losses),))


class PushesIgnoredRows(ModelTorch):
    fault = "ignored-rows-with-gradient"

    def cross_entropy(self, logits, targets, *, ignore_index):
        value = super().cross_entropy(logits, targets, ignore_index=ignore_index)
        scored = targets != ignore_index
        hot = (targets[..., None] == torch.arange(logits.shape[-1])) & scored[..., None]
        slope = (torch.softmax(logits.detach(), dim=-1) - hot.to(logits.dtype)) / scored.sum()
        return by_hand(value, (logits,), lambda g: (g * slope,))


class ReturnsAPlainNumber(ModelTorch):
    fault = "loss-detached"

    def mean(self, losses, scored, logits):
        return torch.tensor(losses.mean().item(), dtype=losses.dtype)


# ------------------------------------------------------------------- accepted and is not valid


class FlattensTheTargets(ModelTorch):
    fault = "target-shape-accepted"

    def cross_entropy(self, logits, targets, *, ignore_index):
        rows = logits.reshape(-1, logits.shape[-1])
        return super().cross_entropy(rows, targets.reshape(-1), ignore_index=ignore_index)


class TakesInt32Targets(ModelTorch):
    fault = "narrow-targets-accepted"

    def cross_entropy(self, logits, targets, *, ignore_index):
        if targets.dtype == torch.int32:
            targets = targets.long()
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class TakesFloatTargets(ModelTorch):
    fault = "real-targets-accepted"

    def cross_entropy(self, logits, targets, *, ignore_index):
        if targets.is_floating_point():
            targets = targets.long()
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class IsZeroWithoutTargets(ModelTorch):
    fault = "nothing-scored-is-zero"

    def need_scored(self, targets, ignore_index):
        pass

    def need_target_range(self, scored, vocabulary):
        if scored.numel():
            super().need_target_range(scored, vocabulary)

    def mean(self, losses, scored, logits):
        return losses.sum() / max(1, losses.numel())


class ReturnsZeroAtOnce(ModelTorch):
    fault = "nothing-scored-is-zero"

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_positions(logits, targets)
        self.need_target_ids(targets)
        if bool((targets == ignore_index).all()):
            return logits.new_zeros(())
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class IsNanWithoutTargets(ModelTorch):
    fault = "nothing-scored-is-nan"

    def need_scored(self, targets, ignore_index):
        pass

    def mean(self, losses, scored, logits):
        return losses.mean()


class ReturnsNanAtOnce(ModelTorch):
    fault = "nothing-scored-is-nan"

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_positions(logits, targets)
        self.need_target_ids(targets)
        if bool((targets == ignore_index).all()):
            return logits.new_tensor(math.nan)
        return super().cross_entropy(logits, targets, ignore_index=ignore_index)


class MasksAndDivides(ModelTorch):
    fault = "nothing-scored-is-nan"

    def need_scored(self, targets, ignore_index):
        pass

    def cross_entropy(self, logits, targets, *, ignore_index):
        self.need_targets(logits, targets, ignore_index)
        mask = targets != ignore_index
        rows = self.row_losses(logits.reshape(-1, logits.shape[-1]), (targets * mask).flatten())
        return (rows * mask.flatten()).sum() / mask.sum()


class LeavesUnknownTargetsOut(ModelTorch):
    fault = "unknown-targets-left-out"

    def need_target_range(self, scored, vocabulary):
        if not bool(((scored >= 0) & (scored < vocabulary)).any()):
            super().need_target_range(scored, vocabulary)

    def row_losses(self, logits, targets):
        known = (targets >= 0) & (targets < logits.shape[-1])
        return super().row_losses(logits[known], targets[known])


class IndexesTargetsFromTheEnd(ModelTorch):
    fault = "negative-targets-wrapped"

    def need_target_range(self, scored, vocabulary):
        super().need_target_range(scored.where(scored >= 0, scored + vocabulary), vocabulary)

    def row_losses(self, logits, targets):
        return super().row_losses(logits, targets.remainder(logits.shape[-1]))


class ClampsTheTargets(ModelTorch):
    fault = "targets-clamped"

    def need_target_range(self, scored, vocabulary):
        pass

    def row_losses(self, logits, targets):
        return super().row_losses(logits, targets.clamp(0, logits.shape[-1] - 1))


class ScoresUnknownTargetsAsZero(ModelTorch):
    fault = "unknown-targets-score-nothing"

    def need_target_range(self, scored, vocabulary):
        if not bool(((scored >= 0) & (scored < vocabulary)).any()):
            super().need_target_range(scored, vocabulary)

    def row_losses(self, logits, targets):
        known = (targets >= 0) & (targets < logits.shape[-1])
        losses = super().row_losses(logits, targets.clamp(0, logits.shape[-1] - 1))
        return losses * known
