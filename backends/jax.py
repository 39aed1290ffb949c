"""JAX on the CPU: every call compiled by ``jax.jit``, differentiated by ``jax.vjp``.

One method an operation, in JAX arrays; ``vjp`` differentiates any of them, so a subclass that
replaces ``layer_norm`` changes its gradient too, and that of every operation built from it.

The operations of a block are in ``_jax_layers.py``, from tokens to loss in ``_jax_decoder.py``,
and the model that trains in ``_jax_training.py``.

Shapes: ``...`` is any number of leading axes, none included; B sequences of T tokens, of V
different ones; a weight is ``[in, out]``. Arrays are float64 or float32, tokens and targets int64,
and what is returned has the dtype of what was given: constants are Python floats, which JAX never
promotes to.
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
import numpy as np
from jax import Array

from conformance import cache_folder

from ._jax_training import AS_THEY_ARE, JaxTraining
from ._parameters import by_name, replaced
from ._rejections import check_heads, check_targets, check_tokens

Attributes: TypeAlias = tuple[tuple[str, float], ...]


class JaxBackend(JaxTraining):
    """The operations in ``jax.numpy`` and ``jax.nn``, with exact GELU.

    There is one compilation for each operation, mode, dtype, set of shapes and set of attributes:
    attributes are compiled in as the Python numbers they are, so eps is never rounded to float32
    on its way into a float64 computation.

    JAX accepts what the specification forbids: a weight of rank 1 or 3, widths of zero, a bias of
    rank 0 or 2 or of width 1, operands of ``+`` that differ in shape, tokens outside the table,
    which it clamps. So operations check their arguments themselves and raise ``Rejected``. Shapes
    are known while a call is traced, tokens and targets only before: ``evaluate`` and ``vjp`` see
    to those. JAX knows no absent gradient: where an output doesn't depend on an argument, the
    gradient is zeros.
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
        """Call the operation's method, compiled. Raises what the operation raises."""
        _check_indices(arguments)
        arrays, attributes = _split(arguments)
        with _full_precision():
            if operation in AS_THEY_ARE:
                return getattr(self, operation)(**arguments)
            return self._compiled_evaluate(arrays, operation=operation, attributes=attributes)

    def vjp(
        self,
        operation: str,
        upstream: Array,
        arguments: Mapping[str, Any],
        wrt: tuple[str, ...],
    ) -> dict[str, Array]:
        """``upstream``, shaped like the one output -> the gradients of ``wrt``, compiled.

        ``wrt`` names arguments, and parameters by their own names. Raises what the operation
        raises.
        """
        _check_indices(arguments)
        arrays, attributes = _split(arguments)
        with _full_precision():
            return self._compiled_vjp(
                upstream, arrays, operation=operation, attributes=attributes, wrt=wrt
            )

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
                given = replaced(arrays, leaves)
                output: Array = getattr(self, operation)(**given, **dict(attributes))
                return output

            named = by_name(arrays)
            _, pull_back = jax.vjp(forward, {name: named[name] for name in wrt})
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


def _check_indices(arguments: Mapping[str, Any]) -> None:
    """Raise ``Rejected`` for tokens and targets that the operation must refuse.

    Their values are checked, so this comes before a compiled call, and for every operation that
    takes them, from ``embed`` to ``train``.
    """
    given = by_name(arguments)
    if "tokens" in given and not isinstance(given["tokens"], int):  # not their number
        tables = given["token_embedding"], given["position_embedding"]
        check_tokens(np.asarray(given["tokens"]), len(tables[0]), len(tables[1]))
    if "targets" in given:
        if "logits" in given:
            shape = given["logits"].shape
        else:
            check_heads(given["token_embedding"].shape[-1], given["heads"])  # comes between
            shape = (*given["tokens"].shape, given["head"].shape[-1])
        check_targets(np.asarray(given["targets"]), shape, given["ignore_index"])


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
