"""The wording of one verdict, and of numbers."""

import math

import pytest

from conformance.report import text
from conformance.report.numbers import share, share_of_bound


def test_a_failure_is_told_completely(make):
    """A failing verdict says where, what, by how much, which rules, which mistake, how to mend."""
    verdict = make.failing(
        "block/all", operation="block", because="layer_norm", diagnosis=(make.SAMPLE,)
    )
    assert text.failure_text(verdict) == (
        "block/all [evaluate float64]: fail\n"
        "  | y is off by 0.29\n"
        "  y[0, 1]: got 0.7071, want 0.99999500003749968750\n"
        "  error 6.6e+13 x the bound 4.44e-15 (2.6e+15 ulp, 0.5 correct digits)\n"
        "  clauses: LN-MEAN, LN-POPULATION-VARIANCE\n"
        "  because: layer_norm (it fails too, and this is built on it)\n"
        "  diagnosis: sample-variance: The variance was divided by d - 1.\n"
        "    breaks LN-POPULATION-VARIANCE\n"
        "    mend: Divide by d."
    )


def test_coinciding_faults_are_all_named(make):
    """Where several faults give the answer, each is told with its clause and its mending."""
    lines = text.failure_text(make.failing(diagnosis=(make.SAMPLE, make.OUTSIDE))).split("\n")
    assert lines[5:] == [
        "  diagnosis: each of 2 faults gives this answer",
        "    sample-variance: The variance was divided by d - 1.",
        "      breaks LN-POPULATION-VARIANCE",
        "      mend: Divide by d.",
        "    eps-outside: Epsilon was added to the root.",
        "      breaks LN-EPS",
        "      mend: Add it.",
    ]


def test_a_nan_in_a_scalar_gradient_is_told(make):
    """A result that is not a number has no multiple of the bound; a scalar has no index."""
    verdict = make.failing(
        mode="vjp", message="", output="beta", index=(), got="NaN", ratio=math.inf,
        ulps=math.nan, digits=None, clauses=(),
    )  # fmt: skip
    assert text.failure_text(verdict) == (
        "layer-norm/two-features [vjp float64]: fail\n"
        "  gradient of beta: got NaN, want 0.99999500003749968750\n"
        "  error beyond any multiple of the bound 4.44e-15\n"
        "  diagnosis: no known mistake gives this answer"
    )


@pytest.mark.parametrize("verdict", ["fail", "error", "crash", "timeout", "unsupported"])
def test_only_measured_values_lack_a_known_mistake(verdict, make):
    """Of an answer without measured values it isn't said that no known mistake gives it."""
    told = text.failure_text(make.bare("linear/valid", verdict, "rejected valid arguments: no"))
    assert told == (
        f"linear/valid [evaluate float64]: {verdict}\n"
        "  | rejected valid arguments: no\n"
        "  clauses: LN-AFFINE"
    )


def test_a_verdict_without_bound_claims_no_share_of_it(make):
    """The ratio of a no-verdict is that of other elements, so it is shown nowhere."""
    verdict = make.bare("gelu/wild", "no-verdict", "2 of 2 without bound", ratio=0.0)
    unbound = make.bare("gelu/wild", "no-verdict", "", bound=math.inf, clauses=())
    assert text.failure_text(unbound).split("\n")[1:] == ["  bound infinite"]
    assert "%" not in text.failure_text(verdict) + text.headline(verdict)
    assert text.worst([verdict]) is None


def test_a_pass_is_told_by_its_share(make):
    """A passing verdict shows its worst element, and no mistake is looked for."""
    assert text.failure_text(make.passing()) == (
        "layer-norm/affine [evaluate float64]: pass\n"
        "  y[0, 1]: got 0.5, want 0.5\n"
        "  error 12 % of the bound 4e-16\n"
        "  clauses: LN-AFFINE"
    )


def test_a_rejection_of_another_kind_is_told(make):
    """A rejection that counts but names another kind passes, and the text says what is off."""
    told = text.failure_text(make.bare("linear/x", "pass", "", kind_right=False, clauses=()))
    assert told.split("\n")[1:] == ["  rejected with another kind than the specification names"]


def test_a_message_can_neither_forge_lines_nor_drive_a_terminal(make):
    """Lines of a message are quoted; whatever isn't printable is shown as its escape."""
    forged = "boom\n  diagnosis: none\r\n\x1b[2Jgone\ttab \u202eright \ud800"
    lines = text.failure_text(make.bare("linear/x", "error", forged, clauses=())).split("\n")
    assert lines[1:] == [
        "  | boom",
        "  |   diagnosis: none",
        "  | \\x1b[2Jgone\\ttab \\u202eright \\ud800",
    ]
    assert text.headline(make.bare("linear/x", "error", "\n\nboom\nmore")) == "boom"
    assert "\n" not in text.headline(make.failing(got="1\n2"))


def test_a_long_message_is_cut_and_says_so(make):
    """What a message has beyond the longest is counted, not printed."""
    told = text.failure_text(make.bare("linear/x", "error", "x" * 5000, clauses=())).split("\n")
    assert told[1:] == ["  | " + "x" * text.LONGEST_MESSAGE, "  | ... 3000 characters more"]


@pytest.mark.parametrize(
    ("ratio", "short", "sentence"),
    [
        (0.0, "0 %", "0 % of the bound"),
        (0.1234, "12 %", "12 % of the bound"),
        (0.999, "99.9 %", "99.9 % of the bound"),
        (1.0, "100 %", "100 % of the bound"),
        (1.004, "1.004 x", "1.004 x the bound"),
        (2.54, "2.5 x", "2.5 x the bound"),
        (417.3, "417 x", "417 x the bound"),
        (6.6e13, "6.6e+13 x", "6.6e+13 x the bound"),
        (math.inf, "infinite", "beyond any multiple of the bound"),
        (math.nan, "NaN", "NaN against the bound"),
    ],
)
def test_shares_are_short(ratio, short, sentence):
    """An allowed error is a percentage of the bound, any other a multiple, both in few digits."""
    assert (share(ratio), share_of_bound(ratio)) == (short, sentence)


@pytest.mark.parametrize("ratio", [math.nextafter(1, 0), math.nextafter(1, 2), 1 - 1e-9, 1 + 1e-9])
def test_a_share_never_rounds_onto_the_edge(ratio):
    """Nothing but exactly 1 reads as 100 %, so a fail can't look like a pass."""
    assert float(share(ratio).split()[0]) not in {1.0, 100.0}
