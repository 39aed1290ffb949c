"""Reverse mode: the derivative of an output with respect to everything it was computed from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.truth.arithmetic.nodes import Node


def ancestry(nodes: Iterable[Node], ends: Iterable[Node] = ()) -> list[Node]:
    """``nodes`` and all they were computed from, parents before children.

    What ``ends`` were computed from is left out.
    """
    final = {id(node) for node in ends}
    seen: set[int] = set()
    ordered: list[Node] = []
    stack = [(node, False) for node in nodes]
    while stack:
        node, done = stack.pop()
        if done:
            ordered.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            if id(node) not in final:
                stack.extend((parent, False) for parent in node.parents)
    return ordered


def adjoints(
    output: Node, seed: Node, ordered: Sequence[Node] | None = None, *, errors: bool = False
) -> Mapping[int, Node]:
    """The derivative of <seed, output> with respect to every node, by ``id``.

    A node that the output does not depend on has none. ``errors`` asks how errors propagate, by
    the derivatives; gradients follow the rules.
    """
    order = ordered if ordered is not None else ancestry([output])
    return {id(node): found for node, found in sweep({id(output): seed}, order, errors=errors)}


def sweep(
    seeds: Mapping[int, Node], ordered: Sequence[Node], *, errors: bool
) -> Iterator[tuple[Node, Node]]:
    """Every node of ``ordered`` with its adjoint, children first; none is kept after its turn.

    ``seeds`` are the adjoints to begin with, by the ``id`` of their nodes.
    """
    found = dict(seeds)
    present = {id(node) for node in ordered}
    for node in reversed(ordered):
        adjoint = found.pop(id(node), None)
        if adjoint is None:
            continue
        yield node, adjoint
        if all(id(parent) not in present for parent in node.parents):
            continue
        shares = node.pullback(adjoint) if errors else node.rule(adjoint)
        for parent, share in zip(node.parents, shares, strict=True):
            if share is not None and id(parent) in present:
                before = found.get(id(parent))
                found[id(parent)] = share if before is None else before + share
