"""The largest error that an honest implementation makes, by one rule for every operation.

Let the computation produce the nodes v_1, …, v_m, and let an honest evaluation of node i, given
its operands, be off by at most a_i (its *allowance*, see ``tape``). To first order in u the error
of an output y is the sum of dy/dv_i times the error made at node i, so

    |y computed - y|  <=  sum over i of |dy/dv_i| a_i .

The derivatives come from one reverse sweep an output element, over the very computation, gradients
included. Leaves count too: a number that the precision can't hold arrives rounded. Four additions
make the rule hold against real kernels:

* a + b allows |a| + |b| (``tape.add``): fused kernels store the operands apart;
* the bound is the largest over the honest ``forms`` of the operation;
* first order must be enough (``linearity``): the same random signs are given to every node's
  error at u and at u / 2^20, in balls; where the two responses differ, after scaling, by more than
  a tenth of the bound, there is no verdict;
* each step may flush a subnormal result to zero; where any node may overflow, there is no verdict.

It is first order with a guard, not a theorem. The factor 1 + 2^-6 covers the second order that the
guard lets pass and the rounding of the bound itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance.precision import PRECISIONS, Precision
from conformance.truth.reverse import adjoints, ancestry
from conformance.truth.tape import Node

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
    ordered = ancestry([node])
    with np.errstate(all="ignore"):
        allowances: dict[str, list[np.ndarray]] = {
            precision.name: [ancestor.allowance(precision) for ancestor in ordered]
            for precision in precisions
        }
        totals: dict[str, np.ndarray] = {
            precision.name: np.zeros(node.shape) for precision in precisions
        }
        for first in range(0, node.value.size, _AT_ONCE):
            chunk = slice(first, min(first + _AT_ONCE, node.value.size))
            for name, sums in _influences(node, ordered, allowances, chunk).items():
                totals[name].reshape(-1)[chunk] = sums
        for precision in precisions:
            total = totals[precision.name]
            total *= INFLATION
            if any(ancestor.overflows(precision) for ancestor in ordered):
                total[...] = np.inf
            total[np.isnan(total)] = np.inf
    return totals


def _influences(
    node: Node,
    ordered: Sequence[Node],
    allowances: dict[str, list[np.ndarray]],
    chunk: slice,
) -> dict[str, np.ndarray]:
    """The sum of |derivative| times allowance over all nodes, for the elements in ``chunk``."""
    count = chunk.stop - chunk.start
    seeds = np.zeros((count, node.value.size))
    seeds[np.arange(count), np.arange(chunk.start, chunk.stop)] = 1.0
    seed = node.tape.floats(seeds.reshape((count, *node.shape)))
    found = adjoints(node, seed, ordered, errors=True)
    sums = {name: np.zeros(count) for name in allowances}
    for place, ancestor in enumerate(ordered):
        adjoint = found.get(id(ancestor))
        if adjoint is None or ancestor.steps == 0:
            continue
        influence = np.abs(adjoint.value).reshape((count, -1))
        for name, total in sums.items():
            np.add(total, influence @ allowances[name][place].reshape(-1), out=total)
    return sums


def largest(bounds: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The element-wise largest of the bounds of several forms, by precision name."""
    merged = dict(bounds[0])
    for other in bounds[1:]:
        merged = {
            name: np.asarray(np.maximum(total, other[name])) for name, total in merged.items()
        }
    return merged
