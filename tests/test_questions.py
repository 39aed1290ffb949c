"""From a case to what travels: exact numbers rounded once, and nothing of what is expected."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.model import Answer, FromOutput, Question, Tensor
from conformance.questions import array, question
from conformance.specification import load
from tests.builders import OPERATIONS, call, case

repeatable = settings(derandomize=True, deadline=None)

LAYER_NORM = {"gamma": [1, 1], "beta": [0, 0], "eps": Decimal("1e-5")}


def asked(made, dtype="float64", name="", answers=None):
    return question(made, OPERATIONS[made.operation], name, dtype, answers or {})


def test_every_case_of_the_specification_can_be_asked():
    """Each call that needs no earlier answer becomes a question of its case's dtypes."""
    specification = load()
    for made in specification.cases.values():
        for dtype in made.dtypes:
            for name, given_call in made.calls.items():
                if any(isinstance(value, FromOutput) for value in given_call.given.values()):
                    continue
                found = asked(made, dtype, name)
                assert list(found.arguments) == list(given_call.given)
                reals = [value for value in found.arguments.values() if hasattr(value, "dtype")]
                kept = {
                    given.dtype for given in given_call.given.values() if hasattr(given, "dtype")
                }
                assert {str(value.dtype) for value in reals} <= {dtype, "int64", *kept}


def test_a_question_says_nothing_of_what_is_expected():
    """Neither id nor clauses, truth, bound or tolerance travel to a backend."""
    assert Question.__struct_fields__ == (
        "operation", "mode", "dtype", "arguments", "outputs", "upstream", "wrt", "layout",
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_reals_are_arrays_of_the_run_and_attributes_are_numbers(dtype):
    """Arguments have the dtype of the run; an attribute is a float that this dtype holds."""
    made = case("layer_norm", calls={"": call(x=[[1, 3]], **LAYER_NORM)})
    found = asked(made, dtype)
    assert (found.operation, found.mode, found.dtype) == ("layer_norm", "evaluate", dtype)
    assert found.outputs == ("y",)
    assert found.arguments["x"].dtype == dtype
    assert found.arguments["x"].shape == (1, 2)
    eps = found.arguments["eps"]
    assert type(eps) is float
    assert eps == float(np.dtype(dtype).type("1e-5"))


def test_a_gradient_is_asked_with_upstream_and_wrt():
    """In mode vjp the upstream is of the run's dtype, and no output is asked for."""
    calls = {"": call(upstream=[1, -2], wrt=["x", "beta"], x=[1, 3], **LAYER_NORM)}
    found = asked(case("layer_norm", calls=calls, mode="vjp"), "float32")
    assert (found.outputs, found.wrt) == ((), ("x", "beta"))
    assert found.upstream["y"].dtype == np.float32
    assert found.upstream["y"].tolist() == [1, -2]


def test_an_argument_that_is_left_out_is_absent():
    """A bias that is not given is no key, so that an adapter's own default holds."""
    made = case("linear", calls={"": call(x=[1], weight=[[2]])})
    assert list(asked(made).arguments) == ["x", "weight"]


def test_a_call_may_take_the_answer_to_an_earlier_one():
    """What came back is handed on as it is; while it is missing there is no question."""
    later = call(weight=[[1]])
    later.given["x"] = FromOutput(call="first", output="y")
    made = case("linear", calls={"first": call(x=[1], weight=[[2]]), "second": later})
    assert asked(made, name="second") is None
    assert asked(made, name="second", answers={"first": Answer(status="rejected")}) is None
    came = np.array([0.1, np.nan])
    found = asked(made, name="second", answers={"first": Answer(outputs={"y": came})})
    assert found.arguments["x"] is came


def rounded(number, dtype):
    return array(Tensor(shape=(), data=(number,)), dtype)[()]


def nearest(number, dtype):
    """Whether no neighbour of what ``number`` was rounded to is nearer to it."""
    found = rounded(number, dtype)
    near = (np.nextafter(found, -np.inf), found, np.nextafter(found, np.inf))
    below, here, above = (abs(Fraction(float(each)) - Fraction(number)) for each in near)
    return here <= min(below, above)


@repeatable
@given(st.decimals("-1e30", "1e30", allow_nan=False, places=40))
def test_an_exact_number_is_rounded_once_in_float64(number):
    """No float64 number is nearer to the decimal than the one that is given."""
    assert nearest(number, "float64")


@repeatable
@given(st.decimals("-1e30", "1e30", allow_nan=False, places=40))
def test_an_exact_number_is_rounded_once_in_float32(number):
    """No float32 number is nearer to the decimal than the one that is given."""
    assert nearest(number, "float32")


@pytest.mark.parametrize(
    "exact",
    [
        # half a float32 step above 1 and a little more, which a double does not hold: a tie
        1 + Fraction(1, 2**24) + Fraction(1, 2**60),
        # as much less, above a number whose last bit is odd, where the tie would go up
        1 + Fraction(1, 2**23) + Fraction(1, 2**24) - Fraction(1, 2**60),
    ],
)
def test_a_float32_is_not_rounded_by_way_of_a_double(exact):
    """Rounding to a double first and to float32 then can end on the wrong neighbour."""
    with localcontext(prec=100):
        number = Decimal(exact.numerator) / exact.denominator
    assert Fraction(number) == exact
    assert nearest(number, "float32")
    attribute = case("layer_norm", calls={"": call(x=[1, 3], **{**LAYER_NORM, "eps": number})})
    assert asked(attribute, "float32").arguments["eps"] == rounded(number, "float32")


def test_whole_numbers_and_flags_keep_their_dtype():
    """A tensor that names a dtype has it in every run; large indices lose nothing."""
    large = 2**53 + 1
    for dtype, data in (("int64", (large, -1)), ("int32", (7, -7)), ("bool", (1, 0))):
        found = array(Tensor(shape=(2, 1), data=data, dtype=dtype), "float32")
        assert found.dtype == dtype
        assert found.reshape(-1).tolist() == list(data)
    named = array(Tensor(shape=(1,), data=(Decimal("0.1"),), dtype="float64"), "float32")
    assert (str(named.dtype), named[0]) == ("float64", 0.1)


def test_an_empty_tensor_keeps_its_axes():
    """No elements are not no shape."""
    found = array(Tensor(shape=(2, 0, 3), data=()), "float32")
    assert (found.shape, found.dtype) == ((2, 0, 3), np.float32)
