"""PyTorch: everything of a block, from the linear layer to both sublayers."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional

from conformance import Adapter

from ._parameters import ATTENTION, FEED_FORWARD, chosen
from ._rejections import check_attention, check_linear, check_same_shape


class TorchLayers(Adapter):
    """The functions of ``torch.nn.functional``, with exact GELU."""

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``x [..., d_in]``, ``weight [d_in, d_out]``, ``bias [d_out]`` -> ``y [..., d_out]``.

        ``torch.nn.functional.linear``, which stores the weight ``[out, in]``: it is handed the
        transpose. Raises ``Rejected`` for each kind that ``linear`` rejects.
        """
        check_linear(x, weight, bias)
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
        check_same_shape(x, increment)
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

    def softmax(self, x: Tensor) -> Tensor:
        """``x [..., n]`` -> ``y [..., n]``: ``torch.nn.functional.softmax`` over the last axis."""
        return functional.softmax(x, dim=-1)

    def causal_attention(
        self, x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, *, heads: int
    ) -> Tensor:
        """``x [B, T, d]``, each weight ``[d, d]`` -> ``y [B, T, d]``.

        ``torch.nn.functional.scaled_dot_product_attention`` between four linear layers; it has a
        softmax of its own. Head k has the features from k d_head on. Raises
        ``Rejected("input-rank")``, ``Rejected("heads")``, then as ``linear``.
        """
        check_attention(x, heads)
        q, k, v = (_split_heads(self.linear(x, weight), heads) for weight in (w_q, w_k, w_v))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.linear(_merge_heads(attended), w_o)

    def attention_sublayer(
        self,
        x: Tensor,
        gamma: Tensor,
        beta: Tensor,
        w_q: Tensor,
        w_k: Tensor,
        w_v: Tensor,
        w_o: Tensor,
        *,
        heads: int,
        eps: float,
    ) -> Tensor:
        """``x [B, T, d]``, parameters of ``layer_norm``, ``causal_attention`` -> ``[B, T, d]``.

        y = x + causal_attention(layer_norm(x)). Raises ``Rejected`` as ``causal_attention`` and
        ``residual_add``.
        """
        check_attention(x, heads)
        normalised = self.layer_norm(x, gamma, beta, eps=eps)
        increment = self.causal_attention(normalised, w_q, w_k, w_v, w_o, heads=heads)
        return self.residual_add(x, increment)

    def block(
        self, x: Tensor, parameters: Mapping[str, Tensor], *, heads: int, eps: float
    ) -> Tensor:
        """``x [B, T, d]`` and the parameters of a block by name -> ``y [B, T, d]``.

        y = feed_forward_sublayer(u) with u = attention_sublayer(x): the second branch reads and
        adds to what the first one gave. Raises ``Rejected`` as the sublayers.
        """
        u = self.attention_sublayer(x, **chosen(parameters, ATTENTION), heads=heads, eps=eps)
        return self.feed_forward_sublayer(u, **chosen(parameters, FEED_FORWARD), eps=eps)


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """``[B, T, d] -> [B, heads, T, d_head]``."""
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(1, 2)


def _merge_heads(x: Tensor) -> Tensor:
    """``[B, heads, T, d_head] -> [B, T, d]``, the inverse of ``_split_heads``."""
    batch, heads, length, width = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * width)
