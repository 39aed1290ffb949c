"""Nodes taken apart and put together: elements by index, stacks, and sums in places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.truth.arithmetic.nodes import Node, batch_of


def take(a: Node, index: Any) -> Node:
    """``a[index]``; a gradient is added up where an element is taken more than once."""
    value = np.asarray(a.value[index])

    def pullback(g: Node) -> tuple[Node]:
        batch = batch_of(g, value.shape)
        return (scatter(g, _behind(batch, index), (*batch, *a.shape)),)

    return Node(value, (a,), pullback, zero=lambda: np.asarray(a.zero()[index]))


def stack(nodes: Sequence[Node]) -> Node:
    """Nodes of one shape along a new first axis."""

    def pullback(g: Node) -> list[Node]:
        batch = batch_of(g, value.shape)
        return [take(g, _behind(batch, k)) for k in range(len(nodes))]

    value = np.stack([node.value for node in nodes])
    return Node(
        value, tuple(nodes), pullback, zero=lambda: np.stack([node.zero() for node in nodes])
    )


def scatter(a: Node, index: Any, shape: tuple[int, ...]) -> Node:
    """Zeros of ``shape`` with ``a`` added at ``index``; what meets in one place is summed."""

    def spread(values: np.ndarray, onto: np.ndarray) -> np.ndarray:
        np.add.at(onto, index, values)
        return onto

    met = spread(np.ones(a.shape), np.zeros(shape))
    blank = a.tape.domain.from_floats(np.zeros(shape))
    return Node(
        spread(a.value, blank),
        (a,),
        lambda g: (take(g, _behind(batch_of(g, shape), index)),),
        factor=met,
        extent=lambda: spread(a.magnitude(), np.zeros(shape)),
        steps=int(met.max(initial=1.0)),
        zero=lambda: spread((~a.zero()).astype(np.float64), np.zeros(shape)) == 0,
    )


def _behind(batch: tuple[int, ...], index: Any) -> Any:
    """``index`` for an array with leading axes of the shape ``batch``."""
    inner = index if isinstance(index, tuple) else (index,)
    return (*(slice(None) for _ in batch), *inner)
