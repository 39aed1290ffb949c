"""The largest error that an honest implementation makes, by one rule for every operation.

Let the computation produce the nodes v_1, …, v_m, and let an honest evaluation of node i, given
its operands, be off by at most a_i (its *allowance*, see ``nodes``). To first order in u the error
of an output y is the sum of dy/dv_i times the error made at node i, so

    |y computed - y|  <=  sum over i of |dy/dv_i| a_i .

The derivatives come from one reverse sweep an output element, over the very computation, gradients
included. Leaves count too: a number that the precision can't hold arrives rounded. Four additions
make the rule hold against real kernels:

* a + b allows |a| + |b| (``nodes.add``): fused kernels store the operands apart;
* the bound is the largest over the honest ``forms`` of the operation;
* first order must be enough (``linearity``): the same random signs are given to every node's
  error at u and at u / 2^20, in balls; where the two responses differ, after scaling, by more than
  a tenth of the bound, there is no verdict;
* each step may flush a subnormal result to zero; where any node may overflow, there is no verdict.

It is first order with a guard, not a theorem. The factor 1 + 2^-6 covers the second order that the
guard lets pass and the rounding of the bound itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conformance.precision import PRECISIONS, Precision
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.reverse import ancestry, sweep

#: Covers second-order effects within the linearity guard, and the doubles the bound is made of.
INFLATION = 1 + 2.0**-6

#: So many elements of an output are swept at once.
_AT_ONCE = 256

#: The response to errors may differ from linear by this share of the bound.
LINEARITY = 0.1


def first_order(
    node: Node, precisions: Sequence[Precision] = tuple(PRECISIONS.values())
) -> dict[str, np.ndarray]:
    """The bound of every element of ``node``, by precision name; infinite: no verdict.

    ``node`` lies on a tape of doubles.
    """
    return together([node], precisions)[0]


def together(nodes: Sequence[Node], precisions: Sequence[Precision]) -> list[dict[str, np.ndarray]]:
    """``first_order`` of every one of ``nodes``, which lie on one tape, in one sweep."""
    ordered = ancestry(nodes)
    with np.errstate(all="ignore"):
        allowances: dict[str, list[np.ndarray]] = {
            precision.name: [ancestor.allowance(precision).reshape(-1) for ancestor in ordered]
            for precision in precisions
        }
        totals = _totals(nodes, ordered, allowances)
        for precision in precisions:
            total = totals[precision.name]
            total *= INFLATION
            total[np.isnan(total)] = np.inf
        found = [
            {name: part.reshape(node.shape) for name, part in parts.items()}
            for node, parts in zip(nodes, _parted(nodes, totals), strict=True)
        ]
        for precision in precisions:
            wide = {id(ancestor) for ancestor in ordered if ancestor.overflows(precision)}
            for node, bounds in zip(nodes, found, strict=True):
                if wide and any(id(ancestor) in wide for ancestor in ancestry([node])):
                    bounds[precision.name][...] = np.inf
    return found


def _totals(
    nodes: Sequence[Node], ordered: Sequence[Node], allowances: dict[str, list[np.ndarray]]
) -> dict[str, np.ndarray]:
    """The sums for the elements of all ``nodes``, one after the other."""
    count = sum(node.value.size for node in nodes)
    totals = {name: np.zeros(count) for name in allowances}
    for first in range(0, count, _AT_ONCE):
        chunk = slice(first, min(first + _AT_ONCE, count))
        for name, sums in _influences(_seeds(nodes, chunk), ordered, allowances).items():
            totals[name][chunk] = sums
    return totals


def _seeds(nodes: Sequence[Node], chunk: slice) -> dict[int, Node]:
    """One adjoint for each element in ``chunk``, stacked: 1 there and 0 at all others."""
    seeds: dict[int, Node] = {}
    size, first = chunk.stop - chunk.start, 0
    for node in nodes:
        last = first + node.value.size
        low, high = max(first, chunk.start), min(last, chunk.stop)
        if low < high:
            seed = np.zeros((size, node.value.size))
            seed[np.arange(low, high) - chunk.start, np.arange(low, high) - first] = 1.0
            found = node.tape.floats(seed.reshape((size, *node.shape)))
            before = seeds.get(id(node))  # one node may be two results
            seeds[id(node)] = found if before is None else before + found
        first = last
    return seeds


def _influences(
    seeds: dict[int, Node], ordered: Sequence[Node], allowances: dict[str, list[np.ndarray]]
) -> dict[str, np.ndarray]:
    """The sum of |derivative| times allowance over all nodes, for each of the stacked seeds."""
    places = {id(node): place for place, node in enumerate(ordered)}
    count = next(iter(seeds.values())).shape[0] if seeds else 0
    sums = {name: np.zeros(count) for name in allowances}
    for node, adjoint in sweep(seeds, ordered, errors=True):
        if node.steps == 0:
            continue
        influence = np.abs(adjoint.value).reshape((count, -1))
        for name, total in sums.items():
            allowed = allowances[name][places[id(node)]]
            np.add(total, np.where(allowed == 0, 0.0, influence) @ allowed, out=total)
    return sums


def _parted(
    nodes: Sequence[Node], totals: dict[str, np.ndarray]
) -> Iterator[dict[str, np.ndarray]]:
    first = 0
    for node in nodes:
        last = first + node.value.size
        yield {name: total[first:last] for name, total in totals.items()}
        first = last


def largest(bounds: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The element-wise largest of the bounds of several forms, by precision name."""
    merged = dict(bounds[0])
    for other in bounds[1:]:
        merged = {
            name: np.asarray(np.maximum(total, other[name])) for name, total in merged.items()
        }
    return merged
