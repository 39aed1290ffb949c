"""Mistakes in the numbers that a new model begins with."""

from __future__ import annotations

import math

import numpy as np

from conformance.truth.faults import Fault
from conformance.truth.reference import Reference

Generator = np.random.Generator
Shapes = dict[str, list[int]]


class WeightsZero(Fault):
    """Every weight and embedding began with zeros, and no branch could learn."""

    breaks = "INIT-NORMAL"
    also = ("INIT-SEEDED", "INIT-BLOCKS-DIFFER")
    sources = ("C-57",)
    mend = "Draw weights and embeddings from a normal distribution with deviation 0.02."

    def normal(self, generator: Generator, shape: list[int]) -> np.ndarray:
        del generator
        return np.zeros(shape)


class DeviationTenfold(Fault):
    """The deviation of the weights was 0.2 instead of 0.02."""

    breaks = "INIT-NORMAL"
    mend = "Draw with a deviation of 0.02."

    def normal(self, generator: Generator, shape: list[int]) -> np.ndarray:
        return 10 * super().normal(generator, shape)


class VarianceForDeviation(Fault):
    """The variance of the weights was 0.02 instead of their deviation."""

    breaks = "INIT-NORMAL"
    mend = "Draw with a deviation of 0.02; the variance is its square."

    def normal(self, generator: Generator, shape: list[int]) -> np.ndarray:
        return super().normal(generator, shape) / math.sqrt(0.02)


class UniformWeights(Fault):
    """The weights were uniform, with the right deviation, instead of normal."""

    breaks = "INIT-NORMAL"
    mend = "Draw from a normal distribution."

    def normal(self, generator: Generator, shape: list[int]) -> np.ndarray:
        limit = 0.02 * math.sqrt(3)
        return generator.uniform(-limit, limit, shape)


class DrawsCutOff(Fault):
    """Draws beyond three deviations were drawn again, so that the distribution had no tail."""

    breaks = "INIT-NORMAL"
    mend = "Draw from the whole normal distribution."

    def normal(self, generator: Generator, shape: list[int]) -> np.ndarray:
        found = super().normal(generator, shape)
        while (beyond := np.abs(found) > 0.06).any():
            found[beyond] = super().normal(generator, [int(beyond.sum())])
        return found


class WeightsPositive(Fault):
    """The weights had the magnitudes of a normal distribution, and no signs."""

    breaks = "INIT-NORMAL"
    mend = "Draw with mean 0."

    def normal(self, generator: Generator, shape: list[int]) -> np.ndarray:
        return np.asarray(np.abs(super().normal(generator, shape)))


class StandardNormalEmbeddings(Fault):
    """The embedding tables had deviation 1, as their framework draws them."""

    breaks = "INIT-NORMAL"
    mend = "Draw the embedding tables again with a deviation of 0.02."

    def initial(self, name: str, shape: list[int], generator: Generator) -> np.ndarray:
        found = super().initial(name, shape, generator)
        return 50 * found if name.endswith("_embedding") else found


class WeightsOfFramework(Fault):
    """The linear maps were uniform up to 1 / sqrt(d_in), as their framework draws them."""

    breaks = "INIT-NORMAL"
    mend = "Draw the weights of the linear maps again, normal with a deviation of 0.02."

    def initial(self, name: str, shape: list[int], generator: Generator) -> np.ndarray:
        if name == "head" or ".w_" in name:
            limit = 1 / math.sqrt(shape[0])
            return generator.uniform(-limit, limit, shape)
        return super().initial(name, shape, generator)


class BranchesScaledDown(Fault):
    """The last map of each branch was scaled down by the root of twice the number of blocks."""

    breaks = "INIT-NORMAL"
    mend = "Draw every weight with the same deviation."

    def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
        found = super().drawn(shapes, random_seed)
        last = [name for name in found if name.endswith((".w_o", ".w_2"))]
        return {**found, **{name: found[name] / math.sqrt(len(last)) for name in last}}


