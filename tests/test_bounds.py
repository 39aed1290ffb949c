"""Bounds: equal to what was derived by hand, infinite where first order can't be trusted."""

from decimal import Decimal

import flint
import numpy as np
import pytest

from conformance.model import Call, Parameters, Tensor
from conformance.precision import PRECISIONS
from conformance.specification.tensors import tensor
from conformance.truth.arithmetic.balls import Balls, decimal, precision
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.functions import sqrt
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.proof.bounds import INFLATION, first_order, largest
from conformance.truth.proof.evaluate import evaluate_case
from conformance.truth.proof.forms import FORMS
from conformance.truth.proof.prove import prove
from conformance.truth.reference import Reference
from tests.builders import OPERATIONS, call, case

DTYPES = pytest.mark.parametrize("dtype", PRECISIONS)
EPS = Decimal("1e-5")


def proof_of(operation, upstream=None, **given):
    """The proof of a case with these arguments; all real arguments differentiated."""
    wrt = () if upstream is None else tuple(name for name in given if name != "eps")
    mode = "evaluate" if upstream is None else "vjp"
    asked = {"": call(upstream, wrt, **given)}
    return prove(case(operation, mode=mode, calls=asked), OPERATIONS[operation])


def bounds_of(operation, upstream=None, **given):
    """By dtype and output: the bounds as arrays."""
    found = proof_of(operation, upstream, **given).bounds
    return {dtype: {name: b for (_, name), b in rows.items()} for dtype, rows in found.items()}


def by_hand(dtype, units, flushes):
    """``units`` roundings of u and ``flushes`` results that may be flushed to zero."""
    target = PRECISIONS[dtype]
    total = np.array(units) * target.unit_roundoff + flushes * target.smallest_normal
    return pytest.approx(total * INFLATION, rel=1e-13, abs=0)


# ------------------------------------------------------------------------------------ by hand


@DTYPES
def test_the_bound_of_a_sum_of_two(dtype):
    """x + y of exact numbers may be off by u (|x| + |y|)."""
    found = bounds_of("residual_add", x=[3, -5], increment=[-2, 4])
    assert found[dtype]["y"] == by_hand(dtype, [5, 9], 1)


@DTYPES
def test_an_inexact_operand_arrives_rounded(dtype):
    """A number that the dtype can't hold adds u times its magnitude."""
    found = bounds_of("residual_add", x=[Decimal("0.1")], increment=[2])
    assert found[dtype]["y"] == by_hand(dtype, [0.1 + 2.1], 2)


@DTYPES
def test_the_bound_of_a_product_of_two_terms(dtype):
    """A sum of two products may be off by 3 u (|x1 w1| + |x2 w2|)."""
    found = bounds_of("linear", x=[3, -5], weight=[[2, 1], [4, -1]])
    assert found[dtype]["y"] == by_hand(dtype, [3 * (6 + 20), 3 * (3 + 5)], 5)


@DTYPES
def test_the_bound_of_a_bias(dtype):
    """A bias is added last, or first and then rounded with every term: u |b| more for each."""
    found = bounds_of("linear", x=[3, -5], weight=[[2], [4]], bias=[64])
    assert found[dtype]["y"] == by_hand(dtype, [3 * 26 + (14 + 64) + 2 * 64], 7)


@DTYPES
def test_the_bound_of_a_reciprocal(dtype):
    """1 / x of an exact x may be off by 2.5 ulp, which is 5 u |1 / x|."""
    reciprocal = 1 / Tape(Doubles()).floats(np.array([4.0, -0.5]))
    assert first_order(reciprocal)[dtype] == by_hand(dtype, [5 / 4, 5 * 2], 1)


@DTYPES
def test_an_error_propagates_by_the_derivative(dtype):
    """An inexact x adds u |x| / x^2 to the bound of 1 / x, and nothing cancels."""
    leaf = Tape(Doubles()).leaf(Tensor(shape=(1,), data=(Decimal("0.1"),)))
    target = PRECISIONS[dtype]
    found = first_order(1 / leaf)[dtype]
    flushed = (100 + 1) * target.smallest_normal
    expected = (50 + 10) * target.unit_roundoff + flushed
    assert found == pytest.approx(expected * INFLATION, rel=1e-12, abs=0)


@DTYPES
def test_the_bounds_of_the_gradients_of_linear(dtype):
    """dX sums over the outputs, dW and db over the positions; each n + 1 roundings for n terms."""
    found = bounds_of("linear", [[1, -2]], x=[[3, -5]], weight=[[2, 1], [4, -1]], bias=[7, 8])
    assert found[dtype]["x"] == by_hand(dtype, [[3 * (2 + 2), 3 * (4 + 2)]], 5)
    assert found[dtype]["weight"] == by_hand(dtype, [[2 * 3, 2 * 6], [2 * 5, 2 * 10]], 3)
    assert found[dtype]["bias"] == by_hand(dtype, [2, 4], 2)


def test_what_is_only_passed_on_has_no_error():
    """The gradient of a residual is the upstream gradient itself, to the last bit."""
    found = bounds_of(
        "residual_add", [1, Decimal("-0.375")], x=[Decimal("0.1"), 2], increment=[3, 4]
    )
    for dtype in PRECISIONS:
        assert np.array_equal(found[dtype]["x"], [0, 0])
        assert np.array_equal(found[dtype]["increment"], [0, 0])


# --------------------------------------------------------------------------------- the additions


def first_orders(reference, operation, **given):
    """By dtype: the first-order bound of one form alone."""
    asked = case(operation, calls={"": call(**given)})
    return first_order(evaluate_case(reference, Tape(Doubles()), asked, "y")["", "y"])


