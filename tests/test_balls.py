"""Digits of balls: proven, or refused."""

from decimal import Decimal

import flint
import pytest

from conformance.truth.arithmetic.balls import NotProven, decimal, precision, proven


def test_digits_of_a_ball_are_proven():
    """Twenty-five digits of pi, and a short number as it is written."""
    with precision():
        assert decimal(flint.arb.pi()) == Decimal("3.141592653589793238462643")
        assert decimal(-flint.arb.pi(), digits=5) == Decimal("-3.1416")
        assert str(decimal(flint.arb("0.5"))) == "0.5"
        assert decimal(flint.arb(0)) == 0


@pytest.mark.parametrize("radius", ["1e-24", "1e-10", "1"])
def test_a_wide_ball_proves_no_digits(radius):
    """A radius of a unit in the last digit asked for is too much."""
    ball = flint.arb("3.14159265358979", radius)
    with pytest.raises(NotProven):
        decimal(ball)
    assert not proven(ball)


def test_a_ball_that_is_wide_enough_for_fewer_digits():
    """The same ball proves the digits that its radius leaves right."""
    ball = flint.arb("3.14159265358979", "1e-10")
    assert decimal(ball, digits=9) == Decimal("3.14159265")
    with pytest.raises(NotProven):
        decimal(ball, digits=11)


@pytest.mark.parametrize("ball", [flint.arb.nan(), flint.arb("inf"), flint.arb(0, "inf")])
def test_what_is_not_finite_has_no_digits(ball):
    """Not a number, and more bits would not make it one."""
    with pytest.raises(NotProven):
        decimal(ball)
    assert proven(ball)


def test_an_invisible_value_is_zero():
    """Below half of the smallest double the value is written as 0, however wide its ball."""
    assert decimal(flint.arb("1e-340")) == 0
    assert decimal(flint.arb(0, "1e-331")) == 0
    with pytest.raises(NotProven):
        decimal(flint.arb(0, "1e-300"))
    with precision():
        assert decimal(flint.arb("1e-320")) == Decimal("1e-320")


def test_an_exponent_beyond_that_of_a_decimal_is_no_accident():
    """exp of -1e38 lies below every precision, exp of 1e38 beyond every one."""
    with precision():
        large = flint.arb("1e38")
        assert decimal((-large).exp()) == 0
        assert proven((-large).exp())
        assert not proven(large.exp())
        with pytest.raises(NotProven):
            decimal(large.exp())


def test_a_radius_beyond_the_exponents_of_a_decimal_hides_no_digit():
    """1 plus or minus exp of -1e38 has all its digits."""
    with precision():
        sure = flint.arb(1, (-flint.arb("1e38")).exp())
        assert sure.rad() > 0
        assert decimal(sure) == 1
