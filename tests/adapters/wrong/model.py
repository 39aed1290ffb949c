"""Models that register, take or count what they should not."""

from __future__ import annotations

from tests.adapters.training_torch import TrainingTorch

# ---------------------------------------------------------------------------------- registration


class Loses(TrainingTorch):
    """What has a name with one of ``lost`` in it is not found."""

    lost = ()

    def model_shapes(self, *sizes):
        shapes = super().model_shapes(*sizes)
        return {name: shapes[name] for name in self.discovered(shapes)}

    def discovered(self, model):
        return [name for name in model if not any(part in name for part in self.lost)]


class KeepsItsBlocksInAList(Loses):
    fault = "blocks-in-plain-list"
    lost = ("blocks.",)


class PutsPositionsInATensor(Loses):
    fault = "positions-not-registered"
    lost = ("position_embedding",)


class PutsTheHeadInATensor(Loses):
    fault = "head-not-registered"
    lost = ("head",)


class PutsTheNormsInTensors(Loses):
    fault = "norms-not-registered"
    lost = ("gamma", "beta")


class MultipliesAList(TrainingTorch):
    """[block] * n is one block n times."""

    fault = "block-shared"

    def model_shapes(self, words, context, width, heads, layers, inner):
        return super().model_shapes(words, context, width, heads, 1, inner)

    def ledger(self, words, context, width, layers, inner, packed):
        return super().ledger(words, context, width, 1, inner, packed)

    def tensors(self, layers, packed):
        return super().tensors(1, packed)


class TrainsItsMask(TrainingTorch):
    fault = "mask-trainable"

    def model_shapes(self, words, context, *sizes):
        return {**super().model_shapes(words, context, *sizes), "mask": (context, context)}


class TrainsItsPositions(TrainingTorch):
    fault = "position-index-trainable"

    def model_shapes(self, words, context, *sizes):
        return {**super().model_shapes(words, context, *sizes), "positions": (context,)}


class GivesEveryHeadTheWholeWidth(TrainingTorch):
    fault = "heads-of-full-width"

    def layer_shapes(self, width, heads, inner):
        wide = {f"attention.w_{name}": (width, heads * width) for name in "qkv"}
        own = super().layer_shapes(width, heads, inner)
        return {**own, **wide, "attention.w_o": (heads * width, width)}


class ReportsAsTheLibraryStores(TrainingTorch):
    fault = "shapes-transposed"

    def model_shapes(self, *sizes):
        return {
            name: shape if "embedding" in name else tuple(reversed(shape))
            for name, shape in super().model_shapes(*sizes).items()
        }


class CountsTensors(TrainingTorch):
    fault = "tensors-counted"

    def scalars(self, shapes):
        return len(shapes)


class CountsBytes(TrainingTorch):
    fault = "bytes-counted"

    def scalars(self, shapes):
        return 4 * super().scalars(shapes)

    def sum_of(self, groups):
        return 4 * super().sum_of(groups)


# --------------------------------------------------------------------------------- configuration


class TakesAnySize(TrainingTorch):
    fault = "sizes-unchecked"

    def need_sizes(self, sizes):
        pass

    def need_heads(self, width, heads):
        super().need_heads(width, heads or 2 * width + 1)


class TakesZeros(TrainingTorch):
    fault = "zero-sizes-accepted"

    def need_sizes(self, sizes):
        super().need_sizes([1 if size == 0 else size for size in sizes])

    def need_heads(self, width, heads):
        super().need_heads(width, heads or 2 * width + 1)


class TakesAnyHeads(TrainingTorch):
    fault = "any-heads-accepted"

    def need_heads(self, width, heads):
        pass


class TakesTwoWords(TrainingTorch):
    fault = "vocabulary-unchecked"

    def need_words(self, words):
        pass


class TakesAnyDropout(TrainingTorch):
    fault = "dropout-unchecked"

    def need_dropout(self, dropout):
        pass


class TakesNegativeDropout(TrainingTorch):
    fault = "negative-dropout-accepted"

    def need_dropout(self, dropout):
        super().need_dropout(max(dropout, 0))


class TakesLargeDropout(TrainingTorch):
    fault = "large-dropout-accepted"

    def need_dropout(self, dropout):
        super().need_dropout(min(dropout, 1))
