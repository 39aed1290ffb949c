"""One honest initialisation: the documents fix the distributions, not the numbers."""

from __future__ import annotations

import math

import numpy as np

from conformance.errors import Rejected
from conformance.specification.tensors import splitmix64
from conformance.truth.reference.resources import ConfigurationRules
from conformance.truth.tape import Node


class InitialisationRules(ConfigurationRules):
    """trainable-decoder, "Checking Each Derivation Against the Implementation"; linear-layer."""

    def splitmix64(self, *, random_seed: int, count: int) -> np.ndarray:
        """The first ``count`` outputs of the generator: 64 bits each."""
        draws = splitmix64(random_seed)
        return np.array([next(draws) for _ in range(count)], dtype=np.uint64)

    def initialize(
        self,
        *,
        vocab_size: int,
        block_size: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        dropout: Node,
        random_seed: int,
    ) -> dict[str, dict[str, np.ndarray]]:
        """Every parameter by name, drawn one after the other from one generator."""
        del n_heads, dropout
        shapes = self.parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        generator = np.random.default_rng(random_seed)
        drawn = {name: self.initial(name, shape, generator) for name, shape in shapes.items()}
        return {"parameters": drawn}

    def initial(self, name: str, shape: list[int], generator: np.random.Generator) -> np.ndarray:
        """Scales are one, shifts and biases zero, all else normal."""
        if name.endswith("gamma"):
            return np.ones(shape)
        if name.endswith("beta") or ".b_" in name:
            return self.initial_bias(shape)
        return self.normal(generator, shape)

    def initial_bias(self, shape: list[int]) -> np.ndarray:
        return np.zeros(shape)

    def normal(self, generator: np.random.Generator, shape: list[int]) -> np.ndarray:
        """Mean 0, standard deviation 0.02."""
        return generator.normal(0.0, 0.02, shape)

    def initialize_linear(
        self, *, d_in: int, d_out: int, with_bias: bool, random_seed: int
    ) -> dict[str, np.ndarray]:
        """Weight [d_in, d_out] by Xavier's rule, and a bias [d_out] of zeros if one is wanted.

        linear-layer, the construction. The bias draws nothing from the generator.
        """
        self.check_widths(d_in, d_out)
        generator = np.random.default_rng(random_seed)
        weight = self.xavier(generator, d_in, d_out)
        return {"weight": weight} | ({"bias": self.initial_bias([d_out])} if with_bias else {})

    def check_widths(self, d_in: int, d_out: int) -> None:
        if d_in == 0:
            raise Rejected("zero-input-width", "the weight would have no rows")
        if d_out == 0:
            raise Rejected("zero-output-width", "the weight would have no columns")

    def xavier(self, generator: np.random.Generator, d_in: int, d_out: int) -> np.ndarray:
        """Uniform up to sqrt(6 / (d_in + d_out)).

        X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural
        networks", AISTATS 2010, equation 16.
        """
        limit = math.sqrt(6 / (d_in + d_out))
        return generator.uniform(-limit, limit, (d_in, d_out))
