"""The specification as one class of small rules, in the words of the documents.

Arguments and results are nodes of a tape: over balls the rules give the proven values, over
doubles a first explanation. A fault is a subclass with one rule done wrong, so that it reaches
every operation that uses the rule, in values and in gradients. Gradients come from the tape,
except where the documents state a rule for them (the linear layer, softmax, the loss, the rows of
a table).

Every weight is [in, out]; a name such as ``[..., d]`` is a shape with any number of leading axes.
Token ids and targets are plain arrays of int64: they have no gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.reference.training import TrainingRules

__all__ = ["Reference"]


class Reference(TrainingRules):
    """The rules. Each method says which section of which document it comes from."""

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        """The outputs (for ``vjp``: the gradients, by argument) as they are handed over.

        No rule of the documents: the place of mistakes that have nothing to do with what was
        asked, such as an answer of zeros. ``arguments`` are those of the question, by name.
        """
        del arguments
        return dict(outputs)
