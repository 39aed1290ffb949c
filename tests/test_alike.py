"""What can be said of failures whose values are free: names, broken relations, kinds of draws."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from conformance.diagnosis.alike import alike
from conformance.frozen import FrozenTensor, thaw_output
from conformance.model import Differ, Drawn, Less, Relations
from conformance.specification.tensors import tensor
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.reference import Reference
from tests.builders import case

WEIGHT = ("", "weight")
NORMAL = Drawn(terms=(WEIGHT,), distribution="normal", size=Decimal("0.02"))


def verdict(given, got, *relations):
    """Whether a fault that gives ``given`` explains ``got``."""
    made = case("initialize_linear", expectation=Relations(relate=relations))
    truth = {WEIGHT: thaw_output(FrozenTensor((40, 50), ()), {"float64": ()})}
    return alike(made, truth, {WEIGHT: given}, {WEIGHT: got}, "float64")


def draws(deviation, seed):
    return np.random.default_rng(seed).normal(0, deviation, (40, 50))


def test_two_samples_of_one_wrong_deviation_are_alike():
    """Nobody draws the numbers that somebody else draws."""
    assert verdict(draws(0.2, 1), draws(0.2, 2), NORMAL)


@pytest.mark.parametrize("other", [draws(0.1, 2), np.abs(draws(0.2, 2)), np.zeros((40, 50))])
def test_samples_of_other_kinds_are_not_alike(other):
    """Another deviation, another mean, or no draws at all."""
    assert not verdict(draws(0.2, 1), other, NORMAL)


def test_a_uniform_sample_is_not_a_normal_one():
    """Of one mean and deviation, they part in their largest."""
    limit = 0.2 * 3**0.5
    flat = np.random.default_rng(3).uniform(-limit, limit, (40, 50))
    assert not verdict(draws(0.2, 1), flat, NORMAL)


def test_copies_are_alike_where_as_much_is_copied():
    """One row that is there twice is no half that is: another mistake has left it so."""
    row, other_row, half = (draws(0.02, seed) for seed in (1, 2, 3))
    row[1:10], other_row[3:12], half[20:] = row[0], other_row[20], half[:20]
    assert verdict(row, other_row, NORMAL)
    assert not verdict(half, other_row, NORMAL)
    assert not verdict(draws(0.02, 4), half, NORMAL)


def test_a_wrong_shape_is_alike_to_the_same_wrong_shape_alone():
    """No relation can be measured there."""
    flipped = draws(0.02, 1).T
    assert verdict(flipped, draws(0.02, 2).T, NORMAL)
    assert not verdict(flipped, draws(0.02, 2), NORMAL)


def test_the_same_relations_are_broken():
    """A mistake that breaks another relation, or none, explains nothing."""
    small, large = np.zeros((40, 50)), np.ones((40, 50))
    less = Less(term=WEIGHT, than=Decimal("0.5"))
    assert verdict(large, 2 * large, less)
    assert not verdict(small, large, less)
    assert not verdict(large, small, less)


def test_constants_and_draws_break_a_relation_in_different_ways():
    """Zeros do not differ from zeros, and one seed does not differ from itself."""
    differ = Differ(left=WEIGHT, right=WEIGHT)
    assert verdict(draws(0.02, 1), draws(0.02, 2), differ)
    assert not verdict(np.zeros((40, 50)), draws(0.02, 2), differ)


@pytest.mark.parametrize("domain", [Balls, Doubles])
def test_the_largest_logit_is_the_first_of_the_largest(domain):
    """Over balls as well, where the largest is not a double."""
    with precision():
        logits = Tape(domain()).leaf(tensor([[Decimal("0.1"), Decimal("0.3"), Decimal("0.7")]] * 2))
        assert Reference().largest(logits).tolist() == [2, 2]
