"""Mistakes in counting: parameters by group, bytes, activations, operations."""

from __future__ import annotations

from conformance.truth.faults import Fault

Shapes = dict[str, list[int]]


class AttentionBiasesCounted(Fault):
    """The maps of attention had biases."""

    breaks = "COUNT-GROUPS"
    also = ("BUILD-NO-BIAS",)
    sources = ("C-67",)
    mend = "Leave the biases of the four maps of attention out."

    def block_shapes(self, d_model: int, d_ff: int) -> Shapes:
        biases = {f"attention.b_{name}": [d_model] for name in "qkvo"}
        return {**super().block_shapes(d_model, d_ff), **biases}


class HeadBiasCounted(Fault):
    """The head had a bias."""

    breaks = "COUNT-GROUPS"
    also = ("BUILD-NO-BIAS",)
    sources = ("C-67",)
    mend = "Leave the bias of the head out."

    def parameter_shapes(
        self, vocab_size: int, block_size: int, d_model: int, n_layers: int, d_ff: int
    ) -> Shapes:
        shapes = super().parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        return {**shapes, "head_bias": [vocab_size]}


class FeedForwardBiasesForgotten(Fault):
    """The feed-forward had no biases."""

    breaks = "COUNT-GROUPS"
    sources = ("C-67",)
    mend = "Count a bias of width f and one of width d in each block."

    def block_shapes(self, d_model: int, d_ff: int) -> Shapes:
        return _without(super().block_shapes(d_model, d_ff), "feed_forward.b_")


class BiasOfWidthForgotten(Fault):
    """The feed-forward had its first bias alone: 4 d for the vectors of width d, and not 5 d."""

    breaks = "COUNT-GROUPS"
    sources = ("C-67",)
    mend = "Count the bias of width d as well."

    def block_shapes(self, d_model: int, d_ff: int) -> Shapes:
        return _without(super().block_shapes(d_model, d_ff), "feed_forward.b_2")


class OneNormCounted(Fault):
    """Each block had one norm instead of two."""

    breaks = "COUNT-GROUPS"
    sources = ("C-67",)
    mend = "Count two norms in each block, of 2 d each."

    def block_shapes(self, d_model: int, d_ff: int) -> Shapes:
        return _without(super().block_shapes(d_model, d_ff), "feed_forward_norm")


class ShiftsForgotten(Fault):
    """The norms of the blocks had scales and no shifts."""

    breaks = "COUNT-GROUPS"
    mend = "Count a scale and a shift in each norm."

    def block_shapes(self, d_model: int, d_ff: int) -> Shapes:
        found = super().block_shapes(d_model, d_ff)
        return {name: shape for name, shape in found.items() if not name.endswith(".beta")}


class OutputMapForgotten(Fault):
    """Attention had no map of the output."""

    breaks = "COUNT-GROUPS"
    sources = ("C-67",)
    mend = "Count four square maps in each block."

    def block_shapes(self, d_model: int, d_ff: int) -> Shapes:
        return _without(super().block_shapes(d_model, d_ff), "attention.w_o")


class SecondMapForgotten(Fault):
    """The feed-forward had one map instead of two."""

    breaks = "COUNT-GROUPS"
    mend = "Count 2 d f for the maps of the feed-forward."

    def block_shapes(self, d_model: int, d_ff: int) -> Shapes:
        return _without(super().block_shapes(d_model, d_ff), "feed_forward.w_2")


class FinalNormNotCounted(Fault):
    """There was no final norm."""

    breaks = "COUNT-GROUPS"
    sources = ("C-67",)
    mend = "Count the 2 d of the final norm."

    def parameter_shapes(
        self, vocab_size: int, block_size: int, d_model: int, n_layers: int, d_ff: int
    ) -> Shapes:
        shapes = super().parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        return _without(shapes, "final_norm")


class NormsNotCounted(Fault):
    """No norm had parameters."""

    breaks = "COUNT-GROUPS"
    sources = ("C-67",)
    mend = "Count scale and shift of every norm."

    def parameter_shapes(
        self, vocab_size: int, block_size: int, d_model: int, n_layers: int, d_ff: int
    ) -> Shapes:
        shapes = super().parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        return {name: shape for name, shape in shapes.items() if "norm" not in name}


class PositionsNotCounted(Fault):
    """There was no position table, and nothing depended on the context."""

    breaks = "COUNT-GROUPS"
    also = ("COUNT-NOT-OF-LENGTH",)
    sources = ("C-67", "C-68")
    mend = "Count a row of the position table for every position of the context."

    def parameter_shapes(
        self, vocab_size: int, block_size: int, d_model: int, n_layers: int, d_ff: int
    ) -> Shapes:
        shapes = super().parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        return _without(shapes, "position_embedding")


class PositionsOfVocabulary(Fault):
    """The position table had a row for every word instead of every position."""

    breaks = "COUNT-GROUPS"
    also = ("COUNT-NOT-OF-LENGTH",)
    sources = ("C-67",)
    mend = "Give the position table as many rows as the context has positions."

    def parameter_shapes(
        self, vocab_size: int, block_size: int, d_model: int, n_layers: int, d_ff: int
    ) -> Shapes:
        shapes = super().parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        return {**shapes, "position_embedding": [vocab_size, d_model]}


class HeadNotCounted(Fault):
    """The head was counted with the token table, as if it were tied to it."""

    breaks = "COUNT-GROUPS"
    also = ("BUILD-UNTIED",)
    sources = ("C-49", "C-67")
    mend = "Count the head apart: it is not tied to the embedding."

    def parameter_shapes(
        self, vocab_size: int, block_size: int, d_model: int, n_layers: int, d_ff: int
    ) -> Shapes:
        shapes = super().parameter_shapes(vocab_size, block_size, d_model, n_layers, d_ff)
        return _without(shapes, "head")


class EmbeddingLeftOutOfTotal(Fault):
    """The total left the position table out, as totals of other models do."""

    breaks = "COUNT-TOTAL"
    mend = "Add up every group."

    def total(self, groups: dict[str, int]) -> int:
        return super().total(groups) - groups["position_embedding"]


class PackingNotCounted(Fault):
    """Packed queries, keys and values were still counted as three tensors."""

    breaks = "COUNT-PACKED"
    mend = "Count one tensor for the three where they are packed."

    def tensors(self, names: list[str], packed: bool) -> int:
        del packed
        return len(names)


class PackingShrinksCount(Fault):
    """Packing queries, keys and values left one of the three to be counted."""

    breaks = "COUNT-PACKED"
    mend = "Count 3 d^2 for the packed tensor: packing changes no number of scalars."

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
        found = super().parameter_groups(
            vocab_size=vocab_size,
            block_size=block_size,
            d_model=d_model,
            n_layers=n_layers,
            d_ff=d_ff,
            packed=packed,
        )
        groups = found["groups"]
        assert isinstance(groups, dict)
        if packed:
            groups["attention"] -= 2 * n_layers * d_model * d_model
        return {**found, "total": self.total(groups)}


def _without(shapes: Shapes, start: str) -> Shapes:
    """``shapes`` less those whose names begin with ``start``."""
    return {name: shape for name, shape in shapes.items() if not name.startswith(start)}
