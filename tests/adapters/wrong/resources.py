"""Ledgers, bytes and operations with one mistake each."""

from __future__ import annotations

from tests.adapters.training_torch import TrainingTorch

# --------------------------------------------------------------------------- wrong in every count


class BiasesInAttention(TrainingTorch):
    fault = "attention-biases-counted"

    def layer_shapes(self, width, heads, inner):
        biases = {f"attention.b_{name}": (width,) for name in "qkvo"}
        return {**super().layer_shapes(width, heads, inner), **biases}

    def ledger(self, words, context, width, layers, inner, packed):
        groups = super().ledger(words, context, width, layers, inner, packed)
        return {**groups, "attention": groups["attention"] + layers * 4 * width}

    def tensors(self, layers, packed):
        return super().tensors(layers, packed) + 4 * layers


class BiasInTheHead(TrainingTorch):
    fault = "head-bias-counted"

    def model_shapes(self, words, *sizes):
        return {**super().model_shapes(words, *sizes), "head_bias": (words,)}

    def ledger(self, words, context, width, layers, inner, packed):
        groups = super().ledger(words, context, width, layers, inner, packed)
        return {**groups, "head": groups["head"] + words}

    def tensors(self, layers, packed):
        return super().tensors(layers, packed) + 1


class Lacks(TrainingTorch):
    """What has a name with ``part`` in it is not there; ``less`` says what the ledger lacks."""

    part = ""
    of_blocks = 0
    of_model = 0

    def model_shapes(self, *sizes):
        shapes = super().model_shapes(*sizes)
        return {name: shape for name, shape in shapes.items() if self.part not in name}

    def ledger(self, words, context, width, layers, inner, packed):
        groups = super().ledger(words, context, width, layers, inner, packed)
        return {**groups, **self.less(groups, words, width, layers, inner)}

    def tensors(self, layers, packed):
        return super().tensors(layers, packed) - layers * self.of_blocks - self.of_model


class NoBiases(Lacks):
    fault = "feed-forward-biases-forgotten"
    part, of_blocks = "feed_forward.b_", 2

    def less(self, groups, words, width, layers, inner):
        return {"feed_forward_biases": 0}


class FourOfWidth(Lacks):
    fault = "bias-of-width-forgotten"
    part, of_blocks = "feed_forward.b_2", 1

    def less(self, groups, words, width, layers, inner):
        return {"feed_forward_biases": layers * inner}


class OneNorm(Lacks):
    fault = "one-norm-counted"
    part, of_blocks = "feed_forward_norm", 2

    def less(self, groups, words, width, layers, inner):
        return {"block_norms": 2 * layers * width}


class NoShifts(Lacks):
    fault = "shifts-forgotten"
    part, of_blocks = "_norm.beta", 2

    def model_shapes(self, *sizes):
        shapes = super().model_shapes(*sizes)
        return {**shapes, "final_norm.beta": shapes["final_norm.gamma"]}

    def less(self, groups, words, width, layers, inner):
        return {"block_norms": 2 * layers * width}


class NoOutputMap(Lacks):
    fault = "output-map-forgotten"
    part, of_blocks = "attention.w_o", 1

    def less(self, groups, words, width, layers, inner):
        return {"attention": 3 * layers * width**2}


class NoSecondMap(Lacks):
    fault = "second-map-forgotten"
    part, of_blocks = "feed_forward.w_2", 1

    def less(self, groups, words, width, layers, inner):
        return {"feed_forward_weights": layers * width * inner}


class NoFinalNorm(Lacks):
    fault = "final-norm-not-counted"
    part, of_model = "final_norm", 2

    def less(self, groups, words, width, layers, inner):
        return {"final_norm": 0}


class NoNorms(Lacks):
    fault = "norms-not-counted"
    part, of_blocks, of_model = "norm", 4, 2

    def less(self, groups, words, width, layers, inner):
        return {"final_norm": 0, "block_norms": 0}


class NoPositions(Lacks):
    fault = "positions-not-counted"
    part, of_model = "position_embedding", 1

    def less(self, groups, words, width, layers, inner):
        return {"position_embedding": 0}


