"""A mistake made in the values alone, or in the gradient alone.

Where gradients are written by hand, an implementation may compute a wrong value and a right
gradient from it, or the other way round. Both carry the name of the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from conformance.model import Mode
from conformance.truth.faults import Fault
from conformance.truth.reference import Reference
from conformance.truth.reverse import adjoints
from conformance.truth.tape import Node

#: Operations that are not composed of others: those that an adapter overrides one at a time.
_LEAVES = ("linear", "layer_norm", "gelu", "residual_add")


def variants(fault: type[Fault], mode: Mode) -> Iterator[Reference]:
    """The reference with the fault; for gradients, also with it in one half of each operation."""
    yield fault()
    if mode == "vjp":
        yield _halves(value=fault, gradient=Reference)
        yield _halves(value=Reference, gradient=fault)


def _halves(value: type[Reference], gradient: type[Reference]) -> Reference:
    """A reference whose operations take the value of one and the gradient rule of another."""
    members = {name: _operation(name, value(), gradient()) for name in _LEAVES}
    halves: Reference = type("Halves", (Reference,), members)()
    return halves


def _operation(name: str, value: Reference, gradient: Reference) -> Callable[..., Node]:
    def operation(_: Reference, *positional: Any, **named: Any) -> Node:
        result: Node = getattr(value, name)(*positional, **named)
        # The gradient is taken on copies that it can't flow beyond: one argument may have been
        # computed from another.
        cut = [_cut(argument) for argument in positional]
        cut_named = {key: _cut(argument) for key, argument in named.items()}
        other: Node = getattr(gradient, name)(*cut, **cut_named)
        pairs = [
            (argument, copy)
            for argument, copy in zip(
                (*positional, *named.values()), (*cut, *cut_named.values()), strict=True
            )
            if isinstance(argument, Node)
        ]

        def rule(g: Node) -> list[Node | None]:
            found = adjoints(other, g)
            return [found.get(id(copy)) for _, copy in pairs]

        return result.with_rule(tuple(argument for argument, _ in pairs), rule)

    return operation


def _cut(argument: Any) -> Any:
    return argument.detach() if isinstance(argument, Node) else argument
