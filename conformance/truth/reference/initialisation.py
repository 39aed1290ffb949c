"""One honest initialisation: the documents fix the distributions, not the numbers."""

from __future__ import annotations

import math

import numpy as np

from conformance.errors import Rejected
from conformance.specification.tensors import splitmix64
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.reference.resources import ConfigurationRules


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
        """Every parameter by name, drawn one after the other from one generator.

        Raises Rejected as ``check_configuration`` does.
        """
        registered = self._configured(
            vocab_size, block_size, d_model, n_heads, n_layers, d_ff, dropout
        )
        return {"parameters": self.drawn(registered, random_seed)}

    def generator(self, random_seed: int) -> np.random.Generator:
        return np.random.default_rng(random_seed)

    def drawn(self, shapes: dict[str, list[int]], random_seed: int) -> dict[str, np.ndarray]:
        """Every parameter of these shapes, in order."""
        generator = self.generator(random_seed)
        return {name: self.initial(name, shape, generator) for name, shape in shapes.items()}

    def initial(self, name: str, shape: list[int], generator: np.random.Generator) -> np.ndarray:
        """Scales are one, shifts and biases zero, all else normal."""
        if name.endswith("gamma"):
            return self.initial_scale(generator, shape)
        if name.endswith("beta"):
            return self.initial_shift(generator, shape)
        if ".b_" in name:
            return self.initial_bias(generator, shape)
        return self.normal(generator, shape)

    def initial_scale(self, generator: np.random.Generator, shape: list[int]) -> np.ndarray:
        del generator
        return np.ones(shape)

    def initial_shift(self, generator: np.random.Generator, shape: list[int]) -> np.ndarray:
        del generator
        return np.zeros(shape)

    def initial_bias(self, generator: np.random.Generator, shape: list[int]) -> np.ndarray:
        del generator
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
        return self.linear_parameters(self.generator(random_seed), d_in, d_out, with_bias)

    def linear_parameters(
        self, generator: np.random.Generator, d_in: int, d_out: int, with_bias: bool
    ) -> dict[str, np.ndarray]:
        """The weight is drawn first."""
        weight = self.xavier(generator, d_in, d_out)
        bias = {"bias": self.linear_bias(generator, d_out)} if with_bias else {}
        return {"weight": weight} | bias

    def linear_bias(self, generator: np.random.Generator, d_out: int) -> np.ndarray:
        del generator
        return np.zeros(d_out)

    def check_widths(self, d_in: int, d_out: int) -> None:
        self.check_input_width(d_in)
        self.check_output_width(d_out)

    def check_input_width(self, d_in: int) -> None:
        if d_in == 0:
            raise Rejected("zero-input-width", "the weight would have no rows")

    def check_output_width(self, d_out: int) -> None:
        if d_out == 0:
            raise Rejected("zero-output-width", "the weight would have no columns")

    def xavier(self, generator: np.random.Generator, d_in: int, d_out: int) -> np.ndarray:
        """Uniform up to sqrt(6 / (d_in + d_out)).

        X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural
        networks", AISTATS 2010, equation 16.
        """
        limit = self.xavier_limit(d_in, d_out)
        return generator.uniform(-limit, limit, (d_in, d_out))

    def xavier_limit(self, d_in: int, d_out: int) -> float:
        return math.sqrt(6 / (d_in + d_out))
