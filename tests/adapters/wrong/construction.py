"""Models and layers that begin with the wrong numbers, and wrong generators."""

from __future__ import annotations

import math

import numpy as np
import torch

from tests.adapters.training_torch import DOUBLE, TrainingTorch

# ------------------------------------------------------------------------------------- the model


class StartsAtZero(TrainingTorch):
    fault = "weights-zero"

    def first_weight(self, shape, source):
        return torch.zeros(shape, dtype=DOUBLE)


class PadsWithTokenZero(TrainingTorch):
    fault = "padding-row-zero"

    def initialize(self, **configuration):
        found = super().initialize(**configuration)
        found["parameters"]["token_embedding"][0] = 0
        return found


class DrawsTooWide(TrainingTorch):
    fault = "deviation-tenfold"

    def first_weight(self, shape, source):
        return 0.2 * torch.randn(shape, generator=source, dtype=DOUBLE)


class TakesItForTheVariance(TrainingTorch):
    fault = "variance-for-deviation"

    def first_weight(self, shape, source):
        return math.sqrt(0.02) * torch.randn(shape, generator=source, dtype=DOUBLE)


class DrawsFlat(TrainingTorch):
    fault = "uniform-weights"

    def first_weight(self, shape, source):
        flat = torch.rand(shape, generator=source, dtype=DOUBLE)
        return (flat - 0.5) * 0.02 * math.sqrt(12)


class DrawsAgainWhatIsFarOut(TrainingTorch):
    fault = "draws-cut-off"

    def first_weight(self, shape, source):
        weight = torch.empty(shape, dtype=DOUBLE)
        return torch.nn.init.trunc_normal_(weight, 0.0, 0.02, -0.06, 0.06, generator=source)


class LosesTheSigns(TrainingTorch):
    fault = "weights-positive"

    def first_weight(self, shape, source):
        return super().first_weight(shape, source).abs()


class LeavesTheTablesAsTheyAre(TrainingTorch):
    fault = "standard-normal-embeddings"

    def first_value(self, name, shape, source):
        if "embedding" in name:
            return torch.randn(shape, generator=source, dtype=DOUBLE)
        return super().first_value(name, shape, source)


class LeavesTheMapsAsTheyAre(TrainingTorch):
    fault = "weights-of-framework"

    def first_value(self, name, shape, source):
        if len(shape) == 2 and "embedding" not in name:
            flat = torch.rand(shape, generator=source, dtype=DOUBLE)
            return (2 * flat - 1) * shape[0] ** -0.5
        return super().first_value(name, shape, source)


class ScalesByDepth(TrainingTorch):
    fault = "branches-scaled-down"

    def first_values(self, shapes, seed):
        depth = 1 + max(int(name.split(".")[1]) for name in shapes if "blocks" in name)
        found = super().first_values(shapes, seed)
        for name in found:
            if name.endswith(("attention.w_o", "feed_forward.w_2")):
                found[name] = found[name] * (2 * depth) ** -0.5
        return found


class DrawsBiases(TrainingTorch):
    fault = "biases-drawn"

    def first_bias(self, shape, source):
        return self.first_weight(shape, source)


class DrawsShifts(TrainingTorch):
    fault = "shifts-drawn"

    def first_shift(self, shape, source):
        return self.first_weight(shape, source)


class DrawsScales(TrainingTorch):
    fault = "scales-drawn"

    def first_scale(self, shape, source):
        return self.first_weight(shape, source)


class ScalesByZero(TrainingTorch):
    fault = "scales-zero"

    def first_scale(self, shape, source):
        return torch.zeros(shape, dtype=DOUBLE)


class CopiesTheFirstBlock(TrainingTorch):
    fault = "blocks-alike"

    def first_values(self, shapes, seed):
        found = super().first_values(shapes, seed)
        for name in found:
            if name.startswith("blocks."):
                _, _, inner = name.split(".", 2)
                found[name] = found[f"blocks.0.{inner}"].clone()
        return found


