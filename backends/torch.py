"""PyTorch: the functions of ``torch.nn.functional``, differentiated by autograd.

One method an operation, in tensors; ``vjp`` differentiates any of them, so a subclass that
replaces ``layer_norm`` changes its gradient too, and that of every operation built from it.

The operations of a block are in ``_torch_layers.py``, from tokens to loss in
``_torch_decoder.py``; the model that trains is in ``_torch_model.py`` and ``_torch_training.py``.

Shapes: ``...`` is any number of leading axes, none included; B sequences of T tokens, of V
different ones; a weight is ``[in, out]``. Tensors are float64 or float32, tokens and targets
int64, and what is returned has the dtype of what was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._parameters import by_name, replaced
from ._torch_training import TorchTraining


class TorchBackend(TorchTraining):
    """The operations as PyTorch has them.

    PyTorch accepts what the specification forbids: a weight of rank 1, widths of zero, a bias of
    rank 0 or 2 or of width 1, operands of ``+`` that differ in shape, tokens of int32, a mean over
    no target. So operations check their arguments themselves and raise ``Rejected``.

    Runs on the CPU; a subclass with ``device = "cuda"`` runs where PyTorch has that device.
    """

    name = "torch"
    device = "cpu"

    def versions(self) -> dict[str, str]:
        """The version of PyTorch, build included."""
        return {"torch": str(torch.__version__)}

    def to_native(self, array: np.ndarray) -> Tensor:
        """A tensor on ``device`` with a copy of ``array``, in its dtype and its order of axes."""
        return torch.from_numpy(array.copy(order="K")).to(self.device)

    def to_numpy(self, native: Tensor) -> np.ndarray:
        """The values of a tensor, detached from its graph, in its dtype."""
        array: np.ndarray = native.detach().cpu().numpy()
        return array

    def evaluate(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Call the operation's method, with products of float32 in full precision."""
        with _full_precision():
            return super().evaluate(operation, arguments)

    def vjp(
        self,
        operation: str,
        upstream: Tensor,
        arguments: Mapping[str, Any],
        wrt: tuple[str, ...],
    ) -> dict[str, Tensor]:
        """``upstream``, shaped like the one output -> the gradients of ``wrt`` by autograd.

        ``wrt`` names arguments, and parameters by their own names. One that the output doesn't
        depend on has no gradient, hence no key. Raises what the operation raises.
        """
        named = by_name(arguments)
        leaves = {name: named[name].detach().requires_grad_() for name in wrt}
        with _full_precision(), torch.enable_grad():
            output = getattr(self, operation)(**replaced(arguments, leaves))
            if not output.requires_grad:
                return {}
            gradients = torch.autograd.grad(
                output, tuple(leaves.values()), upstream, allow_unused=True
            )
        found = zip(leaves, gradients, strict=True)
        return {name: gradient for name, gradient in found if gradient is not None}


@contextmanager
def _full_precision() -> Iterator[None]:
    """Multiply float32 matrices in float32, then give the process its own settings back.

    Full precision is PyTorch's default, but a process that trains may have lowered it, and then
    a GPU, or a CPU with bfloat16 units, rounds the factors to 11 or 8 digits.
    """
    settings: Any = torch.backends  # its modules make their attributes at run time
    matmuls = (settings.cuda.matmul, settings.mkldnn.matmul)
    chosen = [matmul.fp32_precision for matmul in matmuls]
    try:
        for matmul in matmuls:
            matmul.fp32_precision = "ieee"
        yield
    finally:
        for matmul, precision in zip(matmuls, chosen, strict=True):
            matmul.fp32_precision = precision
