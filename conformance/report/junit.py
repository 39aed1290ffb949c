"""A report as JUnit XML, for continuous integration: a suite for each operation.

The elements and attributes are those of the schema that Jenkins checks, in which the root counts
tests, failures and errors but has no ``skipped``; the suites have all four. There are no times: a
verdict has none, and an invented one would be read as a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from conformance.model import Report, Verdict, VerdictName
from conformance.report.text import failure_text, headline, place, totals_text, visible

#: The element that tells a verdict; a pass has none.
ELEMENTS: dict[VerdictName, str] = {
    "fail": "failure",
    "error": "error",
    "crash": "error",
    "timeout": "error",
    "unsupported": "skipped",
    "no-verdict": "skipped",
}


def render(report: Report) -> bytes:
    """UTF-8 XML with a declaration and a newline at the end.

    A test case is a verdict, named ``case [mode dtype]``; its class is ``backend.operation``. Of a
    run that was cut short there is one more, an error, for what was not run.
    What XML 1.0 can't hold is shown as its escape.
    """
    suites: dict[str, list[Verdict]] = {}
    for verdict in report.verdicts:
        suites.setdefault(verdict.operation, []).append(verdict)
    cut = int(report.run < report.planned)
    counted = _counted(report.verdicts, cut)
    del counted["skipped"]
    title = f"conformance of {visible(report.backend.name)}"
    root = ET.Element("testsuites", {"name": title, **counted})
    for operation, verdicts in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": visible(operation), **_counted(verdicts)})
        for verdict in verdicts:
            _testcase(suite, verdict, report.backend.name)
    if cut:
        suite = ET.SubElement(root, "testsuite", {"name": "run", **_counted((), cut)})
        classname = visible(f"{report.backend.name}.run")
        testcase = ET.SubElement(suite, "testcase", name="everything planned", classname=classname)
        attributes = {"message": totals_text(report), "type": "cut short"}
        ET.SubElement(testcase, "error", attributes)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _counted(verdicts: Sequence[Verdict], cut: int = 0) -> dict[str, str]:
    """The attributes that count; ``cut`` is 1 for the error that a run was cut short."""
    told = [ELEMENTS.get(verdict.verdict) for verdict in verdicts]
    return {
        "tests": str(len(told) + cut),
        "failures": str(told.count("failure")),
        "errors": str(told.count("error") + cut),
        "skipped": str(told.count("skipped")),
    }


def _testcase(suite: ET.Element, verdict: Verdict, backend: str) -> None:
    classname = visible(f"{backend}.{verdict.operation}")
    testcase = ET.SubElement(suite, "testcase", name=place(verdict), classname=classname)
    tag = ELEMENTS.get(verdict.verdict)
    if tag is not None:
        attributes = {"message": headline(verdict), "type": verdict.verdict}
        ET.SubElement(testcase, tag, attributes).text = failure_text(verdict)
    elif verdict.kind_right is False:
        # A pass all the same; but nobody should have to open another report to learn of it.
        ET.SubElement(testcase, "system-out").text = failure_text(verdict)
