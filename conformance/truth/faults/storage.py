"""Mistakes in counting bytes, activations and operations."""

from __future__ import annotations

from conformance.truth.faults import Fault


class OneMomentStored(Fault):
    """One array was left out of the four, such as the second moment."""

    breaks = "BYTES-FOUR-ARRAYS"
    sources = ("C-68",)
    mend = "Count parameters, gradients and both moments."

    def training_arrays(self) -> int:
        return 3


class MomentsNotStored(Fault):
    """Parameters and gradients were counted, and no moments."""

    breaks = "BYTES-FOUR-ARRAYS"
    mend = "Count the two moments of the optimiser as well."

    def training_arrays(self) -> int:
        return 2


class ParametersStoredAlone(Fault):
    """The parameters alone were counted."""

    breaks = "BYTES-FOUR-ARRAYS"
    mend = "Count the gradients and the two moments as well."

    def training_arrays(self) -> int:
        return 1


class KibibytesTold(Fault):
    """Kibibytes were told for bytes."""

    breaks = "BYTES-FOUR-ARRAYS"
    sources = ("C-68",)
    mend = "Tell bytes; divide by 1024 for people only."

    def training_bytes(self, *, parameters: int, bytes_per_number: int) -> int:
        found = super().training_bytes(parameters=parameters, bytes_per_number=bytes_per_number)
        return found // 1024


class NumberAlwaysOfFourBytes(Fault):
    """Every number was counted with four bytes, whatever it has."""

    breaks = "BYTES-FOUR-ARRAYS"
    mend = "Multiply by the bytes of a number that are asked for."

    def training_bytes(self, *, parameters: int, bytes_per_number: int) -> int:
        del bytes_per_number
        return super().training_bytes(parameters=parameters, bytes_per_number=4)


class ScoresLinear(Fault):
    """The scores were counted as growing with the length instead of its square."""

    breaks = "ACTIVATIONS-QUADRATIC"
    mend = "Count a score for every pair of positions."

    def score_elements(self, batch: int, length: int, n_heads: int) -> int:
        return batch * n_heads * length


class ScoresOfOneHead(Fault):
    """The scores of one head were counted."""

    breaks = "ACTIVATIONS-QUADRATIC"
    mend = "Count the scores of every head."

    def score_elements(self, batch: int, length: int, n_heads: int) -> int:
        del n_heads
        return batch * length * length


class ScoresOfOneSequence(Fault):
    """The scores of one sequence of the batch were counted."""

    breaks = "ACTIVATIONS-QUADRATIC"
    mend = "Count the scores of every sequence of the batch."

    def score_elements(self, batch: int, length: int, n_heads: int) -> int:
        del batch
        return n_heads * length * length


class ScoresOfTriangle(Fault):
    """The scores that the mask leaves were counted, and not the array that holds all of them."""

    breaks = "ACTIVATIONS-QUADRATIC"
    mend = "Count the whole array [B, h, T, T]: the masked scores are stored too."

    def score_elements(self, batch: int, length: int, n_heads: int) -> int:
        return batch * n_heads * length * (length + 1) // 2


class LogitsOfLastPosition(Fault):
    """The logits of one position were counted."""

    breaks = "ACTIVATIONS-QUADRATIC"
    mend = "Count logits for every position: training scores all of them."

    def logit_elements(self, batch: int, length: int, vocab_size: int) -> int:
        del length
        return batch * vocab_size


class ForwardOperationsAlone(Fault):
    """Two operations were counted for each parameter and token: the forward pass alone."""

    breaks = "FLOPS-BUDGET"
    mend = "Count six: two forward and four backward."

    def flops_of_one(self) -> int:
        return 2


class BackwardOperationsAlone(Fault):
    """Four operations were counted for each parameter and token: the backward pass alone."""

    breaks = "FLOPS-BUDGET"
    mend = "Count six: two forward and four backward."

    def flops_of_one(self) -> int:
        return 4


class OperationsOfOneToken(Fault):
    """The operations of one token were told."""

    breaks = "FLOPS-BUDGET"
    mend = "Multiply by the number of tokens."

    def training_flops(self, *, parameters: int, tokens: int) -> int:
        del tokens
        return super().training_flops(parameters=parameters, tokens=1)
