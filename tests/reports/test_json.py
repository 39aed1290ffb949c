"""Reports as JSON: read back as they were, or refused with what is wrong and where."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.errors import ConformanceError
from conformance.model import Report, Verdict
from conformance.report import json


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data())
def test_json_gives_back_the_report(data, strategies):
    """What is decoded is the report that was encoded, NaN and infinities included."""
    report = data.draw(strategies.reports)
    back = json.decode(json.encode(report))
    assert repr(back.verdicts) == repr(report.verdicts)  # NaN isn't equal to itself
    bare = msgspec.structs.replace(report, verdicts=())
    assert msgspec.structs.replace(back, verdicts=()) == bare


def test_json_is_plain_and_stable(make):
    """Keys are the fields, numbers JSON lacks are strings, equal reports give equal bytes."""
    odd = make.failing(ratio=math.inf, bound=-math.inf, ulps=math.nan)
    written = json.encode(make.report(odd, kit={"b": "2", "a": "1"}))
    assert written == json.encode(make.report(odd, kit={"a": "1", "b": "2"}))
    assert written.startswith(b'{\n  "format": "conformance-report/1",\n  "kit": {\n    "a": "1"')
    assert written.endswith(b"\n}\n")
    plain = msgspec.json.decode(written)
    assert list(plain) == list(Report.__struct_fields__)
    (verdict,) = plain["verdicts"]
    assert list(verdict) == list(Verdict.__struct_fields__)
    shown = [verdict[name] for name in ("ratio", "bound", "ulps", "digits", "because")]
    assert shown == ["Infinity", "-Infinity", "NaN", 0.53, None]


def test_json_survives_a_message_that_is_no_text(make):
    """A lone surrogate is written as its escape; unknown keys are passed over on reading."""
    written = json.encode(make.report(make.bare("linear/x", "error", "bad \ud800")))
    written = written.replace(b'"planned"', b'"later": [], "planned"')
    assert json.decode(written).verdicts[0].message == "bad \\ud800"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b"conformance-report/1", b"conformance-report/9", "$.format is 'conformance-report/9'; "),
        (b'"format"', b'"form"', "$.format is missing; this version reads 'conformance-report/1'"),
        (b'"ratio": 0.125', b'"ratio": "much"', "not a report: Expected `float | null`, got `str`"),
        (b'"verdict": "pass"', b'"verdict": "fine"', "at `$.verdicts[0].verdict`"),
        (b'"run": 1,', b"", "not a report: Object missing required field `run`"),
        (b"}\n", b"", "not a report: "),
        (b"{\n  ", b"[] {", "not a report: "),
    ],
)
def test_json_that_is_no_report_is_refused(old, new, what, make):
    """Whatever is no report is refused with what is wrong and where."""
    with pytest.raises(ConformanceError) as refused:
        json.decode(json.encode(make.report(make.passing())).replace(old, new))
    assert what in str(refused.value)


@pytest.mark.parametrize("data", [b"[1]", b"null", b"", b"[" * 100_000, b'"\xff"'])
def test_json_of_another_form_is_refused(data):
    """Documents that aren't objects, or no JSON at all, are refused as the user's to mend."""
    with pytest.raises(ConformanceError, match="not a report: "):
        json.decode(data)
