"""JAX: a step of training as one compiled function, and how a new model starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ._counting import Counting
from ._jax_decoder import JaxDecoder
from ._parameters import Sizes, decoder_shapes, starts_as
from ._rejections import check_configuration, check_widths

Tree: TypeAlias = dict[str, Array]
#: All parameters in one array, and the two moments of each element.
State: TypeAlias = tuple[Array, Array, Array]
Shapes: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
Attributes: TypeAlias = tuple[tuple[str, Any], ...]

#: Operations that compile what is worth it themselves, or take and give Python's numbers.
AS_THEY_ARE = frozenset(
    (
        "activation_elements",
        "build",
        "initialize",
        "initialize_linear",
        "parameter_groups",
        "train",
        "training_bytes",
        "training_flops",
    )
)


class JaxTraining(JaxDecoder, Counting):
    """A model is a pytree of arrays by name, an optimiser the moments of all their elements."""

    def _registered(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        shapes = decoder_shapes(sizes)
        model = jax.eval_shape(
            lambda: {name: jnp.zeros(shape, self.run_dtype) for name, shape in shapes.items()}
        )
        return {name: leaf.shape for name, leaf in model.items()}

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
    ) -> dict[str, Tree]:
        """A configuration and a seed -> ``parameters`` by name.

        Weights and tables normal with deviation 0.02, scales 1, shifts and biases 0. Raises
        ``Rejected`` as ``build``.
        """
        sizes = Sizes(vocab_size, block_size, d_model, n_layers, d_ff)
        check_configuration(sizes, n_heads, dropout)
        return {"parameters": _started(sizes, random_seed, self.run_dtype)}

    def initialize_linear(
        self, *, d_in: int, d_out: int, with_bias: bool, random_seed: int
    ) -> Tree:
        """Widths and a seed -> ``weight [d_in, d_out]`` and, if wanted, ``bias [d_out]``.

        The weight by ``jax.nn.initializers.glorot_uniform``, which is Xavier's; the bias is zero.
        Raises ``Rejected`` for a width of zero.
        """
        check_widths(d_in, d_out)
        draw = jax.nn.initializers.glorot_uniform()
        weight: Array = draw(jax.random.key(random_seed), (d_in, d_out), self.run_dtype)
        return {
            "weight": weight,
            **({"bias": jnp.zeros(d_out, self.run_dtype)} if with_bias else {}),
        }

    def splitmix64(self, *, random_seed: int, count: int) -> Array:
        """A seed -> ``values [count]``, the first outputs of SplitMix64, as uint64.

        Products and sums wrap around at 2^64, as those of uint64 do.
        """
        steps = jnp.arange(1, count + 1, dtype=jnp.uint64)
        z = jnp.uint64(random_seed % 2**64) + steps * jnp.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> 27)) * jnp.uint64(0x94D049BB133111EB)
        values: Array = z ^ (z >> 31)
        return values

    def adamw_step(
        self,
        parameter: Array,
        gradient: Array,
        first_moment: Array,
        second_moment: Array,
        *,
        step: int | Array,
        learning_rate: float,
        beta_1: float,
        beta_2: float,
        eps: float,
        weight_decay: float,
    ) -> Tree:
        """Four arrays of one shape -> ``parameter``, ``first_moment`` and ``second_moment`` after.

        ``step`` counts from 1. The decay is scaled by the rate and apart from the gradient.
        """
        first = beta_1 * first_moment + (1 - beta_1) * gradient
        second = beta_2 * second_moment + (1 - beta_2) * (gradient * gradient)
        direction = (first / (1 - beta_1**step)) / (jnp.sqrt(second / (1 - beta_2**step)) + eps)
        kept = parameter - learning_rate * weight_decay * parameter
        return {
            "parameter": kept - learning_rate * direction,
            "first_moment": first,
            "second_moment": second,
        }

    def clip_gradients(self, gradients: Mapping[str, Array], *, max_norm: float) -> dict[str, Any]:
        """Gradients by name -> the same ``gradients`` clipped, and their ``norm []`` before.

        All are scaled by max_norm / (norm + 1e-6) where that is less than 1.
        """
        norm = jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(gradients)))
        factor = jnp.minimum(max_norm / (norm + 1e-6), 1.0)
        return {"gradients": jax.tree.map(lambda leaf: leaf * factor, gradients), "norm": norm}

    def train(
        self,
        tokens: Array,
        targets: Array,
        parameters: Tree,
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
        ``decoder_loss``; tokens and targets are checked before.
        """
        scoring = (("heads", heads), ("eps", eps), ("ignore_index", ignore_index))
        settings = (
            ("learning_rate", learning_rate),
            ("beta_1", beta_1),
            ("beta_2", beta_2),
            ("eps", adam_eps),
            ("weight_decay", weight_decay),
        )
        shapes = tuple((name, leaf.shape) for name, leaf in parameters.items())
        step = partial(
            self._compiled_step,
            shapes=shapes,
            scoring=scoring,
            settings=settings,
            max_norm=max_norm,
        )
        held = _flat(parameters)
        # Where the tokens are, as what comes back is: else the first step would be compiled twice.
        state = jax.device_put((held, np.zeros_like(held), np.zeros_like(held)), tokens.sharding)
        losses: list[Array] = []
        norms: list[Tree] = []
        gradients: Tree = {}
        for number in range(1, steps + 1):
            state, _, loss, found, gradients = step(state, number, tokens, targets)
            losses.append(loss)
            norms.append(found)
        # What the last parameters predict is seen by a step that is not kept: a function for the
        # predictions alone would be compiled for each model as well.
        _, predictions, *_ = step(state, steps + 1, tokens, targets)
        moments = _shaped(np.asarray(state[1]), shapes)
        recorded = jax.device_get(norms)  # to stack them there would be compiled for each length
        return {
            "losses": np.stack(jax.device_get(losses)),
            "gradient_norms": {name: np.stack([n[name] for n in recorded]) for name in parameters},
            "gradients": gradients,
            "parameters": _shaped(np.asarray(state[0]), shapes),
            "optimised": {name: leaf.size for name, leaf in moments.items()},
            "predictions": predictions,
        }

    @cached_property
    def _compiled_step(self) -> Callable[..., tuple[State, Array, Array, Tree, Tree]]:
        """One step: the state before -> the state after, and of the state before what it predicts,
        the loss, the norms of its gradients and the gradients.

        AdamW treats every element by itself, so it is compiled for one array of all parameters: one
        for each of them would be so many kernels.
        """

        def step(
            state: State,
            number: Array,
            tokens: Array,
            targets: Array,
            *,
            shapes: Shapes,
            scoring: Attributes,
            settings: Attributes,
            max_norm: float,
        ) -> tuple[State, Array, Array, Tree, Tree]:
            score = dict(scoring)
            ignore_index = score.pop("ignore_index")

            def loss_of(parameters: Tree) -> tuple[Array, Array]:
                logits = self.decoder(tokens, parameters, **score)
                return self.cross_entropy(logits, targets, ignore_index=ignore_index), logits

            parameters = _shaped(state[0], shapes)
            (loss, logits), gradients = jax.value_and_grad(loss_of, has_aux=True)(parameters)
            norms = jax.tree.map(lambda leaf: jnp.sqrt(jnp.sum(leaf * leaf)), gradients)
            clipped = self.clip_gradients(gradients, max_norm=max_norm)["gradients"]
            flat = jnp.concatenate([clipped[name].reshape(-1) for name, _ in shapes])
            held, *moments = state
            after = self.adamw_step(held, flat, *moments, step=number, **dict(settings))
            kinds = after["parameter"], after["first_moment"], after["second_moment"]
            return kinds, jnp.argmax(logits, axis=-1), loss, norms, gradients

        return jax.jit(step, static_argnames=("shapes", "scoring", "settings", "max_norm"))


