"""Reports as JUnit XML, held to the schema and read back."""

from pathlib import Path
from xml.etree import ElementTree as ET

import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.report import junit, text

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).parents[1] / "junit.xsd"))


def parsed(document):
    return ET.fromstring(document)  # noqa: S314 -- our own


def test_junit_is_valid_and_counts_rightly(make):
    """The document fits the schema that CI checks; suites and root count their test cases."""
    document = junit.render(make.mixed())
    SCHEMA.validate(document.decode())
    root = parsed(document)
    assert root.attrib == {
        "name": "conformance of mine", "tests": "16", "failures": "5", "errors": "4",
    }  # fmt: skip
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["layer_norm", "block", "gelu", "linear", "run"]
    cut = suites["run"].find(".//error").get("message")
    assert "cut short: " in cut  # else continuous integration would take it for a whole one
    counted = ("tests", "failures", "errors", "skipped")
    assert [suites["linear"].get(name) for name in counted] == ["7", "1", "3", "0"]
    assert [suites["gelu"].get(name) for name in counted] == ["3", "1", "0", "2"]
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for suite in root:
        for count, tag in tags.items():
            assert int(suite.get(count)) == len(list(suite.iter(tag)))


def test_junit_tells_each_verdict_in_its_element(make):
    """A fail is a failure, a broken answer an error, the unjudged skipped, with the same text."""
    root = parsed(junit.render(make.mixed()))
    told = {}
    for testcase in root.iter("testcase"):
        told[testcase.get("name")] = [(child.tag, child.get("type")) for child in testcase]
    at = " [evaluate float64]"
    assert told["linear/wide" + at] == []
    assert told["linear/rank" + at] == [("system-out", None)]
    assert told["linear/valid" + at] == [("failure", "fail")]
    for name in ("error", "crash"):
        assert told[f"linear/{name}{at}"] == [("error", name)]
    assert told["linear/slow" + at] == [("error", "timeout")]
    assert told["gelu/none" + at] == [("skipped", "unsupported")]
    assert told["gelu/wild" + at] == [("skipped", "no-verdict")]
    failure = root.find(".//testcase[@name='layer-norm/two-features [evaluate float64]']/failure")
    assert failure.text == text.failure_text(make.failing(diagnosis=(make.SAMPLE,)))
    assert failure.get("message") == (
        "y is off by 0.29; y[0, 1]: got 0.7071, want 0.99999500003749968750; "
        "error 6.6e+13 x the bound; diagnosis sample-variance"
    )
    assert root.find(".//testcase").get("classname") == "mine.layer_norm"
    error = root.find(".//testcase[@name='linear/error [evaluate float64]']/error")
    odd = parsed(junit.render(make.report(make.passing(operation="a\x01"), name="b\x00")))
    assert odd.find(".//testcase").get("classname") == "b\\x00.a\\x01"
    assert "| \\x1b[31m\\x00\\u202e # \\ufffe\\ud800" in error.text


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data())
def test_no_report_breaks_the_document(data, strategies):
    """Whatever a report says, its XML is well formed, valid, and has a test case a verdict, and one
    for what was not run."""
    report = data.draw(strategies.reports)
    document = junit.render(report)
    SCHEMA.validate(document.decode())
    root = parsed(document)
    more = report.run < report.planned
    assert len(list(root.iter("testcase"))) == len(report.verdicts) + more
