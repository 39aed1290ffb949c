"""What one honest evaluation of a step may add as error, counted by hand."""

from decimal import Decimal

import numpy as np
import pytest

from conformance.model import Tensor
from conformance.precision import PRECISIONS
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.functions import erf, erfc, exp, power, sqrt
from conformance.truth.arithmetic.gathering import take
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.proof.bounds import first_order

DOUBLE, SINGLE = PRECISIONS["float64"], PRECISIONS["float32"]


@pytest.mark.parametrize(
    ("number", "single", "double"),
    [
        (0, 0, 0),
        (1, 0, 0),
        (Decimal("-0.375"), 0, 0),
        (2**24 + 1, 1, 0),
        (Decimal("1.0000000001"), 1, 1),
        (Decimal("0.1"), 1, 1),
        (Decimal("1.000000000931322574615478515625"), 1, 0),
        (2**53 + 1, 1, 1),
    ],
)
def test_a_leaf_is_rounded_where_its_precision_cant_hold_it(number, single, double):
    """A number arrives with an error of u times its magnitude, or none if it is representable."""
    leaf = Tape(Balls()).leaf(Tensor(shape=(1,), data=(number,)))
    for target, inexact in ((SINGLE, single), (DOUBLE, double)):
        rounding = abs(float(number)) * target.unit_roundoff + target.smallest_normal
        assert leaf.allowance(target) == pytest.approx(inexact * rounding, rel=1e-14, abs=0)


def test_a_leaf_is_judged_number_by_number():
    """Of a tensor only the numbers that are not representable are allowed an error."""
    leaf = Tape(Doubles()).leaf(Tensor(shape=(2, 2), data=(1, Decimal("0.1"), 2**24 + 1, 3)))
    assert np.array_equal(leaf.allowance(SINGLE) > 0, [[False, True], [True, False]])
    assert np.array_equal(leaf.allowance(DOUBLE) > 0, [[False, True], [False, False]])


def test_doubles_arrive_as_they_are_and_constants_rounded():
    """What a question carries has no error; an irrational constant has one everywhere."""
    tape = Tape(Doubles())
    assert tape.floats(np.array([0.1])).allowance(SINGLE) == 0
    for target in (SINGLE, DOUBLE):
        rounding = 0.5**0.5 * target.unit_roundoff
        assert tape.constant("sqrt_half").allowance(target) == pytest.approx(rounding, abs=0)


#: Operands are a = (3, -5) and b = (-2, 4), c is the matrix ((1, -2), (4, 8)). What one honest
#: evaluation may add, in units of u, is counted by hand.
ALLOWANCES = {
    "a + b": (lambda a, b, c: a + b, [5, 9]),
    "a - b": (lambda a, b, c: a - b, [5, 9]),
    "a * b": (lambda a, b, c: a * b, [6, 20]),
    "a / b": (lambda a, b, c: a / b, [5 * 1.5, 5 * 1.25]),
    "a @ c": (lambda a, b, c: a @ c, [3 * (3 + 20), 3 * (6 + 40)]),
    "sum": (lambda a, b, c: c.sum(-1), [3 * 3, 3 * 12]),
    "sqrt": (lambda a, b, c: sqrt(a * a), [2 * 3, 2 * 5]),
    "exp": (lambda a, b, c: exp(a), [18 * np.exp(3), 26 * np.exp(-5)]),
    "erf": (lambda a, b, c: erf(b), [10 * 0.9953222650189527, 10 * 0.9999999845827421]),
    "erfc": (lambda a, b, c: erfc(b), [32 * 1.9953222650189527, 32 * 1.541725790028002e-08]),
    "power": (lambda a, b, c: power(a, 5), [4 * 3**5, 4 * 5**5]),
    "-a": (lambda a, b, c: -a, [0, 0]),
    "reshape": (lambda a, b, c: a.reshape((2, 1)), [[0], [0]]),
    "swap the last axes": (lambda a, b, c: c.swap_last(), [[0, 0], [0, 0]]),
    "broadcast": (lambda a, b, c: a.broadcast_to((2, 2)), [[0, 0], [0, 0]]),
    "take": (lambda a, b, c: take(c, 0), [0, 0]),
    "allowing": (lambda a, b, c: a.allowing(7, b.magnitude), [14, 28]),
}


@pytest.mark.parametrize(("function", "units"), ALLOWANCES.values(), ids=ALLOWANCES.keys())
def test_a_step_allows_what_was_counted_by_hand(function, units):
    """The allowance of a step is its number of roundings times the largest magnitude on the way."""
    tape = Tape(Doubles())
    numbers = ([3.0, -5.0], [-2.0, 4.0], [[1.0, -2.0], [4.0, 8.0]])
    node = function(*(tape.floats(np.array(value)) for value in numbers))
    for target in (SINGLE, DOUBLE):
        assert node.allowance(target) / target.unit_roundoff == pytest.approx(
            np.array(units), rel=1e-12, abs=0
        )


@pytest.mark.parametrize("exponent", [1, 2, 3, 4, 7, 12, 64, 1000])
def test_a_power_is_that_of_a_running_product_and_so_is_its_bound(exponent):
    """In one step as in many: the value by balls, and what an honest evaluation may be off."""
    number = Tensor(shape=(2,), data=(Decimal("0.999"), Decimal("-0.99")))

    def both(tape):
        leaf = tape.leaf(number)
        product = leaf
        for _ in range(exponent - 1):
            product = product * leaf
        return product, power(leaf, exponent)

    with precision(256):
        product, found = both(Tape(Balls()))
        assert product.tape.domain.magnitude(product.value - found.value).max() < 1e-60
    in_steps, at_once = (first_order(node) for node in both(Tape(Doubles())))
    for dtype, bound in in_steps.items():
        assert at_once[dtype] == pytest.approx(bound, rel=1e-6, abs=0)


def test_a_step_may_flush_a_subnormal_result_to_zero():
    """Where a rounding is smaller than the smallest normal number, that much is allowed."""
    tape = Tape(Doubles())
    tiny = tape.floats(np.array([2.0**-500])) * tape.floats(np.array([2.0**-500]))
    assert tiny.allowance(SINGLE) == SINGLE.smallest_normal
    assert tiny.allowance(DOUBLE) == pytest.approx(2.0**-1022, rel=1e-9)


def test_a_step_overflows_with_the_largest_magnitude_on_its_way():
    """A sum that cancels overflows all the same, in the narrower precision first."""
    tape = Tape(Doubles())
    terms = tape.floats(np.array([3e38, 3e38, -3e38]))
    assert terms.sum(0).overflows(SINGLE)
    assert not terms.sum(0).overflows(DOUBLE)
    assert not tape.floats(np.array([1e38, 1e38, -1e38])).sum(0).overflows(SINGLE)
    assert (tape.floats(np.array([0.0])) / 0).overflows(DOUBLE)