class SeedsEveryTensor(TrainingTorch):
    fault = "tensors-alike"

    def first_values(self, shapes, seed):
        return {
            name: self.first_value(name, shape, self.source(seed)) for name, shape in shapes.items()
        }


class TurnsOneMapIntoTheOther(TrainingTorch):
    fault = "second-map-transposed"

    def first_values(self, shapes, seed):
        found = super().first_values(shapes, seed)
        for name in found:
            if name.endswith("w_2"):
                found[name] = found[name.replace("w_2", "w_1")].T.clone()
        return found


# ------------------------------------------------------------------------------------- the layer


class ReachesByInputs(TrainingTorch):
    fault = "fan-in-alone"

    def reach(self, d_in, d_out):
        return (6 / d_in) ** 0.5


class ReachesLikeTheLibrary(TrainingTorch):
    fault = "limit-of-framework"

    def reach(self, d_in, d_out):
        return d_in**-0.5


class ReachesOneDeviation(TrainingTorch):
    fault = "deviation-as-limit"

    def reach(self, d_in, d_out):
        return (2 / (d_in + d_out)) ** 0.5


class DrawsTheOtherXavier(TrainingTorch):
    fault = "xavier-normal"

    def linear_weight(self, d_in, d_out, source):
        normal = torch.randn((d_in, d_out), generator=source, dtype=DOUBLE)
        return normal * (2 / (d_in + d_out)) ** 0.5


class DeviatesByTheReach(TrainingTorch):
    fault = "limit-as-deviation"

    def linear_weight(self, d_in, d_out, source):
        normal = torch.randn((d_in, d_out), generator=source, dtype=DOUBLE)
        return normal * self.reach(d_in, d_out)


class DrawsAboveZero(TrainingTorch):
    fault = "weight-positive"

    def linear_weight(self, d_in, d_out, source):
        flat = torch.rand((d_in, d_out), generator=source, dtype=DOUBLE)
        return flat * self.reach(d_in, d_out)


class StoresTheOtherWay(TrainingTorch):
    fault = "linear-weight-transposed"

    def linear_weight(self, d_in, d_out, source):
        return super().linear_weight(d_out, d_in, source)


class DrawsTheBias(TrainingTorch):
    fault = "linear-bias-drawn"

    def linear_bias(self, d_in, d_out, source):
        return (2 * torch.rand(d_out, generator=source, dtype=DOUBLE) - 1) * d_in**-0.5


class AlwaysHasABias(TrainingTorch):
    fault = "bias-always-there"

    def initialize_linear(self, *, d_in, d_out, with_bias, random_seed):
        return super().initialize_linear(
            d_in=d_in, d_out=d_out, with_bias=True, random_seed=random_seed
        )


class NeverHasABias(TrainingTorch):
    fault = "bias-never-there"

    def initialize_linear(self, *, d_in, d_out, with_bias, random_seed):
        return super().initialize_linear(
            d_in=d_in, d_out=d_out, with_bias=False, random_seed=random_seed
        )


class TakesNoInputs(TrainingTorch):
    fault = "layer-without-inputs-built"

    def need_inputs(self, d_in):
        pass


class TakesNoOutputs(TrainingTorch):
    fault = "layer-without-outputs-built"

    def need_outputs(self, d_out):
        pass


# --------------------------------------------------------------------------------- the generator


class DropsTheFirst(TrainingTorch):
    fault = "first-output-skipped"

    def splitmix64(self, *, random_seed, count):
        later = (random_seed + 0x9E3779B97F4A7C15) % 2**64
        return super().splitmix64(random_seed=later, count=count)


class MixesNothing(TrainingTorch):
    fault = "state-returned"

    def mixed(self, z):
        return z


class StopsMixingEarly(TrainingTorch):
    fault = "last-shift-forgotten"

    def mixed(self, z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        return ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64


class KeepsDoubles(TrainingTorch):
    fault = "outputs-through-doubles"

    def splitmix64(self, *, random_seed, count):
        exact = super().splitmix64(random_seed=random_seed, count=count)
        return (exact >> np.uint64(11)) << np.uint64(11)
