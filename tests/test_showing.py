"""One case as text: relations as sentences, and calls by what sets them apart."""

from decimal import Decimal

import pytest

from conformance.command.showing import in_words, show
from conformance.layout import SPEC
from conformance.model import (
    Combination,
    Differ,
    Drawn,
    Greater,
    Less,
    MeanSquare,
    Relations,
    Same,
    Tensor,
)
from conformance.specification import load

ZERO = Tensor(shape=(), data=(0,))
A, B = ("a", "y"), ("b", "y")


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        (Same(left=A, right=B), "a.y = b.y, within the sum of their bounds"),
        (Same(left=A, right=B, identical=True), "a.y = b.y, in every bit"),
        (
            Differ(left=A, right=B, where=("[0]", "[1]")),
            "a.y[0] ≠ b.y[1], somewhere by more than the sum of their bounds",
        ),
        (
            Combination(terms=((*A, 1), (*B, -1), ("c", "z", -2)), equals=ZERO),
            "a.y - b.y - 2 c.z = 0, within the sum of the bounds",
        ),
        (
            Combination(terms=((*A, -1), (*B, 3)), equals=ZERO, where="[1:]"),
            "(-a.y + 3 b.y)[1:] = 0, within the sum of the bounds",
        ),
        (
            Combination(terms=(("", "y", 1),), equals=ZERO, where="[2]"),
            "y[2] = 0, within the sum of the bounds",
        ),
        (MeanSquare(term=("", "y"), equals=1), "the mean of y² = 1, within its bound"),
        (Less(term=A, than=0, where="[1:]"), "a.y[1:] < 0, everywhere by more than its bound"),
        (
            Greater(term=A, than=Decimal("0.5")),
            "a.y > 0.5, everywhere by more than its bound",
        ),
        (
            Drawn(terms=(("", "w"),), distribution="normal", size=Decimal("0.02")),
            "w looks drawn: normal around 0 with deviation 0.02",
        ),
        (
            Drawn(terms=(("", "w"),), distribution="uniform", size=1),
            "w looks drawn: uniform from -1 to 1",
        ),
        (
            Drawn(terms=(A, B), distribution="normal", size=1),
            "a.y and b.y look, together, drawn: normal around 0 with deviation 1",
        ),
    ],
)
def test_a_relation_is_said_as_people_write_it(relation, words):
    """Factors of one are left out, and a slice of a sum has brackets before it."""
    assert in_words(relation) == words


def test_no_relation_is_shown_as_python_has_it():
    """Every relation of the specification has its sentence."""
    for case in load().cases.values():
        if isinstance(case.expectation, Relations):
            told = [in_words(relation) for relation in case.expectation.relate]
            assert not any(part in line for line in told for part in ("Tensor(", "Decimal(", "('"))


def test_a_later_call_is_shown_by_what_differs_from_the_first():
    """What all calls share, a whole model for instance, stands there once."""
    lines = list(show("decoder/future-tokens", SPEC))
    assert lines.count("  as in a: parameters, heads, eps") == 2
    assert sum("token_embedding = " in line for line in lines) == 1
    assert sum(line.startswith("  tokens = ") for line in lines) == 3


def test_of_parameters_those_are_shown_that_differ():
    """A call that replaces one tensor of a model shows that one."""
    lines = list(show("decoder/head-alone", SPEC))
    assert "    all others as before" in lines
