"""Mistakes in building a model: what it registers, and which configurations it takes."""

from __future__ import annotations

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault

Shapes = dict[str, list[int]]
Sizes = dict[str, int]


class BlocksInPlainList(Fault):
    """The blocks sat in a plain list, where the model does not find their parameters."""

    breaks = "BUILD-REGISTERED"
    also = ("BUILD-COUNT",)
    sources = ("C-37",)
    mend = "Keep the blocks in a container that registers them, such as ModuleList."

    def registers(self, name: str) -> bool:
        return not name.startswith("blocks.")


class BlockShared(Fault):
    """One block object stood in every place, so that its parameters were there once."""

    breaks = "BUILD-REGISTERED"
    also = ("BUILD-COUNT", "COUNT-GROUPS")
    sources = ("C-36",)
    mend = "Build a block of its own for every layer."

    def parameter_shapes(
        self, vocab_size: int, block_size: int, d_model: int, n_layers: int, d_ff: int
    ) -> Shapes:
        return super().parameter_shapes(vocab_size, block_size, d_model, 1, d_ff)


class PositionsNotRegistered(Fault):
    """The position table was a plain tensor, which the model does not register."""

    breaks = "BUILD-REGISTERED"
    also = ("BUILD-COUNT",)
    sources = ("C-55",)
    mend = "Make the position table a parameter."

    def registers(self, name: str) -> bool:
        return name != "position_embedding"


class HeadNotRegistered(Fault):
    """The head was a plain tensor, which the model does not register."""

    breaks = "BUILD-REGISTERED"
    also = ("BUILD-COUNT",)
    sources = ("C-55", "BUG-PAR-06")
    mend = "Make the head a parameter, or a layer that the model holds."

    def registers(self, name: str) -> bool:
        return name != "head"


class NormsNotRegistered(Fault):
    """Scales and shifts were plain tensors, which the model does not register."""

    breaks = "BUILD-REGISTERED"
    also = ("BUILD-COUNT",)
    sources = ("C-55",)
    mend = "Make scale and shift of every norm parameters."

    def registers(self, name: str) -> bool:
        return not name.endswith((".gamma", ".beta"))


class MaskTrainable(Fault):
    """The causal mask was registered as a parameter and counted."""

    breaks = "BUILD-CONSTANTS-NOT-TRAINABLE"
    sources = ("C-56",)
    mend = "Register the mask as a buffer, or make it where it is used."

    def registered(self, shapes: Shapes, sizes: Sizes) -> Shapes:
        length = sizes["block_size"]
        return {**super().registered(shapes, sizes), "mask": [length, length]}


class PositionIndexTrainable(Fault):
    """The index of the positions was registered as a parameter and counted."""

    breaks = "BUILD-CONSTANTS-NOT-TRAINABLE"
    sources = ("C-56",)
    mend = "Register the positions as a buffer, or make them where they are used."

    def registered(self, shapes: Shapes, sizes: Sizes) -> Shapes:
        return {**super().registered(shapes, sizes), "positions": [sizes["block_size"]]}


class HeadsOfFullWidth(Fault):
    """Every head had maps of the full width, so that merged heads were h times too wide."""

    breaks = "BUILD-REGISTERED"
    also = ("BUILD-COUNT",)
    sources = ("C-31",)
    mend = "Split one map of width d among the heads."

    def registered(self, shapes: Shapes, sizes: Sizes) -> Shapes:
        heads = sizes["n_heads"]
        wide = {}
        for name, shape in super().registered(shapes, sizes).items():
            rows, *columns = shape
            if name.endswith(("w_q", "w_k", "w_v")):
                wide[name] = [rows, columns[0] * heads]
            else:
                wide[name] = [rows * heads, *columns] if name.endswith("w_o") else shape
        return wide


class ShapesTransposed(Fault):
    """The maps were registered as [out, in]."""

    breaks = "BUILD-REGISTERED"
    mend = "Report every weight as [in, out]; transpose what the framework stores otherwise."

    def registered(self, shapes: Shapes, sizes: Sizes) -> Shapes:
        found = super().registered(shapes, sizes)
        return {
            name: shape if name.endswith("_embedding") else shape[::-1]
            for name, shape in found.items()
        }


class TensorsCounted(Fault):
    """The tensors were counted, and not the scalars in them."""

    breaks = "BUILD-COUNT"
    mend = "Add up the number of elements of every parameter."

    def count(self, shapes: Shapes) -> int:
        return len(shapes)


class BytesCounted(Fault):
    """The bytes of the parameters were told as their count."""

    breaks = "BUILD-COUNT"
    also = ("COUNT-TOTAL",)
    sources = ("C-68",)
    mend = "Tell the number of scalars; bytes are another figure."

    def count(self, shapes: Shapes) -> int:
        return 4 * super().count(shapes)

    def total(self, groups: dict[str, int]) -> int:
        return 4 * super().total(groups)


# --------------------------------------------------------------------------- the configuration


class SizesUnchecked(Fault):
    """Sizes of zero and below were taken."""

    breaks = "BUILD-ERR-POSITIVE"
    mend = "Refuse a size that is not positive when the model is built."

    def check_positive(self, sizes: Sizes) -> None:
        del sizes


class ZeroSizesAccepted(Fault):
    """A size of zero was taken; only negative ones were refused."""

    breaks = "BUILD-ERR-POSITIVE"
    mend = "Refuse zero as well: every size is at least 1."

    def check_positive(self, sizes: Sizes) -> None:
        super().check_positive({name: size or 1 for name, size in sizes.items()})


class AnyHeadsAccepted(Fault):
    """A number of heads that does not divide the width was taken."""

    breaks = "BUILD-ERR-HEADS"
    mend = "Refuse a width that the heads do not divide."

    def check_division(self, width: int, heads: int) -> None:
        del width, heads


class VocabularyUnchecked(Fault):
    """A vocabulary without room for the reserved tokens was taken."""

    breaks = "BUILD-ERR-VOCABULARY"
    mend = "Refuse fewer than three words."

    def check_vocabulary(self, vocab_size: int) -> None:
        del vocab_size


class DropoutUnchecked(Fault):
    """A dropout that is no probability was taken."""

    breaks = "BUILD-ERR-DROPOUT"
    mend = "Refuse a dropout below 0 or above 1."

    def check_dropout(self, dropout: Node) -> None:
        del dropout


class NegativeDropoutAccepted(Fault):
    """A negative dropout was taken; only what is above 1 was refused."""

    breaks = "BUILD-ERR-DROPOUT"
    mend = "Refuse a dropout below 0 as well."

    def check_dropout(self, dropout: Node) -> None:
        if float(dropout.tape.domain.sign(dropout.value)) >= 0:
            super().check_dropout(dropout)


class LargeDropoutAccepted(Fault):
    """A dropout above 1 was taken; only what is negative was refused."""

    breaks = "BUILD-ERR-DROPOUT"
    mend = "Refuse a dropout above 1 as well."

    def check_dropout(self, dropout: Node) -> None:
        if float(dropout.tape.domain.sign((dropout - 1).value)) <= 0:
            super().check_dropout(dropout)
