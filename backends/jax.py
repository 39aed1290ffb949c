"""JAX on the CPU: every call compiled by ``jax.jit``, differentiated by ``jax.vjp``.

One method an operation, in JAX arrays; ``vjp`` differentiates any of them, so a subclass that
replaces ``layer_norm`` changes its gradient too, and that of every operation built from it.

Shapes: ``...`` is any number of leading axes, none included; a weight is ``[in, out]``. Arrays are
float64 or float32, and what is returned has the dtype of what was given: constants are Python
floats, which JAX never promotes to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from conformance import Adapter, Rejected, cache_folder

Attributes: TypeAlias = tuple[tuple[str, float], ...]


class JaxBackend(Adapter):
    """The operations in ``jax.numpy`` and ``jax.nn``, with exact GELU.

    There is one compilation for each operation, mode, dtype, set of shapes and set of attributes:
    attributes are compiled in as the Python numbers they are, so eps is never rounded to float32
    on its way into a float64 computation.

    JAX accepts what the specification forbids: a weight of rank 1 or 3, widths of zero, a bias of
    rank 0 or 2 or of width 1, operands of ``+`` that differ in shape. So ``linear`` and
    ``residual_add`` check their arguments themselves and raise ``Rejected``; shapes are known
    while a call is traced. JAX knows no absent gradient: where an output doesn't depend on an
    argument, the gradient is zeros.
    """

    name = "jax"
    device = "cpu"

    def __init__(self) -> None:
        """Keep compilations in the user's cache folder, unless the process has its own place."""
        folder = cache_folder("jax")
        if not jax.config.values.get("jax_compilation_cache_dir") and _writable(folder):
            jax.config.update("jax_compilation_cache_dir", str(folder))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

    def versions(self) -> dict[str, str]:
        """The versions of JAX and of its compiler."""
        return {"jax": jax.__version__, "jaxlib": version("jaxlib")}

    def to_native(self, array: np.ndarray) -> Array:
        """A JAX array on ``device`` with a copy of ``array``, in its dtype."""
        with _full_precision():
            # device_put may keep the memory it is given, so it is given memory of its own;
            # jnp.array would copy too, but by compiling a copy for each shape.
            native: Array = jax.device_put(array.copy(), jax.devices(self.device)[0])
            return native

    def to_numpy(self, native: Array) -> np.ndarray:
        """The values of a JAX array, in its dtype."""
        return np.asarray(native)

    def evaluate(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Call the operation's method, compiled."""
        arrays, attributes = _split(arguments)
        with _full_precision():
            return self._compiled_evaluate(arrays, operation=operation, attributes=attributes)

    def vjp(
        self,
        operation: str,
        upstream: Array,
        arguments: Mapping[str, Any],
        wrt: tuple[str, ...],
    ) -> dict[str, Array]:
        """``upstream``, shaped like the one output -> the gradients of ``wrt``, compiled.

        Raises what the operation raises.
        """
        arrays, attributes = _split(arguments)
        with _full_precision():
            return self._compiled_vjp(
                upstream, arrays, operation=operation, attributes=attributes, wrt=wrt
            )

    def linear(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        """``x [..., d_in]``, ``weight [d_in, d_out]``, ``bias [d_out]`` -> ``y [..., d_out]``.

        y = x W + b. Raises ``Rejected`` for each kind that ``linear`` rejects.
        """
        _check_linear(x, weight, bias)
        y = x @ weight
        return y if bias is None else y + bias

    def layer_norm(self, x: Array, gamma: Array, beta: Array, *, eps: float) -> Array:
        """``x [..., d]``, ``gamma [d]``, ``beta [d]`` -> ``y [..., d]``.

        y = gamma (x - mean) / sqrt(variance + eps) + beta, over the last axis; the population
        variance, taken of the centred values, so that a large mean costs no digits.
        """
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return gamma * (centred / jnp.sqrt(variance + eps)) + beta

    def gelu(self, x: Array) -> Array:
        """``x [...]`` -> ``y [...]``: ``jax.nn.gelu`` without the tanh formula, its default."""
        return jax.nn.gelu(x, approximate=False)

    def residual_add(self, x: Array, increment: Array) -> Array:
        """``x [...]``, ``increment`` of the same shape -> ``y [...]``: y = x + increment.

        Raises ``Rejected("shape-mismatch")``.
        """
        if x.shape != increment.shape:
            raise Rejected("shape-mismatch", f"{x.shape} and {increment.shape} differ in shape")
        return x + increment

    def feed_forward(self, x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array) -> Array:
        """``x [..., d]``, ``w_1 [d, f]``, ``b_1 [f]``, ``w_2 [f, d]``, ``b_2 [d]`` -> ``[..., d]``.

        y = gelu(x w_1 + b_1) w_2 + b_2. Raises ``Rejected`` as ``linear``.
        """
        return self.linear(self.gelu(self.linear(x, w_1, b_1)), w_2, b_2)

    def feed_forward_sublayer(
        self,
        x: Array,
        gamma: Array,
        beta: Array,
        w_1: Array,
        b_1: Array,
        w_2: Array,
        b_2: Array,
        *,
        eps: float,
    ) -> Array:
        """``x [..., d]`` and the parameters of ``layer_norm`` and ``feed_forward`` -> ``[..., d]``.

        y = x + feed_forward(layer_norm(x)). Raises ``Rejected`` as ``linear``, ``residual_add``.
        """
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        return self.residual_add(x, self.feed_forward(normalised, w_1, b_1, w_2, b_2))

    @cached_property
    def _compiled_evaluate(self) -> Callable[..., Array]:
        def evaluate(arrays: dict[str, Array], *, operation: str, attributes: Attributes) -> Array:
            output: Array = getattr(self, operation)(**arrays, **dict(attributes))
            return output

        return jax.jit(evaluate, static_argnames=("operation", "attributes"))

    @cached_property
    def _compiled_vjp(self) -> Callable[..., dict[str, Array]]:
        def vjp(
            upstream: Array,
            arrays: dict[str, Array],
            *,
            operation: str,
            attributes: Attributes,
            wrt: tuple[str, ...],
        ) -> dict[str, Array]:
            def forward(leaves: dict[str, Array]) -> Array:
                output: Array = getattr(self, operation)(**{**arrays, **leaves}, **dict(attributes))
                return output

            _, pull_back = jax.vjp(forward, {name: arrays[name] for name in wrt})
            gradients: dict[str, Array] = pull_back(upstream)[0]
            return gradients

        return jax.jit(vjp, static_argnames=("operation", "attributes", "wrt"))


def _split(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Attributes]:
    """The arrays, which a compiled call takes, and the numbers, which are compiled into it."""
    numbers = {name: item for name, item in arguments.items() if isinstance(item, int | float)}
    arrays = {name: item for name, item in arguments.items() if name not in numbers}
    return arrays, tuple(sorted(numbers.items()))


@contextmanager
def _full_precision() -> Iterator[None]:
    """Keep float64 as it is and multiply float32 in float32, for this call only.

    JAX turns float64 into float32 unless told otherwise. Told so for the whole process, it would
    change the dtypes of whatever else the user runs in it; so it is told call by call.
    """
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def _check_linear(x: Array, weight: Array, bias: Array | None) -> None:
    """Raise ``Rejected`` for the first broken rule, in the order of the specification."""
    if weight.ndim != 2:
        raise Rejected("weight-rank", f"the weight has rank {weight.ndim}, not 2")
    d_in, d_out = weight.shape
    if d_in == 0:
        raise Rejected("zero-input-width", "the weight has no rows")
    if d_out == 0:
        raise Rejected("zero-output-width", "the weight has no columns")
    if bias is not None and bias.ndim != 1:
        raise Rejected("bias-rank", f"the bias has rank {bias.ndim}, not 1")
    if bias is not None and bias.shape[0] != d_out:
        raise Rejected("bias-width", f"the bias has width {bias.shape[0]}, not {d_out}")
    if x.ndim == 0:
        raise Rejected("input-rank", "the input has no axis")
    if x.shape[-1] != d_in:
        raise Rejected("input-width", f"the input has width {x.shape[-1]}, not {d_in}")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
