"""Answers that have nothing to do with the question. A case that one of them passes shows nothing.

They break every clause alike; the one that is named is only the first that a case shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.faults import Fault
from conformance.truth.proof.evaluate import Impossible, by_name

_MEND = "Look whether the computation is reached at all, and whether its result is returned."


class ZerosReturned(Fault):
    """Every answer was zeros."""

    breaks = "LIN-AFFINE"
    mend = _MEND
    trivial = True

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        return {name: _filled(node, 0.0) for name, node in outputs.items()}


class InputReturned(Fault):
    """Every answer was the argument itself, the first real one where an output was asked for."""

    breaks = "LIN-AFFINE"
    mend = _MEND
    trivial = True

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        given = {n: node for n, node in by_name(arguments).items() if isinstance(node, Node)}
        if not given:
            raise Impossible("nothing real is given that could be returned")
        first = next(iter(given.values()))
        return {name: given.get(name, first) for name in outputs}


class ConstantReturned(Fault):
    """Every element of the answer was its first element."""

    breaks = "LIN-AFFINE"
    mend = _MEND
    trivial = True

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        return {name: _first_everywhere(node) for name, node in outputs.items()}


class NanReturned(Fault):
    """Every element of the answer was NaN."""

    breaks = "LIN-AFFINE"
    mend = "Find the step that divides zero by zero or takes infinity from infinity."
    trivial = True

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        return {name: _filled(node, np.nan) for name, node in outputs.items()}


class TransposedAnswer(Fault):
    """The answer came back with its last two axes exchanged."""

    breaks = "LIN-LEADING-AXES"
    mend = "Give the axes back in the order in which they came; the features are the last."
    trivial = True

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        return {name: node.swap_last() if node.ndim > 1 else node for name, node in outputs.items()}


class PreviousAnswer(Fault):
    """The answer was that to the question before, where there was one of the same outputs."""

    breaks = "LIN-POSITIONS"
    mend = "Look for a buffer that is returned before it is filled, or a cache without a key."
    stateful = True
    trivial = True

    def deliver(self, outputs: Mapping[str, Node], arguments: Mapping[str, Any]) -> dict[str, Node]:
        before: dict[str, Node] = vars(self).get("_before", {})
        vars(self)["_before"] = dict(outputs)
        return before if before.keys() == outputs.keys() else dict(outputs)


def _filled(node: Node, value: float) -> Node:
    return node.tape.floats(np.full(node.shape, value))


def _first_everywhere(node: Node) -> Node:
    if node.value.size == 0:
        return node
    return take(node.reshape((-1,)), slice(1)).broadcast_to(node.shape)
