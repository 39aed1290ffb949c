"""PyTorch: ``torch.optim.AdamW`` and ``clip_grad_norm_`` on a module, and how a new one starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ._counting import Counting
from ._parameters import Sizes, sizes_of, starts_as
from ._rejections import check_configuration, check_widths
from ._torch_decoder import TorchDecoder
from ._torch_model import Decoder


class TorchTraining(TorchDecoder, Counting):
    """A model is a ``torch.nn.Module`` and an optimiser one of ``torch.optim``.

    No generator but their own is drawn from.
    """

    def _registered(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        return {name: tuple(p.shape) for name, p in Decoder(sizes).by_name().items()}

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
    ) -> dict[str, dict[str, Tensor]]:
        """A configuration and a seed -> ``parameters`` by name, by ``torch.nn.init``.

        Weights and tables normal with deviation 0.02, scales 1, shifts and biases 0. Raises
        ``Rejected`` as ``build``.
        """
        sizes = Sizes(vocab_size, block_size, d_model, n_layers, d_ff)
        check_configuration(sizes, n_heads, dropout)
        model = Decoder(sizes, self.device, getattr(torch, self.run_dtype))
        generator = torch.Generator(self.device).manual_seed(random_seed)
        for name, parameter, _ in model.registered:
            match starts_as(name):
                case "drawn":
                    nn.init.normal_(parameter, std=0.02, generator=generator)
                case "ones":
                    nn.init.ones_(parameter)
                case "zeros":
                    nn.init.zeros_(parameter)
        return {"parameters": model.by_name()}

    def initialize_linear(
        self, *, d_in: int, d_out: int, with_bias: bool, random_seed: int
    ) -> dict[str, Tensor]:
        """Widths and a seed -> ``weight [d_in, d_out]`` and, if wanted, ``bias [d_out]``.

        An ``nn.Linear``, its weight set by ``nn.init.xavier_uniform_``, its bias zero. Raises
        ``Rejected`` for a width of zero.
        """
        check_widths(d_in, d_out)
        layer = nn.Linear(
            d_in, d_out, with_bias, device="meta", dtype=getattr(torch, self.run_dtype)
        )
        layer = layer.to_empty(device=self.device)
        generator = torch.Generator(self.device).manual_seed(random_seed)
        nn.init.xavier_uniform_(layer.weight, generator=generator)
        if not with_bias:
            return {"weight": layer.weight.T}
        return {"weight": layer.weight.T, "bias": nn.init.zeros_(layer.bias)}

    def splitmix64(self, *, random_seed: int, count: int) -> Tensor:
        """A seed -> ``values [count]``, the first outputs of SplitMix64, as uint64.

        PyTorch has no arithmetic of uint64; that of int64 gives the same bits, for it wraps
        around at 2^64 too, once the bits that a shift brings in from the sign are cleared.
        """
        steps = torch.arange(1, count + 1, device=self.device)
        z = steps * _signed(0x9E3779B97F4A7C15) + _signed(random_seed)
        z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
        z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
        return (z ^ _shifted(z, 31)).view(torch.uint64)

    def adamw_step(
        self,
        parameter: Tensor,
        gradient: Tensor,
        first_moment: Tensor,
        second_moment: Tensor,
        *,
        step: int,
        learning_rate: float,
        beta_1: float,
        beta_2: float,
        eps: float,
        weight_decay: float,
    ) -> dict[str, Tensor]:
        """Four tensors of one shape -> ``parameter``, ``first_moment`` and ``second_moment`` after.

        ``torch.optim.AdamW`` on one parameter, its state that of an optimiser that has made
        ``step`` - 1 steps.
        """
        own = nn.Parameter(parameter.clone())
        own.grad = gradient.clone()
        optimizer = torch.optim.AdamW(
            [own], lr=learning_rate, betas=(beta_1, beta_2), eps=eps, weight_decay=weight_decay
        )
        state = {"exp_avg": first_moment.clone(), "exp_avg_sq": second_moment.clone()}
        optimizer.state[own] = {"step": torch.tensor(float(step - 1)), **state}
        optimizer.step()
        return {
            "parameter": own,
            "first_moment": state["exp_avg"],
            "second_moment": state["exp_avg_sq"],
        }

    def clip_gradients(self, gradients: Mapping[str, Tensor], *, max_norm: float) -> dict[str, Any]:
        """Gradients by name -> the same ``gradients`` clipped, and their ``norm []`` before.

        ``torch.nn.utils.clip_grad_norm_``.
        """
        held = {name: nn.Parameter(torch.zeros_like(g)) for name, g in gradients.items()}
        for name, parameter in held.items():
            parameter.grad = gradients[name].clone()
        norm = nn.utils.clip_grad_norm_(held.values(), max_norm)
        return {"gradients": {name: p.grad for name, p in held.items()}, "norm": norm}

    def train(
        self,
        tokens: Tensor,
        targets: Tensor,
        parameters: Mapping[str, Tensor],
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
        clipping, absent where a step had no gradient; ``gradients`` by name, those of the last
        step; the last ``parameters`` by name; how many elements of each the optimiser holds,
        ``optimised``; ``predictions [B, T]``. Raises ``Rejected`` as ``decoder_loss``.
        """
        model = Decoder(sizes_of(parameters), self.device, parameters["head"].dtype)
        model.load(parameters)
        betas = (beta_1, beta_2)
        optimizer = torch.optim.AdamW(
            model.parameters(), learning_rate, betas, adam_eps, weight_decay
        )
        losses: list[Tensor] = []
        norms: dict[str, list[Tensor]] = {name: [] for name in model.by_name()}
        gradients: dict[str, Tensor] = {}
        with torch.enable_grad(), _one_thread():
            for _ in range(steps):
                optimizer.zero_grad(set_to_none=True)
                loss = self.decoder_loss(
                    tokens,
                    targets,
                    model.by_name(),
                    heads=heads,
                    eps=eps,
                    ignore_index=ignore_index,
                )
                loss.backward()
                losses.append(loss.detach())
                gradients = model.gradients()
                for name, gradient in gradients.items():
                    norms[name].append(torch.linalg.vector_norm(gradient))
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
                optimizer.step()
        with torch.no_grad():
            logits = self.decoder(tokens, model.by_name(), heads=heads, eps=eps)
        return {
            "losses": torch.stack(losses),
            "gradient_norms": {
                name: torch.stack(each) for name, each in norms.items() if len(each) == steps
            },
            "gradients": gradients,
            "parameters": model.by_name(),
            "optimised": _held(model, optimizer),
            "predictions": logits.argmax(dim=-1),
        }


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread: for a model of a few thousand numbers more of them only wait."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _held(model: Decoder, optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """The elements of each parameter of ``model`` that is, itself, among those of the optimiser."""
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    return {name: p.numel() for name, p, _turned in model.registered if id(p) in held}


def _signed(bits: int) -> int:
    """The int64 that has the 64 ``bits``."""
    bits %= 2**64
    return bits - 2**64 if bits >= 2**63 else bits


def _shifted(z: Tensor, by: int) -> Tensor:
    """The bits of ``z`` moved to the right, with zeros behind them."""
    shifted: Tensor = (z >> by) & (2 ** (64 - by) - 1)
    return shifted