NORM = {"x": [1, 3, 2, 7], "gamma": [1, -2, 1, 3], "beta": [0, 1, 2, -1], "eps": EPS}


def test_a_bound_scales_with_the_unit_roundoff():
    """Away from underflow and of representable numbers, float32 is allowed 2^29 times as much."""
    exact = {**NORM, "eps": Decimal("0.25")}
    for given in (("layer_norm", exact), ("gelu", {"x": [1, -2]})):
        operation, arguments = given
        found = bounds_of(operation, **arguments)
        assert found["float32"]["y"] == pytest.approx(found["float64"]["y"] * 2**29, rel=1e-9)


def test_a_bound_is_the_largest_of_all_forms():
    """No form is allowed more than the bound, and one of them is allowed as much."""
    far = {**NORM, "x": [1001, 1003, 1002, 1007]}
    for operation, given in (("layer_norm", far), ("gelu", {"x": [-3, Decimal("0.5"), 4]})):
        found = bounds_of(operation, **given)
        forms = [first_orders(form(), operation, **given) for form in FORMS]
        for dtype in PRECISIONS:
            highest = np.max([form[dtype] for form in forms], axis=0)
            assert np.array_equal(found[dtype]["y"], highest)


def test_the_forms_matter():
    """Folding is allowed more than the reference; erfc, relatively exact, more where x is large."""
    far = {**NORM, "x": [1001, 1003, 1002, 1007]}
    for operation, given in (("layer_norm", far), ("gelu", {"x": [4]})):
        alone = first_orders(Reference(), operation, **given)
        found = bounds_of(operation, **given)
        for dtype in PRECISIONS:
            assert np.all(found[dtype]["y"] > 1.2 * alone[dtype])


def test_the_largest_is_taken_element_by_element():
    """Bounds are merged for each dtype and element; infinite stays infinite."""
    one = {"float32": np.array([1.0, 5.0]), "float64": np.array([3.0, np.inf])}
    two = {"float32": np.array([2.0, 4.0]), "float64": np.array([1.0, 2.0])}
    merged = largest([one, two])
    assert np.array_equal(merged["float32"], [2, 5])
    assert np.array_equal(merged["float64"], [3, np.inf])


def test_no_verdict_where_a_step_may_overflow():
    """Squares of 1e20 overflow float32 and not float64, though the outputs are near 1."""
    found = bounds_of("layer_norm", **{**NORM, "x": [10**20, -(10**20), 10**15, 0]})
    assert np.all(np.isinf(found["float32"]["y"]))
    assert np.all(np.isfinite(found["float64"]["y"]))


def test_no_verdict_where_errors_are_not_linear():
    """At offset 1e7 float32 can't tell the variance: the guard, not the sum, refuses a verdict."""
    far = {**NORM, "x": [10000001, 10000003, 10000002, 10000000]}
    found = bounds_of("layer_norm", **far)
    assert np.all(np.isinf(found["float32"]["y"]))
    assert np.all(found["float64"]["y"] < 1e-6)
    alone = first_orders(Reference(), "layer_norm", **far)
    assert np.all(np.isfinite(alone["float32"]))


@pytest.mark.parametrize(("max_norm", "judged"), [("6", True), ("5.000001", False)])
def test_no_verdict_where_errors_make_a_computation_go_another_way(max_norm, judged):
    """A norm of 5 is clipped to 5.000001 or not, as its last digit falls."""
    gradients = Parameters(tensors={"weight": tensor([3, 4])})
    given = {"gradients": gradients, "max_norm": Decimal(max_norm)}
    clipping = case("clip_gradients", calls={"": Call(given=given)})
    for bounds in prove(clipping, OPERATIONS["clip_gradients"]).bounds.values():
        assert np.all(np.isfinite(bounds["", "gradients.weight"])) == judged


def test_no_verdict_where_the_value_has_none():
    """Without epsilon a constant vector has no normalised value, and no bound."""
    found = first_orders(Reference(), "layer_norm", **{**NORM, "x": [2] * 4, "eps": Decimal(0)})
    for dtype in PRECISIONS:
        assert np.all(np.isinf(found[dtype]))


def test_no_verdict_where_the_derivative_is_infinite():
    """The root of a zero that may be off passes on its error without limit."""
    one = Tape(Doubles()).leaf(Tensor(shape=(1,), data=(1,)))
    for found in first_order(sqrt(one - one)).values():
        assert np.isinf(found)


def test_the_root_of_an_exact_zero_has_no_error():
    """A zero that is given can't be off, so that the slope of the root does not matter."""
    zero = Tape(Doubles()).leaf(Tensor(shape=(1,), data=(0,)))
    for found in first_order(sqrt(zero) + zero * zero).values():
        assert found == 0


def test_the_guard_is_the_same_every_time():
    """Its random signs are seeded: of inputs at the edge, the same ones are refused again."""
    edge = [[k * 50000, k * 50000 + 1, k * 50000 + 3] for k in range(1, 49)]
    given = {"x": edge, "gamma": [1, 1, 1], "beta": [0, 0, 0], "eps": EPS}
    first, second = (np.isinf(bounds_of("layer_norm", **given)["float32"]["y"]) for _ in range(2))
    assert 0.1 < np.mean(first) < 0.9
    assert np.array_equal(first, second)


def test_a_value_in_the_far_tail_is_proven_with_more_bits():
    """1 + erf(x) cancels to 1e-198 in the far left tail; its digits are proven all the same."""
    value = proof_of("gelu", x=[-30]).values["", "y"][0]
    with precision(2000):
        expected = -30 * (30 * (flint.arb(1) / 2).sqrt()).erfc() / 2
        assert decimal(value) == decimal(expected)
    assert Balls().magnitude(np.array([value], dtype=object)) == pytest.approx(1.47e-196, rel=0.01)
