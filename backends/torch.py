"""PyTorch: the functions of ``torch.nn.functional``, differentiated by autograd.

One method an operation, in tensors; ``vjp`` differentiates any of them, so a subclass that
replaces ``layer_norm`` changes its gradient too, and that of every operation built from it.

Shapes: ``...`` is any number of leading axes, none included; a weight is ``[in, out]``. Tensors
are float64 or float32, and what is returned has the dtype of what was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from conformance import Adapter, Rejected


class TorchBackend(Adapter):
    """``linear``, ``layer_norm`` and ``gelu`` as PyTorch has them, with exact GELU.

    PyTorch accepts what the specification forbids: a weight of rank 1, widths of zero, a bias of
    rank 0 or 2 or of width 1, operands of ``+`` that differ in shape. So ``linear`` and
    ``residual_add`` check their arguments themselves and raise ``Rejected``.

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

        An argument that the output doesn't depend on has no gradient, hence no key. Raises what
        the operation raises.
        """
        leaves = {name: arguments[name].detach().requires_grad_() for name in wrt}
        with _full_precision(), torch.enable_grad():
            output = getattr(self, operation)(**{**arguments, **leaves})
            if not output.requires_grad:
                return {}
            gradients = torch.autograd.grad(
                output, tuple(leaves.values()), upstream, allow_unused=True
            )
        found = zip(leaves, gradients, strict=True)
        return {name: gradient for name, gradient in found if gradient is not None}

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``x [..., d_in]``, ``weight [d_in, d_out]``, ``bias [d_out]`` -> ``y [..., d_out]``.

        ``torch.nn.functional.linear``, which stores the weight ``[out, in]``: it is handed the
        transpose. Raises ``Rejected`` for each kind that ``linear`` rejects.
        """
        _check_linear(x, weight, bias)
        return functional.linear(x, weight.T, bias)

    def layer_norm(self, x: Tensor, gamma: Tensor, beta: Tensor, *, eps: float) -> Tensor:
        """``x [..., d]``, ``gamma [d]``, ``beta [d]`` -> ``y [..., d]``, over the last axis.

        ``torch.nn.functional.layer_norm``.
        """
        return functional.layer_norm(x, x.shape[-1:], gamma, beta, eps)

    def gelu(self, x: Tensor) -> Tensor:
        """``x [...]`` -> ``y [...]``: ``torch.nn.functional.gelu`` without the tanh formula."""
        return functional.gelu(x, approximate="none")

    def residual_add(self, x: Tensor, increment: Tensor) -> Tensor:
        """``x [...]``, ``increment`` of the same shape -> ``y [...]``: y = x + increment.

        Raises ``Rejected("shape-mismatch")``.
        """
        if x.shape != increment.shape:
            shapes = f"{tuple(x.shape)} and {tuple(increment.shape)}"
            raise Rejected("shape-mismatch", f"{shapes} differ in shape")
        return x + increment

    def feed_forward(self, x: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
        """``x [..., d]``, ``w_1 [d, f]``, ``b_1 [f]``, ``w_2 [f, d]``, ``b_2 [d]`` -> ``[..., d]``.

        y = gelu(x w_1 + b_1) w_2 + b_2. Raises ``Rejected`` as ``linear``.
        """
        return self.linear(self.gelu(self.linear(x, w_1, b_1)), w_2, b_2)

    def feed_forward_sublayer(
        self,
        x: Tensor,
        gamma: Tensor,
        beta: Tensor,
        w_1: Tensor,
        b_1: Tensor,
        w_2: Tensor,
        b_2: Tensor,
        *,
        eps: float,
    ) -> Tensor:
        """``x [..., d]`` and the parameters of ``layer_norm`` and ``feed_forward`` -> ``[..., d]``.

        y = x + feed_forward(layer_norm(x)). Raises ``Rejected`` as ``linear``, ``residual_add``.
        """
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        return self.residual_add(x, self.feed_forward(normalised, w_1, b_1, w_2, b_2))


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


def _check_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
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
