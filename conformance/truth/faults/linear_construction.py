"""Mistakes in the numbers that a linear layer begins with, and in the generator SplitMix64."""

from __future__ import annotations

import math

import numpy as np

from conformance.truth.faults import Fault

Generator = np.random.Generator


class FanInAlone(Fault):
    """The limit of Xavier's rule was taken from the input width alone, sqrt(6 / d_in)."""

    breaks = "LINEAR-INIT-XAVIER"
    mend = "Divide 6 by the sum of both widths."

    def xavier_limit(self, d_in: int, d_out: int) -> float:
        del d_out
        return math.sqrt(6 / d_in)


class LimitOfFramework(Fault):
    """The weight was uniform up to 1 / sqrt(d_in), as its framework draws it."""

    breaks = "LINEAR-INIT-XAVIER"
    mend = "Draw the weight up to sqrt(6 / (d_in + d_out))."

    def xavier_limit(self, d_in: int, d_out: int) -> float:
        del d_out
        return math.sqrt(1 / d_in)


class DeviationAsLimit(Fault):
    """The deviation of Xavier's rule, sqrt(2 / (d_in + d_out)), was taken for the limit."""

    breaks = "LINEAR-INIT-XAVIER"
    mend = "Draw up to sqrt(6 / (d_in + d_out)); the deviation is a root of three smaller."

    def xavier_limit(self, d_in: int, d_out: int) -> float:
        return math.sqrt(2 / (d_in + d_out))


class XavierNormal(Fault):
    """The weight was normal, with the deviation of Xavier's rule, instead of uniform."""

    breaks = "LINEAR-INIT-XAVIER"
    mend = "Draw from a uniform distribution."

    def xavier(self, generator: Generator, d_in: int, d_out: int) -> np.ndarray:
        return generator.normal(0.0, math.sqrt(2 / (d_in + d_out)), (d_in, d_out))


class LimitAsDeviation(Fault):
    """The weight was normal, with the limit of Xavier's rule for its deviation."""

    breaks = "LINEAR-INIT-XAVIER"
    mend = "Draw from a uniform distribution up to the limit."

    def xavier(self, generator: Generator, d_in: int, d_out: int) -> np.ndarray:
        return generator.normal(0.0, self.xavier_limit(d_in, d_out), (d_in, d_out))


class WeightPositive(Fault):
    """The weight was drawn between 0 and the limit."""

    breaks = "LINEAR-INIT-XAVIER"
    mend = "Draw between -limit and limit."

    def xavier(self, generator: Generator, d_in: int, d_out: int) -> np.ndarray:
        return np.asarray(np.abs(super().xavier(generator, d_in, d_out)))


class LinearWeightTransposed(Fault):
    """The weight had the shape [d_out, d_in]."""

    breaks = "LINEAR-INIT-XAVIER"
    mend = "Give the weight as [d_in, d_out]."

    def xavier(self, generator: Generator, d_in: int, d_out: int) -> np.ndarray:
        return np.asarray(super().xavier(generator, d_in, d_out).T)


class LinearBiasDrawn(Fault):
    """The bias was drawn instead of being zero."""

    breaks = "LINEAR-INIT-BIAS"
    sources = ("C-78",)
    mend = "Set the bias to zero."

    def linear_bias(self, generator: Generator, d_out: int) -> np.ndarray:
        return np.asarray(self.xavier(generator, 1, d_out)[0])


class BiasAlwaysThere(Fault):
    """A bias came although none was wanted."""

    breaks = "LINEAR-INIT-BIAS"
    mend = "Leave the bias out where the layer is to have none."

    def linear_parameters(
        self, generator: Generator, d_in: int, d_out: int, with_bias: bool
    ) -> dict[str, np.ndarray]:
        del with_bias
        return super().linear_parameters(generator, d_in, d_out, with_bias=True)


class BiasNeverThere(Fault):
    """No bias came although one was wanted."""

    breaks = "LINEAR-INIT-BIAS"
    mend = "Give a bias of zeros where the layer is to have one."

    def linear_parameters(
        self, generator: Generator, d_in: int, d_out: int, with_bias: bool
    ) -> dict[str, np.ndarray]:
        del with_bias
        return super().linear_parameters(generator, d_in, d_out, with_bias=False)


