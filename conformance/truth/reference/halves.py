"""An operation whose value is computed by one set of rules and whose gradient by another.

Where gradients are written by hand, a mistake may be made in one of the two alone.
"""

from __future__ import annotations

from typing import Any

from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.reverse import adjoints
from conformance.truth.reference import Reference


def halved(
    operation: str,
    value: Reference,
    gradient: Reference,
    positional: tuple[Any, ...],
    named: dict[str, Any],
) -> Node:
    """``operation`` by ``value``, with the gradient that ``gradient`` gives at the same arguments.

    ``positional`` and ``named`` are the arguments; raises what either set of rules raises.
    """
    result: Node = getattr(value, operation)(*positional, **named)
    # The gradient is taken on copies that it can't flow beyond: one argument may have been
    # computed from another.
    cut = [_cut(argument) for argument in positional]
    cut_named = {key: _cut(argument) for key, argument in named.items()}
    other: Node = getattr(gradient, operation)(*cut, **cut_named)
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


def _cut(argument: Any) -> Any:
    return argument.detach() if isinstance(argument, Node) else argument