class BiasesDrawn(Fault):
    """The biases were drawn like the weights instead of being zero."""

    breaks = "INIT-BIASES"
    mend = "Set every bias to zero."

    def initial_bias(self, generator: Generator, shape: list[int]) -> np.ndarray:
        return self.normal(generator, shape)


class ShiftsDrawn(Fault):
    """The shifts of the norms were drawn like the weights instead of being zero."""

    breaks = "INIT-NORMS"
    mend = "Set every shift to zero."

    def initial_shift(self, generator: Generator, shape: list[int]) -> np.ndarray:
        return self.normal(generator, shape)


class ScalesDrawn(Fault):
    """The scales of the norms were drawn like the weights instead of being one."""

    breaks = "INIT-NORMS"
    mend = "Set every scale to one."

    def initial_scale(self, generator: Generator, shape: list[int]) -> np.ndarray:
        return self.normal(generator, shape)


class ScalesZero(Fault):
    """The scales of the norms were zero instead of one."""

    breaks = "INIT-NORMS"
    mend = "Set every scale to one."

    def initial_scale(self, generator: Generator, shape: list[int]) -> np.ndarray:
        return np.zeros_like(super().initial_scale(generator, shape))


class SeedIgnored(Fault):
    """Every model had the same numbers, whatever the seed."""

    breaks = "INIT-SEEDED"
    mend = "Start the generator from the seed that is given."

    def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
        del random_seed
        return super().drawn(shapes, 0)


def _in_place_of_zero(seed: int) -> type[Reference]:
    """A reference that begins from ``seed`` where it is given none that is true."""

    class InPlaceOfZero(Reference):
        def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
            return super().drawn(shapes, random_seed or seed)

    return InPlaceOfZero


class SeedZeroReplaced(Fault):
    """A seed of zero was taken for none, and another stood in for it."""

    breaks = "INIT-SEEDED"
    mend = "Ask whether there is a seed, not whether it is true: zero is one."
    other_ways = tuple(map(_in_place_of_zero, (1, 123, 1234, 1337)))

    def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
        return super().drawn(shapes, random_seed or 42)


class GeneratorNotSeeded(Fault):
    """The numbers came from a generator that goes on and on, whatever the seed."""

    breaks = "INIT-SEEDED"
    mend = "Start a generator from the seed at every construction."
    stateful = True

    def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
        self._models = getattr(self, "_models", 0) + 1
        return super().drawn(shapes, 2**32 + self._models)


class PaddingRowZero(Fault):
    """The embedding of token 0 began with zeros, as that of a padding token does in libraries."""

    breaks = "INIT-NORMAL"
    mend = "Give the table no padding index: token 0 is a token like others."

    def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
        found = super().drawn(shapes, random_seed)
        table = found["token_embedding"].copy()
        table[0] = 0
        return {**found, "token_embedding": table}


class BlocksAlike(Fault):
    """Every block began with the numbers of the first one."""

    breaks = "INIT-BLOCKS-DIFFER"
    mend = "Draw each block apart; a copy of a block has its numbers."

    def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
        found = super().drawn(shapes, random_seed)
        return {name: found[_in_first_block(name)] for name in found}


class SecondMapTransposed(Fault):
    """The second map of each feed-forward began as the first one with its axes exchanged."""

    breaks = "INIT-BLOCKS-DIFFER"
    mend = "Draw both maps; neither is a view or a copy of the other."

    def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
        found = super().drawn(shapes, random_seed)
        second = [name for name in found if name.endswith(".w_2")]
        return {**found, **{name: found[f"{name[:-1]}1"].T.copy() for name in second}}


class TensorsAlike(Fault):
    """The generator was started anew for every tensor, so that equal shapes had equal numbers."""

    breaks = "INIT-BLOCKS-DIFFER"
    mend = "Start the generator once for a model."

    def drawn(self, shapes: Shapes, random_seed: int) -> dict[str, np.ndarray]:
        return {
            name: self.initial(name, shape, self.generator(random_seed))
            for name, shape in shapes.items()
        }


def _in_first_block(name: str) -> str:
    """The parameter of the first block that is in the place of this one."""
    if not name.startswith("blocks."):
        return name
    return f"blocks.0.{name.split('.', 2)[-1]}"
