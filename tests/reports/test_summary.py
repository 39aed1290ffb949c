"""What a run says at its end: totals, and root causes first."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.report import text
from conformance.report.causes import FAILURES, root_causes


def test_the_summary_tells_what_to_mend_first(make):
    """Totals come first, then faults, undiagnosed operations, dependants, and the next step."""
    lines = text.summary_lines(make.mixed())
    assert "\n".join(lines) == (
        "mine: 5 pass, 5 fail, 1 error, 1 crash, 1 timeout, 1 unsupported, 1 no-verdict of 15; "
        "cut short: 5 of 20 planned were not run\n"
        "worst that passes: 34 % of the bound, layer-norm/rank [evaluate float32]\n"
        "unsupported: gelu 1\n"
        "no-verdict: gelu 1\n"
        "rejected with another kind than specified: linear 1\n"
        "\n"
        "what to mend, root causes first:\n"
        "1. fault sample-variance: 2 of 8 failures (layer_norm 1; "
        "dependants block 1; float64 only)\n"
        "   The variance was divided by d - 1.\n"
        "   breaks LN-POPULATION-VARIANCE; mend: Divide by d.\n"
        "   worst: layer-norm/two-features [evaluate float64]\n"
        "   y[0, 1]: got 0.7071, want 0.99999500003749968750; "
        "error 6.6e+13 x the bound 4.44e-15 (2.6e+15 ulp, 0.5 correct digits)\n"
        "2. gelu fail, no known mistake: 1 of 8 failures (gelu 1)\n"
        "   clauses: LN-MEAN, LN-POPULATION-VARIANCE\n"
        "   worst: gelu/far [evaluate float64]\n"
        "   a|b <i> `c` ```\n"
        "   | <b>&amp; **x** [y](z)\n"
        "   | \\x1b[31m\\x00\\u202e # \\ufffe\\ud800\n"
        "   y[0, 1]: got NaN, want 0.99999500003749968750; "
        "error beyond any multiple of the bound 4.44e-15 (2.6e+15 ulp, 0.5 correct digits)\n"
        "3. linear fail: 1 of 8 failures (linear 1)\n"
        "   clauses: LN-AFFINE\n"
        "   worst: linear/valid [evaluate float64]\n"
        "   rejected valid arguments: a|b <i> `c` ```\n"
        "   | <b>&amp; **x** [y](z)\n"
        "   | \\x1b[31m\\x00\\u202e # \\ufffe\\ud800\n"
        "and 3 more: linear crash 1, linear timeout 1, linear error 1\n"
        "dependants: block 1; mend layer_norm first\n"
        "next: conformance explain layer-norm/two-features --backend BACKEND"
    )


def test_a_passing_summary_has_nothing_to_mend(make):
    """Where all pass, the summary is the totals and the worst share of the bound."""
    assert text.summary_lines(make.report(make.passing())) == (
        "mine: 1 pass, 0 fail of 1",
        "worst that passes: 12 % of the bound, layer-norm/affine [evaluate float64]",
    )


def test_a_run_without_any_verdict_says_so(make):
    """A backend that supports nothing has not passed."""
    lines = text.summary_lines(make.report(make.bare("gelu/none", "unsupported", "")))
    assert lines == (
        "mine: 0 pass, 0 fail, 1 unsupported of 1",
        "unsupported: layer_norm 1",
        "nothing received a verdict",
    )


def test_the_fault_that_explains_most_comes_first(make):
    """Faults go by count; one that explains all the same failures is named beside the other."""
    verdicts = [
        make.failing(f"layer-norm/{n}", diagnosis=(make.SAMPLE, make.OUTSIDE)) for n in range(2)
    ]
    causes = root_causes([make.failing("gelu/x", diagnosis=(make.OUTSIDE,)), *verdicts]).roots
    assert [(cause.diagnosis, cause.coinciding) for cause in causes] == [(make.OUTSIDE, ())]
    (cause,) = root_causes(verdicts).roots
    assert (cause.diagnosis, cause.coinciding) == (make.SAMPLE, (make.OUTSIDE,))
    lines = text.cause_lines(make.report(*verdicts))
    assert lines[4] == "   explained by eps-outside as well; these cases can't tell them apart"


def test_a_fault_that_explains_only_some_coincides_with_none(make):
    """Only faults that explain every failure of a root cause are said to be just as likely."""
    both = make.failing(diagnosis=(make.SAMPLE, make.OUTSIDE))
    (cause,) = root_causes([both, make.failing(diagnosis=(make.SAMPLE,))]).roots
    assert (cause.diagnosis, cause.coinciding) == (make.SAMPLE, ())


def test_undiagnosed_operations_go_by_count(make):
    """Of the operations without a diagnosis, the one with most failures is told first."""
    crash = make.bare("linear/a", "crash", "", operation="linear")
    causes = root_causes([make.failing(), crash, crash]).roots
    assert [cause.worst.operation for cause in causes] == ["linear", "layer_norm"]


def test_a_fault_that_explains_little_comes_after_a_larger_unknown_cause(make):
    """The largest group is first, diagnosed or not; of two of one size, the diagnosed one."""
    unknown = [make.failing(f"layer-norm/{n}") for n in range(3)]
    known = [
        make.failing(f"gelu/{n}", operation="gelu", diagnosis=(make.SAMPLE,)) for n in range(3)
    ]
    causes = root_causes([*unknown, known[0]]).roots
    assert [cause.diagnosis for cause in causes] == [None, make.SAMPLE]
    causes = root_causes([*unknown, *known]).roots
    assert [cause.diagnosis for cause in causes] == [make.SAMPLE, None]
    lines = text.cause_lines(make.report(*unknown, known[0]))
    assert lines[1].startswith("1. layer_norm fail, no known mistake: 3 of 4 failures")


def test_what_only_follows_comes_last(make):
    """Fifteen that were not asked say less than the five that hung before them."""
    timeouts = [
        make.failing(f"gelu/{k}", operation="gelu", verdict="timeout", ratio=None, message="late")
        for k in range(5)
    ]
    left = [
        make.failing(
            f"gelu/{k}", operation="gelu", verdict="crash", ratio=None, message="not asked: 5"
        )
        for k in range(5, 20)
    ]
    first, last = root_causes([*left, *timeouts]).roots
    assert list(first.failures) == timeouts
    assert list(last.failures) == left


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({}, "layer_norm 1; float32 only"),
        ({"dtype": "float32", "mode": "vjp"}, "layer_norm 1; evaluate only"),
        ({"verdict": "unsupported"}, "layer_norm 1"),
        ({"operation": "gelu"}, "layer_norm 1"),
    ],
)
def test_a_failure_of_one_kind_of_question_is_told_as_such(make, other, told):
    """A failure only in one dtype or mode says so where the operation was judged in the other."""
    verdicts = (make.failing(dtype="float32"), make.passing(**other))
    line = text.cause_lines(make.report(*verdicts))[1]
    assert line == f"1. layer_norm fail, no known mistake: 1 of 1 failures ({told})"


def test_the_worst_failure_is_one_of_the_operation_itself(make):
    """A dependant may be further off, but the root is where to look.

    A finite multiple of the bound says more than NaN, and NaN more than no multiple.
    """
    own = [
        make.failing("layer-norm/a", diagnosis=(make.SAMPLE,), ratio=ratio)
        for ratio in (2.0, math.nan)
    ]
    far = make.failing("block/a", operation="block", because="layer_norm", diagnosis=(make.SAMPLE,))
    (cause,) = root_causes([own[0], far]).roots
    assert (cause.worst, cause.dependants) == (own[0], (far,))
    (cause,) = root_causes([own[1], own[0]]).roots
    assert cause.worst is own[0]
    unmeasured = make.failing("x/y", diagnosis=(make.SAMPLE,), ratio=None)
    (cause,) = root_causes([unmeasured, own[1]]).roots
    assert cause.worst is own[1]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data())
def test_every_failure_is_grouped_once(data, strategies):
    """No failure is lost or counted twice on the way to the root causes."""
    verdicts = data.draw(st.lists(strategies.verdicts))
    causes = root_causes(verdicts)
    grouped = [each for cause in causes.roots for each in cause.failures] + list(causes.dependants)
    failed = [each for each in verdicts if each.verdict in FAILURES]
    assert sorted(map(repr, grouped)) == sorted(map(repr, failed))
    assert causes.failures == len(failed)