class NoHead(Lacks):
    fault = "head-not-counted"
    part, of_model = "head", 1

    def less(self, groups, words, width, layers, inner):
        return {"head": 0}


class PositionsForWords(TrainingTorch):
    fault = "positions-of-vocabulary"

    def model_shapes(self, words, context, *sizes):
        return super().model_shapes(words, words, *sizes)

    def ledger(self, words, context, width, layers, inner, packed):
        return super().ledger(words, words, width, layers, inner, packed)


# ---------------------------------------------------------------------------- wrong in the ledger


class CountsWithoutPositions(TrainingTorch):
    fault = "embedding-left-out-of-total"

    def sum_of(self, groups):
        return sum(count for name, count in groups.items() if name != "position_embedding")


class UnpacksBeforeCounting(TrainingTorch):
    fault = "packing-not-counted"

    def tensors(self, layers, packed):
        return super().tensors(layers, packed=False)


class CountsOneOfThree(TrainingTorch):
    fault = "packing-shrinks-count"

    def ledger(self, words, context, width, layers, inner, packed):
        groups = super().ledger(words, context, width, layers, inner, packed)
        return {**groups, "attention": groups["attention"] // 2} if packed else groups


# --------------------------------------------------------------- bytes, activations, operations


class KeepsOneMoment(TrainingTorch):
    fault = "one-moment-stored"

    def training_bytes(self, *, parameters, bytes_per_number):
        return 3 * parameters * bytes_per_number


class KeepsNoMoments(TrainingTorch):
    fault = "moments-not-stored"

    def training_bytes(self, *, parameters, bytes_per_number):
        return 2 * parameters * bytes_per_number


class KeepsTheParameters(TrainingTorch):
    fault = "parameters-stored-alone"

    def training_bytes(self, *, parameters, bytes_per_number):
        return parameters * bytes_per_number


class SaysKibibytes(TrainingTorch):
    fault = "kibibytes-told"

    def training_bytes(self, *, parameters, bytes_per_number):
        return 4 * parameters * bytes_per_number // 2**10


class AssumesSinglePrecision(TrainingTorch):
    fault = "number-always-of-four-bytes"

    def training_bytes(self, *, parameters, bytes_per_number):
        return 4 * 4 * parameters


class ScoresPerPosition(TrainingTorch):
    fault = "scores-linear"

    def activation_elements(self, *, batch, length, n_heads, vocab_size):
        return {"scores": batch * n_heads * length, "logits": batch * length * vocab_size}


class ScoresPerSequence(TrainingTorch):
    fault = "scores-of-one-head"

    def activation_elements(self, *, batch, length, n_heads, vocab_size):
        return {"scores": batch * length**2, "logits": batch * length * vocab_size}


class ScoresPerHead(TrainingTorch):
    fault = "scores-of-one-sequence"

    def activation_elements(self, *, batch, length, n_heads, vocab_size):
        return {"scores": n_heads * length**2, "logits": batch * length * vocab_size}


class ScoresBelowTheDiagonal(TrainingTorch):
    fault = "scores-of-triangle"

    def activation_elements(self, *, batch, length, n_heads, vocab_size):
        pairs = sum(range(1, length + 1))
        return {"scores": batch * n_heads * pairs, "logits": batch * length * vocab_size}


class LogitsPerSequence(TrainingTorch):
    fault = "logits-of-last-position"

    def activation_elements(self, *, batch, length, n_heads, vocab_size):
        return {"scores": batch * n_heads * length**2, "logits": batch * vocab_size}


class CountsForward(TrainingTorch):
    fault = "forward-operations-alone"

    def training_flops(self, *, parameters, tokens):
        return 2 * parameters * tokens


class CountsBackward(TrainingTorch):
    fault = "backward-operations-alone"

    def training_flops(self, *, parameters, tokens):
        return 4 * parameters * tokens


class CountsOneToken(TrainingTorch):
    fault = "operations-of-one-token"

    def training_flops(self, *, parameters, tokens):
        return 6 * parameters