class BiasBeforeWeight(Fault):
    """Numbers were drawn for the bias before the weight, so that a bias changed the weight."""

    breaks = "LINEAR-INIT-BIAS-DRAWS-NOTHING"
    sources = ("C-78",)
    mend = "Draw nothing for the bias: it is zero."

    def linear_parameters(
        self, generator: Generator, d_in: int, d_out: int, with_bias: bool
    ) -> dict[str, np.ndarray]:
        if with_bias:
            generator.uniform(size=d_out)
        return super().linear_parameters(generator, d_in, d_out, with_bias)


class LinearSeedIgnored(Fault):
    """Every linear layer had the same numbers, whatever the seed."""

    breaks = "LINEAR-INIT-SEEDED"
    mend = "Start the generator from the seed that is given."

    def initialize_linear(
        self, *, d_in: int, d_out: int, with_bias: bool, random_seed: int
    ) -> dict[str, np.ndarray]:
        del random_seed
        return super().initialize_linear(d_in=d_in, d_out=d_out, with_bias=with_bias, random_seed=0)


class LinearGeneratorNotSeeded(Fault):
    """The numbers of linear layers came from a generator that goes on and on."""

    breaks = "LINEAR-INIT-SEEDED"
    mend = "Start a generator from the seed at every construction."
    stateful = True

    def initialize_linear(
        self, *, d_in: int, d_out: int, with_bias: bool, random_seed: int
    ) -> dict[str, np.ndarray]:
        del random_seed
        self._layers = getattr(self, "_layers", 0) + 1
        return super().initialize_linear(
            d_in=d_in, d_out=d_out, with_bias=with_bias, random_seed=2**32 + self._layers
        )


class LayerWithoutInputsBuilt(Fault):
    """A linear layer without inputs was built."""

    breaks = "LINEAR-INIT-ERR-WIDTHS"
    mend = "Refuse an input width of zero."

    def check_input_width(self, d_in: int) -> None:
        del d_in

    def xavier_limit(self, d_in: int, d_out: int) -> float:
        return super().xavier_limit(max(d_in, 1), d_out)


class LayerWithoutOutputsBuilt(Fault):
    """A linear layer without outputs was built."""

    breaks = "LINEAR-INIT-ERR-WIDTHS"
    mend = "Refuse an output width of zero."

    def check_output_width(self, d_out: int) -> None:
        del d_out

    def xavier_limit(self, d_in: int, d_out: int) -> float:
        return super().xavier_limit(d_in, max(d_out, 1))


# --------------------------------------------------------------------------------- the generator


class FirstOutputSkipped(Fault):
    """The first output of the generator was left out."""

    breaks = "SPLITMIX-SEQUENCE"
    mend = "Give the output of the first step first."

    def splitmix64(self, *, random_seed: int, count: int) -> np.ndarray:
        return super().splitmix64(random_seed=random_seed, count=count + 1)[1:]


class StateReturned(Fault):
    """The state of the generator came out, and was not mixed."""

    breaks = "SPLITMIX-SEQUENCE"
    mend = "Mix the state by its shifts and products before it is given."

    def splitmix64(self, *, random_seed: int, count: int) -> np.ndarray:
        step = 0x9E3779B97F4A7C15
        states = [(random_seed + (k + 1) * step) % 2**64 for k in range(count)]
        return np.array(states, dtype=np.uint64)


class LastShiftForgotten(Fault):
    """The last shift of the generator's mixing was left out."""

    breaks = "SPLITMIX-SEQUENCE"
    mend = "Finish with z ^ (z >> 31)."

    def splitmix64(self, *, random_seed: int, count: int) -> np.ndarray:
        mixed = super().splitmix64(random_seed=random_seed, count=count)
        return np.array([_before_last_shift(int(value)) for value in mixed], dtype=np.uint64)


class OutputsThroughDoubles(Fault):
    """The outputs went through doubles, which keep 53 of their 64 bits."""

    breaks = "SPLITMIX-SEQUENCE"
    mend = "Keep the outputs as unsigned integers of 64 bits."

    def splitmix64(self, *, random_seed: int, count: int) -> np.ndarray:
        exact = super().splitmix64(random_seed=random_seed, count=count)
        return np.array([int(value) >> 11 << 11 for value in exact], dtype=np.uint64)


def _before_last_shift(value: int) -> int:
    """The inverse of z ^ (z >> 31) for 64 bits."""
    return value ^ (value >> 31) ^ (value >> 62)
