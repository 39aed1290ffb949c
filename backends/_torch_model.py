"""PyTorch: the decoder as a module, which registers its parameters under names of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from ._parameters import Sizes


class Attention(nn.Module):
    """The four maps of an attention, none with a bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.w_q = nn.Linear(width, width, bias=False)
        self.w_k = nn.Linear(width, width, bias=False)
        self.w_v = nn.Linear(width, width, bias=False)
        self.w_o = nn.Linear(width, width, bias=False)


class FeedForward(nn.Module):
    """The two maps of a feed-forward, both with a bias."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(width, inner)
        self.w_2 = nn.Linear(inner, width)


class Block(nn.Module):
    """Two sublayers, each with a layer norm of its own."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width, inner)


class Decoder(nn.Module):
    """The modules hold the parameters; the adapter computes with them, and may override anything.

    It is made without memory and given some afterwards, so that nothing is drawn from the
    generator of the process; its numbers are not set yet. The mask is that of PyTorch's own
    attention, and positions are a slice: there are no constants to register.

    ``registered`` has every registered parameter under the specification's name, and whether it
    is transposed: ``nn.Linear`` keeps its weight ``[out, in]``.
    """

    def __init__(
        self, sizes: Sizes, device: str = "meta", dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        with torch.device("meta"):
            self.token_embedding = nn.Embedding(sizes.vocab_size, sizes.d_model)
            self.position_embedding = nn.Embedding(sizes.block_size, sizes.d_model)
            self.blocks = nn.ModuleList(
                Block(sizes.d_model, sizes.d_ff) for _ in range(sizes.n_layers)
            )
            self.final_norm = nn.LayerNorm(sizes.d_model)
            self.head = nn.Linear(sizes.d_model, sizes.vocab_size, bias=False)
        self.to(dtype).to_empty(device=device)
        self.registered = tuple(self._registered())

    def _registered(self) -> Iterator[tuple[str, nn.Parameter, bool]]:
        for name, parameter in self.named_parameters():
            path, _, kind = name.rpartition(".")
            module = self.get_submodule(path)
            if isinstance(module, nn.LayerNorm):
                yield f"{path}.{'gamma' if kind == 'weight' else 'beta'}", parameter, False
            elif kind == "bias":
                yield path.replace(".w_", ".b_"), parameter, False
            else:
                yield path, parameter, isinstance(module, nn.Linear)

    def by_name(self) -> dict[str, Tensor]:
        """The parameters as the specification has them, weights ``[in, out]``."""
        return {name: p.T if turned else p for name, p, turned in self.registered}

    def gradients(self) -> dict[str, Tensor]:
        """Copies of the gradients that there are, as ``by_name``."""
        return {
            name: (p.grad.T if turned else p.grad).clone()
            for name, p, turned in self.registered
            if p.grad is not None
        }

    def load(self, parameters: Mapping[str, Tensor]) -> None:
        """Take the numbers of ``parameters``, by the specification's names."""
        with torch.no_grad():
            for name, own in self.by_name().items():
                own.copy_(parameters[name])
