"""The judge passes only what is proven close, and says what is wrong in the order of the design."""

from __future__ import annotations

import inspect
import math
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judging import judge
from conformance.model import Answer, Rejection, Undefined
from tests.builders import answer, case, proven

TRUTH = {("", "y"): proven(["1", "-2.5"], 0.5)}


def judged(got, truth=TRUTH, dtype="float64", expectation=None, twin=None, judging=judge):
    return judging.verdict(case(expectation=expectation), dtype, truth, {"": got}, twin)


# Each claim is run on the judge as it is, and on judges broken on purpose.


def an_error_on_the_edge_passes(judging=judge):
    """An error of exactly the bound passes, and the next double beyond it fails."""
    assert judged(answer(1.5, -2.5), judging=judging).verdict == "pass"
    beyond = math.nextafter(1.5, 2)
    assert judged(answer(beyond, -2.5), judging=judging).verdict == "fail"


def nan_fails(judging=judge):
    """A NaN or an infinity fails where a number is due, whatever the other elements are."""
    for bad in (math.nan, math.inf, -math.inf):
        verdict = judged(answer(1.0, bad), judging=judging)
        assert (verdict.verdict, verdict.index, verdict.output) == ("fail", (1,), "y")
        assert verdict.message == "y is not finite"


def another_shape_fails(judging=judge):
    """Values of another shape fail, even where broadcasting would make them equal."""
    truth = {("", "y"): proven(["1", "1"], 0.5)}
    for shape in ((), (1,), (1, 2), (2, 1)):
        got = Answer(outputs={"y": np.ones(shape)})
        assert judged(got, truth, judging=judging).verdict == "fail"


def another_dtype_fails(judging=judge):
    """Right values in another dtype fail: promotion and demotion are mistakes."""
    assert judged(answer(1.0, -2.5, dtype="float32"), judging=judging).verdict == "fail"
    assert judged(answer(1, -2, dtype="int64"), judging=judging).verdict == "fail"


def an_absent_output_fails(judging=judge):
    """An output or gradient that is due and absent fails."""
    assert judged(Answer(outputs={}), judging=judging).verdict == "fail"


