"""A mistake made in the values alone, or in the gradient alone.

Where gradients are written by hand, an implementation may compute a wrong value and a right
gradient from it, or the other way round. Both carry the name of the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from conformance.model import Mode
from conformance.truth.halves import halved
from conformance.truth.reference import Reference
from conformance.truth.reference.attention import AttentionRules
from conformance.truth.rules import replaced
from conformance.truth.tape import Node

#: Operations that are not composed of others: those that an adapter overrides one at a time.
_LEAVES = ("linear", "layer_norm", "gelu", "residual_add", "softmax", "embed", "cross_entropy")

#: Attention is composed of others, but its own steps are no operations: a mistake in one of them
#: is made in the value of attention alone, or in its gradient alone.
_STEPS = frozenset(vars(AttentionRules)) - {
    "softmax",
    "attention_sublayer",
    "block",
    "first_branch",
    "second_branch",
}

#: What each variant adds to the sentence of the fault, in the order in which they are given.
WHERE = ("", "in the value alone", "in the gradient alone", "")

#: Which variant has the mistake in the value alone, in the gradient alone, and which are no halves.
VALUE = 1
GRADIENT = 2
WHOLE = (0, 3)


def variants(fault: type[Reference], mode: Mode) -> Iterator[Reference]:
    """The reference with the fault; for gradients, also with it in one half of each operation.

    A wrong product of input and weight has a fourth variant: its derivative instead of the rules
    of the documents, which is what a library gives that differentiates the wrong product. So have
    wrong steps of softmax.
    """
    yield fault()
    if mode == "vjp":
        wrong = replaced(fault)
        leaves = (*_LEAVES, "causal_attention") if wrong & _STEPS else _LEAVES
        yield _halves(leaves, value=fault, gradient=Reference)
        yield _halves(leaves, value=Reference, gradient=fault)
        for steps, name, rule in _DIFFERENTIATED:
            if steps & wrong and name not in wrong:
                differentiated: Reference = type("Differentiated", (fault,), {name: rule})()
                yield differentiated


def _product(self: Reference, x: Node, weight: Node) -> Node:
    return self.product(x, weight)


def _quotient(self: Reference, scores: Node, allowed: np.ndarray) -> Node:
    return self.normalise(self.exponentials(scores, allowed))


#: Steps, the rule that gives what they make the gradient of the documents, and it without one.
_DIFFERENTIATED: tuple[tuple[frozenset[str], str, Callable[..., Node]], ...] = (
    (frozenset({"product"}), "project", _product),
    (frozenset({"exponentials", "normalise"}), "probabilities", _quotient),
)


def _halves(
    leaves: tuple[str, ...], value: type[Reference], gradient: type[Reference]
) -> Reference:
    """A reference whose operations take the value of one and the gradient rule of another."""
    members = {name: _operation(name, value(), gradient()) for name in leaves}
    halves: Reference = type("Halves", (Reference,), members)()
    return halves


def _operation(name: str, value: Reference, gradient: Reference) -> Callable[..., Node]:
    def operation(_: Reference, *positional: Any, **named: Any) -> Node:
        return halved(name, value, gradient, positional, named)

    return operation
