"""Free cases: shapes without values, relations without allowance, faults of what they show."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import numpy as np
import pytest

from conformance.errors import Rejected
from conformance.frozen import thaw
from conformance.model import Call, Combination, Drawn, Less, Relations, Same
from conformance.specification.tensors import tensor
from conformance.truth.arithmetic.balls import Balls
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.checking import free
from conformance.truth.checking.freeze import prove_case
from conformance.truth.effects.kills import BEYOND, SEPARATES
from conformance.truth.reference import Reference
from tests.builders import OPERATIONS, case

LINEAR = OPERATIONS["initialize_linear"]

WEIGHT, BIAS = ("", "weight"), ("", "bias")
LIMIT = Drawn(terms=(WEIGHT,), distribution="uniform", size=Decimal("0.2"))
NO_BIAS = Combination(terms=(("", "bias", 1),), equals=tensor(0))


def asked(*relations, **given):
    """A new layer from 54 features to 96, whose limit is 0.2."""
    call = Call(given={"d_in": 54, "d_out": 96, "with_bias": True, "random_seed": 19, **given})
    made = case("initialize_linear", calls={"": call}, expectation=Relations(relate=relations))
    return msgspec.structs.replace(made, free="the numbers are free")


def truth_of(made):
    return thaw(free.freeze(made, free.results_of(made, "weight")))


def effect(made, fault):
    return free.effect(made, "weight", truth_of(made), fault)


class LimitOfOneWidth(Reference):
    """The limit of the input width alone."""

    def xavier(self, generator, d_in, d_out):
        limit = (6 / d_in) ** 0.5
        return generator.uniform(-limit, limit, (d_in, d_out))


class OtherNumbers(Reference):
    """Drawn in another order, with another generator: as honest as the reference."""

    def xavier(self, generator, d_in, d_out):
        limit = (6 / (d_in + d_out)) ** 0.5
        return 2 * limit * np.random.RandomState(5).random_sample((d_out, d_in)).T - limit


class NoBias(Reference):
    """The bias was left out."""

    def initialize_linear(self, **arguments):
        return {"weight": super().initialize_linear(**arguments)["weight"]}


class Refusing(Reference):
    """Everything was refused."""

    def check_widths(self, d_in, d_out):
        raise Rejected("zero-input-width", "always")


class NotFinite(Reference):
    """The weight was filled with NaN."""

    def xavier(self, generator, d_in, d_out):
        return np.full((d_in, d_out), np.nan)


def test_shapes_and_kinds_are_frozen_and_no_values():
    """What is due of a free answer is its form."""
    frozen = free.freeze(asked(LIMIT), free.results_of(asked(LIMIT), "weight"))
    assert {name: (value.shape, value.data) for name, value in frozen.values.items()} == {
        "weight": ((54, 96), ()),
        "bias": ((96,), ()),
    }
    assert frozen.bounds == {"float64": {}, "float32": {}}


def test_whole_outputs_keep_their_dtype():
    """How many elements the optimiser holds is a whole number in both dtypes."""
    call = Call(given={"random_seed": 3, "count": 2})
    relation = Less(term=("", "values"), than=2**64)
    made = case("splitmix64", calls={"": call}, expectation=Relations(relate=(relation,)))
    frozen = free.freeze(made, free.results_of(made, "values"))
    assert frozen.values["values"].dtype == "uint64"


def test_the_reference_keeps_its_own_relations():
    """A relation that the reference itself breaks is a problem of the case."""
    made = asked(LIMIT, NO_BIAS)
    assert free.problems(made, truth_of(made), free.results_of(made, "weight")) == []
    narrow = Drawn(terms=(WEIGHT,), distribution="uniform", size=Decimal("0.1"))
    made = asked(NO_BIAS, narrow)
    (told,) = free.problems(made, truth_of(made), free.results_of(made, "weight"))
    assert told.startswith("relate: drawn does not hold of the reference: ")
    made = asked(Same(left=WEIGHT, right=BIAS))
    (told,) = free.problems(made, truth_of(made), free.results_of(made, "weight"))
    assert told.startswith("relate: same can't be measured: ")


def test_nothing_is_allowed_beside_a_relation():
    """A bias off by the smallest double is beyond any multiple."""

    class AlmostZero(Reference):
        """The bias began at the smallest positive double."""

        def linear_bias(self, generator, d_out):
            del generator
            return np.full(d_out, 5e-324)

    assert effect(asked(NO_BIAS), AlmostZero) == {"float64": BEYOND, "float32": BEYOND}


def test_other_numbers_are_no_mistake():
    """What keeps the relations has no effect worth the name, whatever it draws."""
    assert max(effect(asked(LIMIT, NO_BIAS), OtherNumbers).values()) <= 1


@pytest.mark.parametrize("fault", [LimitOfOneWidth, NoBias, Refusing, NotFinite])
def test_what_breaks_a_relation_or_the_form_is_separated(fault):
    """Another distribution, an output that is missing, a refusal, numbers that are none."""
    assert min(effect(asked(LIMIT, NO_BIAS), fault).values()) > SEPARATES


def test_an_output_that_is_too_much_is_separated():
    """A bias that nobody asked for is an answer of another form."""

    class Kept(Reference):
        """The bias was kept although it was switched off."""

        def initialize_linear(self, *, with_bias, **arguments):
            return super().initialize_linear(with_bias=True, **arguments)

    made = asked(LIMIT, with_bias=False)
    assert set(effect(made, Kept).values()) == {BEYOND}


def test_a_free_case_is_proven_by_its_relations_alone():
    """Its form is frozen and its relations tried; answers that need no thought are named."""
    proven = prove_case(asked(LIMIT, NO_BIAS), LINEAR)
    assert proven.problems == []
    assert proven.frozen is not None
    assert proven.passed_by == ()
    few = asked(NO_BIAS)
    assert set(prove_case(few, LINEAR).passed_by) == {"zeros-returned", "constant-returned"}


def test_a_case_that_the_reference_refuses_is_a_problem():
    """A free case has an answer."""
    proven = prove_case(asked(LIMIT, d_in=0), LINEAR)
    assert proven.frozen is None
    assert proven.problems == ["the reference gives no value: the weight would have no rows"]


def test_the_largest_logit_is_found_where_no_double_is_equal_to_it():
    """Over balls as over doubles, whichever way the largest logit rounds."""
    for third in ("0.1", "0.3", "0.7", "-0.1"):
        numbers = [[Decimal(third) - 1, Decimal(third)], [Decimal(third), Decimal(third) - 1]]
        for domain in (Balls(), Doubles()):
            logits = Tape(domain).leaf(tensor(numbers))
            assert Reference().largest(logits).tolist() == [1, 0]
