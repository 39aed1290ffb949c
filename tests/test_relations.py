"""Relations hold within the sum of the bounds involved, and the ratio says how nearly they fail."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from conformance.judging.relations import measure
from conformance.model import Combination, Differ, Drawn, Greater, Less, MeanSquare, Same
from conformance.specification.tensors import tensor
from tests.builders import proven

A, B = ("a", "y"), ("b", "y")
TRUTH = {A: proven(["1", "2"], [0.25, 0.5]), B: proven(["1", "2"], [0.25, 0.5])}


def ratio(relation, left, right, truth=TRUTH):
    outputs = {A: np.array(left), B: np.array(right)}
    return measure(relation, outputs, truth, "float64").ratio


def test_same_allows_both_bounds():
    """Equal outputs may differ by the sum of their two bounds, and no more."""
    relation = Same(left=A, right=B)
    assert ratio(relation, [1.25, 2.0], [0.75, 2.0]) == 1.0
    assert ratio(relation, [1.25, 2.0], [0.5, 2.0]) == 1.5
    assert ratio(relation, [1.0, math.nan], [1.0, 2.0]) != ratio(relation, [1.0, 2.0], [1.0, 2.0])


def test_same_looks_only_where_it_says():
    """A slice restricts a relation."""
    relation = Same(left=A, right=B, where=("[:1]", "[:1]"))
    assert ratio(relation, [1.0, 2.0], [1.0, 99.0]) == 0.0


def test_same_and_differ_may_look_at_two_places():
    """A permutation: the left output reversed is the right one, with its own bounds."""
    bounds = {A: proven(["1", "2"], [0.25, 0.5]), B: proven(["2", "1"], [0.25, 0.125])}
    assert ratio(Same(left=A, right=B, where=("[::-1]", "")), [1.0, 2.0], [2.0, 1.0]) == 0.0
    assert ratio(Same(left=A, right=B, where=("", "[::-1]")), [1.0, 2.0], [1.0, 2.5]) == 2.0
    apart = Differ(left=A, right=B, where=("[::-1]", ""))
    assert ratio(apart, [1.0, 2.0], [2.0, 0.625], bounds) == 1.0
    assert ratio(apart, [1.0, 2.0], [2.0, 1.0], bounds) == math.inf


def test_identical_compares_bits():
    """Identical tells 0.0 from -0.0, and equal NaN bits are identical."""
    relation = Same(left=A, right=B, identical=True)
    assert ratio(relation, [0.0, math.nan], [0.0, math.nan]) == 0.0
    assert ratio(relation, [0.0, 1.0], [-0.0, 1.0]) == math.inf


def test_differ_needs_more_than_both_bounds():
    """Outputs differ only if the difference is more than rounding could make."""
    relation = Differ(left=A, right=B)
    assert ratio(relation, [1.0, 2.0], [2.0, 2.0]) == 0.5
    assert ratio(relation, [1.0, 2.0], [1.25, 2.0]) == 2.0
    assert ratio(relation, [1.0, 2.0], [1.0, 2.0]) == math.inf


def test_a_combination_is_summed_exactly():
    """2a - b is compared with its value without rounding of its own."""
    relation = Combination(terms=(("a", "y", 2), ("b", "y", -1)), equals=tensor([1, 2]))
    assert ratio(relation, [1.0, 2.0], [1.0, 2.0]) == 0.0
    assert ratio(relation, [1.75, 2.0], [1.0, 2.0]) == 2.0  # off by 1.5, allowed 0.75
    tiny = {A: proven(["1e16", "0"], 1e-30), B: proven(["-1e16", "0"], 1e-30)}
    total = Combination(terms=(("a", "y", 1), ("b", "y", 1)), equals=tensor(0))
    assert ratio(total, [1e16, 0.0], [-1e16, 0.0], tiny) == 0.0


def test_mean_square_propagates_the_bounds():
    """The mean of squares may be off by mean(2 |y| e + e^2)."""
    truth = {A: proven(["3"], 0.5), B: proven(["3"], 0.5)}
    relation = MeanSquare(term=A, equals=Decimal(9))
    assert ratio(relation, [3.5], [3.0], truth) == 1.0  # 12.25 - 9 = 2 * 3 * 0.5 + 0.25
    assert ratio(relation, [3.75], [3.0], truth) > 1


def test_less_needs_room_for_the_bound():
    """Less holds if the answer plus its bound is below the limit."""
    relation = Less(term=A, than=Decimal("2.75"))
    assert ratio(relation, [1.0, 2.25], [1.0, 2.0]) == 1.0
    assert ratio(relation, [1.0, 2.5], [1.0, 2.0]) == 2.0
    assert ratio(relation, [1.0, 3.0], [1.0, 2.0]) == math.inf


def test_greater_needs_room_for_the_bound():
    """Greater holds if the answer less its bound is above the limit."""
    relation = Greater(term=A, than=Decimal("0.75"))
    assert ratio(relation, [1.25, 1.5], [1.0, 2.0]) == 0.5 / 0.75
    assert ratio(relation, [1.0, 1.25], [1.0, 2.0]) == 1.0
    assert ratio(relation, [0.875, 9.0], [1.0, 2.0]) == 2.0
    assert ratio(relation, [0.75, 9.0], [1.0, 2.0]) == math.inf
    assert ratio(relation, [math.nan, 9.0], [1.0, 2.0]) == math.inf


def test_less_and_greater_look_only_where_they_say():
    """A slice restricts both, and one that selects nothing shows nothing."""
    assert ratio(Less(term=A, than=2, where="[:1]"), [1.75, 9.0], [1.0, 2.0]) == 1.0
    assert ratio(Greater(term=A, than=2, where="[1:]"), [0.0, 3.0], [1.0, 2.0]) == 0.5
    assert ratio(Less(term=A, than=2, where="[2:]"), [1.0, 1.0], [1.0, 2.0]) == math.inf
    unknown = {A: proven(["1", "2"], [None, 0.5])}
    assert ratio(Less(term=A, than=3, where="[1:]"), [1.0, 2.0], [1.0, 2.0], unknown) == 0.5
    assert ratio(Less(term=A, than=3, where="[:1]"), [1.0, 2.0], [1.0, 2.0], unknown) is None


def test_drawn_needs_no_bound():
    """What is drawn is free: only its statistics are looked at, and the worst one is named."""
    truth = {A: proven(["0"], None)}
    relation = Drawn(terms=(A,), distribution="uniform", size=1)
    assert ratio(relation, [0.25, -0.75], [0.0], truth) <= 1
    assert ratio(relation, [0.25, -1.5], [0.0], truth) > 1
    found = measure(relation, {A: np.array([0.25, -1.5])}, truth, "float64")
    assert found.message == "the largest magnitude of a.y is not that of uniform(1)"


@pytest.mark.parametrize(
    "relation",
    [
        Same(left=A, right=B),
        Differ(left=A, right=B),
        Combination(terms=(("a", "y", 1),), equals=tensor(0)),
        MeanSquare(term=A, equals=1),
        Less(term=A, than=1),
        Greater(term=A, than=0),
    ],
)
def test_an_infinite_bound_gives_no_ratio(relation):
    """Where a bound is infinite, nothing is known of a relation."""
    truth = {A: proven(["1", "2"], [None, 0.5]), B: proven(["1", "2"], 0.5)}
    assert ratio(relation, [1.0, 2.0], [1.0, 2.0], truth) is None
