"""A mistake made in the values alone, in the gradient alone, or in another way.

Where gradients are written by hand, an implementation may compute a wrong value and a right
gradient from it, or the other way round; and one mistake may be written down in several ways that
part in few cases. All of them carry the name of the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from conformance.model import Case, Mode
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.effects.concerned import is_training
from conformance.truth.effects.rules import replaced
from conformance.truth.faults import Fault, catalogue
from conformance.truth.reference import Reference
from conformance.truth.reference.attention import AttentionRules
from conformance.truth.reference.halves import halved

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

#: What the place of a mistake adds to the sentence of the fault.
WHERE = ("", "in the value alone", "in the gradient alone")

#: Where a mistake is made; a variant is the way it is made times three, plus the place.
WHOLE, VALUE, GRADIENT = range(3)


def place_of(variant: int) -> int:
    """``WHOLE``, ``VALUE`` or ``GRADIENT``."""
    return variant % len(WHERE)


def mode_of(case: Case) -> Mode:
    """``vjp`` where gradients are taken: a training takes them inside, and gives values."""
    return "vjp" if is_training(case) else case.mode


def variants(fault: type[Fault], mode: Mode, places: bool = True) -> Iterator[int]:
    """The numbers of the variants that differ in ``mode``; whole ones only without ``places``."""
    for way in range(len(_ways(fault.name()))):
        yield len(WHERE) * way
        if mode == "vjp" and places:
            yield from (len(WHERE) * way + VALUE, len(WHERE) * way + GRADIENT)


def variant_of(fault: type[Fault], variant: int, mode: Mode) -> Reference:
    """The reference with the fault in that variant; a mistake of the gradient has no values."""
    way, place = _ways(fault.name())[variant // len(WHERE)], place_of(variant)
    if place == WHOLE:
        return way()
    if mode == "evaluate":
        return way() if place == VALUE else Reference()
    leaves = (*_LEAVES, "causal_attention") if replaced(way) & _STEPS else _LEAVES
    if place == VALUE:
        return _halves(leaves, value=way, gradient=Reference)
    return _halves(leaves, value=Reference, gradient=way)


@cache
def _ways(name: str) -> tuple[type[Reference], ...]:
    """The fault of that name, then the other ways to make it.

    One to make a wrong product of input and weight is its derivative instead of the rules of the
    documents: what a library gives that differentiates the wrong product. So have wrong steps of
    softmax.
    """
    fault = catalogue()[name]
    wrong = replaced(fault) if fault.reads is None else frozenset()
    differentiated: list[type[Reference]] = [
        type("Differentiated", (fault,), {rule_name: rule})
        for steps, rule_name, rule in _DIFFERENTIATED
        if steps & wrong and rule_name not in wrong
    ]
    return fault, *differentiated, *fault.other_ways


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