def _flat(parameters: Tree) -> np.ndarray:
    """All elements in one array; by NumPy, since JAX would compile it for each model."""
    return np.concatenate([np.asarray(leaf).reshape(-1) for leaf in parameters.values()])


def _shaped(flat: Any, shapes: Shapes) -> dict[str, Any]:
    """The inverse of ``_flat``, for an array of NumPy or of JAX."""
    parts, start = {}, 0
    for name, shape in shapes:
        end = start + math.prod(shape)
        parts[name] = flat[start:end].reshape(shape)
        start = end
    return parts


def _started(sizes: Sizes, random_seed: int, dtype: str) -> Tree:
    """The parameters of a new decoder by name.

    All that is drawn is drawn at once, and divided by NumPy: a draw, a slice and a shape for each
    parameter would each be compiled.
    """
    shapes = decoder_shapes(sizes)
    drawn = [name for name in shapes if starts_as(name) == "drawn"]
    ends = np.cumsum([math.prod(shapes[name]) for name in drawn])
    normal = jax.random.normal(jax.random.key(random_seed), (int(ends[-1]),), dtype)
    values = np.asarray(normal) * np.dtype(dtype).type(0.02)
    parts = dict(zip(drawn, np.split(values, ends[:-1]), strict=True))
    constant = {"ones": np.ones, "zeros": np.zeros}
    return {
        name: jax.device_put(
            parts[name].reshape(shape) if name in parts else constant[starts_as(name)](shape, dtype)
        )
        for name, shape in shapes.items()
    }
