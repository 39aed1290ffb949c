"""NumPy: what trains the decoder, and how a new one starts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._counting import Counting
from ._numpy_decoder import Indices, NumpyDecoder
from ._numpy_layers import Array
from ._parameters import Sizes, decoder_shapes, starts_as
from ._rejections import check_configuration, check_widths


class NumpyTraining(NumpyDecoder, Counting):
    """A model is its dict of arrays; an optimiser is the dict of their moments."""

    def _registered(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        # Views of one number: counting a model needs none of its memory.
        model = {name: np.broadcast_to(0.0, shape) for name, shape in decoder_shapes(sizes).items()}
        return {name: parameter.shape for name, parameter in model.items()}

    def initialize(
        self,
        *,
        vocab_size: int,
        block_size: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        dropout: float,
        random_seed: int,
    ) -> dict[str, dict[str, Array]]:
        """A configuration and a seed -> ``parameters`` by name, from one generator.

        Weights and tables normal with deviation 0.02, scales 1, shifts and biases 0. Raises
        ``Rejected`` as ``build``.
        """
        sizes = Sizes(vocab_size, block_size, d_model, n_layers, d_ff)
        check_configuration(sizes, n_heads, dropout)
        generator = np.random.default_rng(random_seed)
        started: dict[str, Array] = {}
        for name, shape in decoder_shapes(sizes).items():
            kind = starts_as(name)
            if kind == "drawn":
                started[name] = generator.normal(0.0, 0.02, shape)
            else:
                started[name] = np.ones(shape) if kind == "ones" else np.zeros(shape)
        return {"parameters": {name: p.astype(self.run_dtype) for name, p in started.items()}}

    def initialize_linear(
        self, *, d_in: int, d_out: int, with_bias: bool, random_seed: int
    ) -> dict[str, Array]:
        """Widths and a seed -> ``weight [d_in, d_out]`` and, if wanted, ``bias [d_out]``.

        The weight is uniform up to sqrt(6 / (d_in + d_out)), the bias zero. Raises ``Rejected``
        for a width of zero.
        """
        check_widths(d_in, d_out)
        limit = math.sqrt(6 / (d_in + d_out))
        weight = np.random.default_rng(random_seed).uniform(-limit, limit, (d_in, d_out))
        layer = {"weight": weight, **({"bias": np.zeros(d_out)} if with_bias else {})}
        return {name: parameter.astype(self.run_dtype) for name, parameter in layer.items()}

    def splitmix64(self, *, random_seed: int, count: int) -> np.ndarray:
        """A seed -> ``values [count]``, the first outputs of SplitMix64, as uint64.

        G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number generators", OOPSLA
        2014; products and sums wrap around at 2^64, as those of uint64 do.
        """
        steps = np.arange(1, count + 1, dtype=np.uint64)
        z = np.uint64(random_seed % 2**64) + steps * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))

    def adamw_step(
        self,
        parameter: Array,
        gradient: Array,
        first_moment: Array,
        second_moment: Array,
        *,
        step: int,
        learning_rate: float,
        beta_1: float,
        beta_2: float,
        eps: float,
        weight_decay: float,
    ) -> dict[str, Array]:
        """Four arrays of one shape -> ``parameter``, ``first_moment`` and ``second_moment`` after.

        ``step`` counts from 1. The decay is scaled by the rate and apart from the gradient.
        """
        first = beta_1 * first_moment + (1 - beta_1) * gradient
        second = beta_2 * second_moment + (1 - beta_2) * (gradient * gradient)
        direction = (first / (1 - beta_1**step)) / (np.sqrt(second / (1 - beta_2**step)) + eps)
        kept = parameter - learning_rate * weight_decay * parameter
        return {
            "parameter": np.asarray(kept - learning_rate * direction),
            "first_moment": np.asarray(first),
            "second_moment": np.asarray(second),
        }

    def clip_gradients(self, gradients: Mapping[str, Array], *, max_norm: float) -> dict[str, Any]:
        """Gradients by name -> the same ``gradients`` clipped, and their ``norm []`` before.

        All are scaled by max_norm / (norm + 1e-6) where that is less than 1.
        """
        norm = np.sqrt(np.asarray(sum(np.vdot(g, g) for g in gradients.values())))
        factor = max_norm / (norm + 1e-6)
        return {
            "gradients": {
                name: np.asarray(g * factor) if factor < 1 else g.copy()
                for name, g in gradients.items()
            },
            "norm": np.asarray(norm),
        }

    def train(
        self,
        tokens: Indices,
        targets: Indices,
        parameters: Mapping[str, Array],
        *,
        heads: int,
        eps: float,
        ignore_index: int,
        steps: int,
        learning_rate: float,
        beta_1: float,
        beta_2: float,
        adam_eps: float,
        weight_decay: float,
        max_norm: float,
    ) -> dict[str, Any]:
        """``tokens [B, T]``, ``targets [B, T]``, parameters by name -> what the steps leave behind.

        ``losses [steps]`` before each step; ``gradient_norms`` by name, ``[steps]`` each, before
        clipping; ``gradients`` by name, those of the last step; the last ``parameters`` by name;
        how many elements of each are ``optimised``; ``predictions [B, T]``. Raises ``Rejected`` as
        ``decoder_loss``.
        """
        settings: dict[str, Any] = {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "beta_2": beta_2,
            "eps": adam_eps,
            "weight_decay": weight_decay,
        }
        decoding: dict[str, Any] = {"heads": heads, "eps": eps}
        scoring: dict[str, Any] = {**decoding, "ignore_index": ignore_index}
        one = np.ones((), self.run_dtype)
        model = dict(parameters)
        held, *moments = (np.empty(0, self.run_dtype) for _ in range(3))
        losses: list[Array] = []
        squares: dict[str, list[Any]] = {}
        gradients: dict[str, Array] = {}
        for step in range(1, steps + 1):
            with self._remembering():
                losses.append(self.decoder_loss(tokens, targets, model, **scoring))
                gradients = self.decoder_loss_vjp(one, tokens, targets, model, **scoring)
            for name, gradient in gradients.items():
                squares.setdefault(name, []).append(np.vdot(gradient, gradient))
            clipped = self.clip_gradients(gradients, max_norm=max_norm)["gradients"]
            # AdamW treats every element by itself, so one step does for all that have a gradient.
            if step == 1:
                held = _flat(model, clipped)
                moments = [np.zeros_like(held), np.zeros_like(held)]
            after = self.adamw_step(held, _flat(clipped, clipped), *moments, step=step, **settings)
            held, moments = after["parameter"], [after["first_moment"], after["second_moment"]]
            model |= _shaped(held, clipped)
        return {
            "losses": np.stack(losses),
            "gradient_norms": {name: np.sqrt(np.stack(each)) for name, each in squares.items()},
            "gradients": gradients,
            "parameters": model,
            "optimised": {name: each.size for name, each in model.items()},
            "predictions": self.decoder(tokens, model, **decoding).argmax(axis=-1),
        }


def _flat(arrays: Mapping[str, Array], names: Iterable[str]) -> Array:
    """The elements of the ``arrays`` of these names, one after the other."""
    return np.concatenate([arrays[name].reshape(-1) for name in names])


def _shaped(flat: Array, like: Mapping[str, Array]) -> dict[str, Array]:
    """The inverse of ``_flat``, as views: an array for each of ``like``, of the same shape."""
    shaped, start = {}, 0
    for name, each in like.items():
        shaped[name] = flat[start : start + each.size].reshape(each.shape)
        start += each.size
    return shaped
