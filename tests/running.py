"""Runs the command line on adapters that misbehave, and looks for what they leave behind."""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import xmlschema

from conformance.command import entry
from conformance.model import Report
from conformance.report import json
from conformance.report.files import file_name

MISBEHAVING = Path(__file__).parent / "misbehaving"
JUNIT = xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")


def own_cache(patch, factory):
    """The user's cache is left alone; the tests share one."""
    patch.setenv("XDG_CACHE_HOME", str(factory.getbasetemp() / "cache"))


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exit code, what it printed, its reports by backend, how long it took."""

    code: int
    out: str
    err: str
    folder: Path
    reports: dict[str, Report]
    seconds: float

    def told(self):
        """``(case, dtype, verdict, message)`` of every verdict, of the only report there is."""
        (report,) = self.reports.values()
        return [(v.case, v.dtype, v.verdict, v.message) for v in report.verdicts]


def vice(name):
    """The name of the backend in the file ``name`` of the adapters that misbehave."""
    return str(MISBEHAVING / f"{name}.py")


def command(monkeypatch, capsys, folder, *arguments):
    """Runs ``conformance run`` in this process, its backends in theirs, its reports in ``folder``.

    None that was there before is among the reports of the outcome.
    """
    before = {path: path.read_bytes() for path in folder.glob("*.json")}
    given = ["run", *arguments, "--out", folder]
    monkeypatch.setattr(sys, "argv", ["conformance", *map(str, given)])
    capsys.readouterr()
    start = time.monotonic()
    with pytest.raises(SystemExit) as caught:
        entry.main()
    seconds = time.monotonic() - start
    out, err = capsys.readouterr()
    written = [path for path in folder.glob("*.json") if path.read_bytes() != before.get(path)]
    return Outcome(caught.value.code, out, err, folder, read_reports(written), seconds)


def read_reports(paths):
    """Reports by name of the backend, each whole in JSON, valid in XML, and there in Markdown."""
    reports = {}
    for path in sorted(paths):
        report = json.decode(path.read_bytes())
        JUNIT.validate(path.with_suffix(".xml"))
        assert path.with_suffix(".md").read_text(encoding="utf-8")
        assert path.stem == file_name(report.backend.name)
        reports[report.backend.name] = report
    return reports


class Trace:
    """A word in the environment of everything that is started while it is set."""

    def __init__(self, monkeypatch):
        self.word = uuid.uuid4().hex
        monkeypatch.setenv("TRACED", self.word)

    def processes(self):
        """The children of the kit, and theirs, that run now."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            entries = contents(folder / "environ").split(b"\0")
            marked = any(entry.startswith(b"CONFORMANCE_CHILD=") for entry in entries)
            if marked and f"TRACED={self.word}".encode() in entries:
                found.append(folder.name)
        return found

    def is_gone(self, seconds=3.0):
        """Whether none of them runs any more, or will not in a moment: killing takes one."""
        return eventually(lambda: not self.processes(), seconds)


def eventually(condition, seconds=10.0):
    """Whether ``condition`` comes to hold in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def contents(path):
    """The bytes of a file in /proc; none where its process has gone, or is someone else's."""
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def cut(path, count):
    """Leave only the first verdicts of the report ``path``, as an interrupt would."""
    report = msgspec.json.decode(path.read_bytes())
    report["verdicts"] = report["verdicts"][:count]
    recount(report)
    path.write_bytes(msgspec.json.encode(report))


def recount(report):
    """Bring the totals of a decoded report in line with its verdicts."""
    names = [each["verdict"] for each in report["verdicts"]]
    report["run"] = len(names)
    report["totals"] = {name: names.count(name) for name in report["totals"]}