CLAIMS = [
    an_error_on_the_edge_passes,
    nan_fails,
    another_shape_fails,
    another_dtype_fails,
    an_absent_output_fails,
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_claim_holds(claim):
    """The judge keeps every claim."""
    claim()


BREAKS = {
    "<= becomes <": ("close = ratio <= 1", "close = ratio < 1"),
    "no bound at all": ("failed = judged & ~close", "failed = judged & False"),
    "no NaN test": ("finite = np.isfinite(got)", "finite = np.ones(())"),
    "no shape test": ("if got.shape != proven.shape:", "if False:"),
    "no dtype test": ("if got.dtype != np.dtype(wanted):", "if False:"),
    "no presence test": ("if output not in outputs:", "if False:"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_judge_is_noticed(name):
    """Breaking the comparison in any of these ways makes at least one claim fail."""
    source = inspect.getsource(judge)
    before, after = BREAKS[name]
    assert source.count(before) == 1, "the line to break has moved"
    broken = types.ModuleType("broken_judge")
    broken.__dict__["__name__"] = "conformance.judging.judge"
    exec(compile(source.replace(before, after), "broken_judge", "exec"), broken.__dict__)  # noqa: S102
    kept = []
    for claim in CLAIMS:
        try:
            claim(broken)
        except Exception:
            kept.append(claim.__name__)
    assert kept, f"{name}: every claim still holds"


def test_the_worst_element_is_reported():
    """The element with the largest share of its bound is reported with index, got and want."""
    truth = {("", "y"): proven(["1", "2", "3"], [0.5, 0.25, 0.5])}
    verdict = judged(answer(1.25, 2.2, 3.0), truth)
    assert verdict.verdict == "pass"
    assert (verdict.output, verdict.index) == ("y", (1,))
    assert verdict.ratio == pytest.approx(0.8)
    assert (verdict.got, verdict.want, verdict.bound) == ("2.2", "2", 0.25)


def test_the_worst_output_is_reported():
    """Of several gradients the one with the largest share is reported, wherever it stands."""
    truth = {("", "x"): proven(["1"], 1.0), ("", "weight"): proven(["1"], 1.0)}
    got = Answer(outputs={"x": np.array([1.75]), "weight": np.array([1.5])})
    assert judged(got, truth).output == "x"
    got = Answer(outputs={"x": np.array([1.25]), "weight": np.array([9.0])})
    verdict = judged(got, truth)
    assert (verdict.verdict, verdict.output, verdict.ratio) == ("fail", "weight", 8.0)


def test_an_error_below_one_ulp_is_measured():
    """The truth keeps more digits than a double: 0.1 in float64 is off by 5.55e-18."""
    truth = {("", "y"): proven(["0.1"], 1e-16)}
    verdict = judged(answer(0.1), truth)
    assert verdict.ratio == pytest.approx(5.551115123125783e-18 / 1e-16, rel=1e-12)
    assert verdict.ulps == pytest.approx(0.4)


def test_an_infinite_bound_is_never_a_pass():
    """Where a bound is infinite there is no verdict, unless another element fails."""
    truth = {("", "y"): proven(["1", "2"], [None, 0.5])}
    verdict = judged(answer(math.nan, 2.0), truth)
    assert (verdict.verdict, verdict.message) == ("no-verdict", "1 of 2 without bound")
    assert judged(answer(1.0, 9.0), truth).verdict == "fail"


def test_a_bound_of_zero_demands_the_exact_value():
    """A bound of 0 passes an exact answer and nothing else."""
    truth = {("", "y"): proven(["1"], 0.0)}
    assert judged(answer(1.0), truth).verdict == "pass"
    verdict = judged(answer(math.nextafter(1, 2)), truth)
    assert (verdict.verdict, verdict.ratio) == ("fail", math.inf)


def test_an_empty_output_passes_by_its_shape():
    """An output without elements is right if shape and dtype are."""
    truth = {("", "y"): proven([], [], shape=(0, 3))}
    assert judged(Answer(outputs={"y": np.zeros((0, 3))}), truth).verdict == "pass"
    assert judged(Answer(outputs={"y": np.zeros((3, 0))}), truth).verdict == "fail"


@pytest.mark.parametrize("status", ["unsupported", "error", "crash", "timeout"])
def test_what_is_no_answer_is_its_own_verdict(status):
    """Unsupported, error, crash and timeout are verdicts of their own, with their message."""
    verdict = judged(Answer(status=status, message="why"))
    assert (verdict.verdict, verdict.message) == (status, "why")


def test_rejecting_valid_arguments_fails():
    """A rejection where values are due is a failure that shows its text."""
    verdict = judged(Answer(status="rejected", message="ValueError: no"))
    assert (verdict.verdict, verdict.message) == (
        "fail",
        "rejected valid arguments: ValueError: no",
    )


def test_writing_into_an_argument_fails():
    """A right answer that changed its input fails."""
    verdict = judged(answer(1.0, -2.5, changed=("x",)))
    assert (verdict.verdict, verdict.message) == ("fail", "changed its input: x")


REJECT = Rejection(kind="weight-rank", beside="family/twin")


@pytest.mark.parametrize(
    ("kind", "right"), [("weight-rank", True), ("bias-rank", False), (None, None)]
)
def test_a_rejection_passes_beside_its_answered_twin(kind, right):
    """A rejection passes beside an answered twin; whether its kind is right is a second column."""
    got = Answer(status="rejected", kind=kind)
    verdict = judged(got, None, expectation=REJECT, twin=answer(1.0))
    assert (verdict.verdict, verdict.kind_right) == ("pass", right)


@pytest.mark.parametrize(
    "twin", [None, Answer(status="rejected"), Answer(status="unsupported"), Answer(status="crash")]
)
def test_a_rejection_does_not_count_beside_an_unanswered_twin(twin):
    """Who rejects everything passes no rejection case."""
    verdict = judged(Answer(status="rejected"), None, expectation=REJECT, twin=twin)
    assert verdict.verdict == "fail"
    assert "family/twin was not answered" in verdict.message


def test_accepting_what_must_be_rejected_fails():
    """An answer with outputs where a rejection is due fails."""
    verdict = judged(answer(1.0), None, expectation=REJECT, twin=answer(1.0))
    assert verdict.message == "accepted what must be rejected (weight-rank)"
    assert verdict.verdict == "fail"


@pytest.mark.parametrize(
    ("got", "passes"),
    [
        (answer(math.nan, math.nan), True),
        (answer(math.inf, math.nan), True),
        (Answer(status="rejected"), True),
        (answer(math.nan, 0.0), False),
        (answer(0.0, 0.0), False),
        (Answer(outputs={}), False),
        (answer(), False),
        (answer(math.nan), False),
        (answer(math.nan, math.nan, dtype="float32"), False),
        (Answer(outputs={"y": np.array(["nan", "nan"], dtype=object)}), False),
    ],
)
def test_an_undefined_output_is_never_a_finite_number(got, passes):
    """Raising, or nothing finite in the twin's form, is right where there is no value."""
    undefined = Undefined(output="y", beside="family/twin")
    verdict = judged(got, None, expectation=undefined, twin=answer(1.0, 2.0))
    assert (verdict.verdict == "pass") is passes


finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(derandomize=True, max_examples=200)
@given(st.lists(st.tuples(finite, finite, st.floats(0, 1e30)), min_size=1, max_size=6))
def test_pass_means_every_error_is_within_its_bound(rows):
    """For any numbers: pass if and only if |got - want| <= bound for each of them, exactly."""
    wants, gots, bounds = zip(*rows, strict=True)
    truth = {("", "y"): proven([str(Decimal(want)) for want in wants], list(bounds))}
    verdict = judged(answer(*gots), truth)
    errors = [(abs(Fraction(got) - Fraction(want)), Fraction(bound)) for want, got, bound in rows]
    # The difference is rounded once: nothing is claimed within 1e-15 of the edge.
    if all(error <= bound * (1 - Fraction(1, 10**15)) for error, bound in errors):
        assert verdict.verdict == "pass"
    if any(error > bound * (1 + Fraction(1, 10**15)) for error, bound in errors):
        assert verdict.verdict == "fail"
