"""Models and layers whose numbers have nothing to do with the seed."""

from __future__ import annotations

import torch

from tests.adapters.training_torch import DOUBLE, TrainingTorch


class HasOneSeed(TrainingTorch):
    fault = "seed-ignored"

    def first_values(self, shapes, seed):
        return super().first_values(shapes, 42)


class HasASeedInPlaceOfZero(TrainingTorch):
    fault = "seed-zero-replaced"

    def first_values(self, shapes, seed):
        return super().first_values(shapes, seed or 1234)


class GoesOnDrawing(TrainingTorch):
    fault = "generator-not-seeded"

    def __init__(self):
        super().__init__()
        self.endless = torch.Generator().manual_seed(0)

    def first_values(self, shapes, seed):
        source = self.endless
        return {name: self.first_value(name, shape, source) for name, shape in shapes.items()}


class HasOneSeedForLayers(TrainingTorch):
    fault = "linear-seed-ignored"

    def initialize_linear(self, *, d_in, d_out, with_bias, random_seed):
        return super().initialize_linear(d_in=d_in, d_out=d_out, with_bias=with_bias, random_seed=3)


class GoesOnDrawingLayers(TrainingTorch):
    fault = "linear-generator-not-seeded"

    def __init__(self):
        super().__init__()
        self.endless = torch.Generator().manual_seed(0)

    def linear_weight(self, d_in, d_out, source):
        return super().linear_weight(d_in, d_out, self.endless)


class MakesTheBiasFirst(TrainingTorch):
    fault = "bias-before-weight"

    def initialize_linear(self, *, d_in, d_out, with_bias, random_seed):
        self.ahead = d_out if with_bias else 0
        return super().initialize_linear(
            d_in=d_in, d_out=d_out, with_bias=with_bias, random_seed=random_seed
        )

    def linear_weight(self, d_in, d_out, source):
        torch.rand(self.ahead, generator=source, dtype=DOUBLE)
        return super().linear_weight(d_in, d_out, source)
