"""What a model has and what its training takes, in whole numbers: counted, not measured."""

from __future__ import annotations

import math

from conformance import Adapter

from ._parameters import GROUPS, Sizes, group
from ._rejections import check_configuration

#: The parameters of a block that packing merges into one tensor with ``w_q``.
_PACKED = (".attention.w_k", ".attention.w_v")


class Counting(Adapter):
    """Counts of the parameters that a model of the library registers, and what follows from them.

    ``build`` and ``parameter_groups`` ask a model; the others are products.
    """

    def _registered(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters that a new model of these sizes has registered, by name."""
        raise NotImplementedError

    def build(
        self,
        *,
        vocab_size: int,
        block_size: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        dropout: float,
    ) -> dict[str, dict[str, list[int]] | int]:
        """A configuration -> ``shapes`` by name and ``count``, the sum of their elements.

        Raises ``Rejected`` for each kind that ``build`` rejects.
        """
        sizes = Sizes(vocab_size, block_size, d_model, n_layers, d_ff)
        check_configuration(sizes, n_heads, dropout)
        shapes = self._registered(sizes)
        return {
            "shapes": {name: list(shape) for name, shape in shapes.items()},
            "count": sum(map(math.prod, shapes.values())),
        }

    def parameter_groups(
        self,
        *,
        vocab_size: int,
        block_size: int,
        d_model: int,
        n_layers: int,
        d_ff: int,
        packed: bool,
    ) -> dict[str, dict[str, int] | int]:
        """Sizes -> scalars in each of the ``groups``, their ``total``, and how many ``tensors``.

        ``packed``: a tensor for the queries, keys and values of a block together; as many scalars.
        """
        shapes = self._registered(Sizes(vocab_size, block_size, d_model, n_layers, d_ff))
        groups = dict.fromkeys(GROUPS, 0)
        for name, shape in shapes.items():
            groups[group(name)] += math.prod(shape)
        merged = sum(name.endswith(_PACKED) for name in shapes) if packed else 0
        return {
            "groups": groups,
            "total": sum(groups.values()),
            "tensors": len(shapes) - merged,
        }

    def training_bytes(self, *, parameters: int, bytes_per_number: int) -> int:
        """Parameters, their gradients, and two moments: four arrays. No activations."""
        return 4 * parameters * bytes_per_number

    def activation_elements(
        self, *, batch: int, length: int, n_heads: int, vocab_size: int
    ) -> dict[str, int]:
        """``scores`` [B, h, T, T] of one block, and ``logits`` [B, T, V]; nothing else."""
        return {
            "scores": batch * n_heads * length * length,
            "logits": batch * length * vocab_size,
        }

    def training_flops(self, *, parameters: int, tokens: int) -> int:
        """6 P D: 2 P D forward and twice that backward. Attention's own products are left out."""
        return 6 * parameters * tokens
