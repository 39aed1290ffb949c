"""A run that is cut short says so, leaves nothing behind, and can be gone on from."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import msgspec
import pytest

import conformance
from conformance.backends.numpy import NumpyBackend
from conformance.layout import ROOT
from conformance.report.text import summary_lines
from conformance.running.options import Options
from tests import running
from tests.running import Trace, eventually, read_reports, vice

SLOW, AGAIN = vice("slow_and_wrong"), vice("slow_when_asked_again")
SELECTED = [
    argument
    for name in ("gradients-far", "pair", "shoulders", "negative-side", "rank-three", "near-zero")
    for argument in ("--select", f"gelu/{name}")
]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    running.own_cache(monkeypatch, tmp_path_factory)


class Runs:
    """Runs in a session of their own, as from a terminal, of backends that say when they are asked.

    ``seconds`` is how long such a backend takes over a question.
    """

    def __init__(self, monkeypatch, tmp_path):
        self.asked_file = tmp_path / "asked"
        self.asked_file.touch()
        monkeypatch.setenv("ASKED", str(self.asked_file))
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        self.trace = Trace(monkeypatch)

    def asked(self):
        return self.asked_file.stat().st_size

    def start(self, *arguments, seconds):
        return subprocess.Popen(
            [sys.executable, "-m", "conformance", "run", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "SLOW": str(seconds)},
        )  # fmt: skip

    @contextmanager
    def under_way(self, *arguments, after=4, seconds=0.15):
        """A slow run that has asked ``after`` questions; it is ended by whoever wants to see it."""
        before = self.asked()
        with self.start(*arguments, seconds=seconds) as run:
            try:
                assert eventually(lambda: self.asked() >= before + after, 30)
                yield run
            finally:
                run.kill()

    def whole(self, *arguments):
        """The exit code of a quick run, what it told on standard error, and how often it asked."""
        before = self.asked()
        run = self.start(*arguments, seconds=0)
        _, told = run.communicate(timeout=60)
        assert self.trace.is_gone()
        return run.returncode, told, self.asked() - before


@pytest.fixture
def runs(monkeypatch, tmp_path):
    return Runs(monkeypatch, tmp_path)


def reports_in(folder):
    return read_reports(folder.glob("*.json"))


def contents(folder):
    """What is in the files of a folder; those that were never put in their place have a dot."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}


def interrupted(run, sent, folder):
    """The reports of a run that is interrupted now; they are whole, and valid."""
    os.killpg(run.pid, sent)
    _, told = run.communicate(timeout=30)
    assert run.returncode == 130
    assert "Traceback" not in told
    reports = reports_in(folder)
    names = [name for name, report in reports.items() if report.run < report.planned]
    assert told.endswith(" partial; the same command with --resume goes on\n")
    assert all(name in told for name in names)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return reports


# ---------------------------------------------------------------------------- Ctrl-C and --resume


@pytest.fixture(scope="module")
def in_one_go(tmp_path_factory):
    """The report on the slow and wrong backend and how often it is asked, if nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        running.own_cache(patch, tmp_path_factory)
        runs = Runs(patch, folder)
        _, _, asked = runs.whole(SLOW, *SELECTED, "--out", folder / "out")
    return reports_in(folder / "out")["slow_and_wrong"], asked


@pytest.mark.parametrize(
    ("sent", "options"),
    [
        (signal.SIGINT, (SLOW,)),
        (signal.SIGTERM, (SLOW,)),
        (signal.SIGHUP, (SLOW,)),
        (signal.SIGINT, (SLOW, "--in-process")),
        (signal.SIGTERM, (SLOW, "--in-process")),
        (signal.SIGINT, (SLOW, "numpy")),
        (signal.SIGTERM, (SLOW, "numpy", "--jobs", "2")),
    ],
    ids=["SIGINT", "SIGTERM", "SIGHUP", "in process", "ended there", "two backends", "two jobs"],
)
def test_what_was_judged_is_kept_and_gone_on_from(runs, tmp_path, in_one_go, sent, options):
    """Exit code 130; the children are ended; with --resume it all comes out as if in one go."""
    command = (*options, *SELECTED, "--out", tmp_path / "cut")
    with runs.under_way(*command, after=5) as run:
        reports = interrupted(run, sent, tmp_path / "cut")
    assert runs.trace.is_gone()
    partial = reports["slow_and_wrong"]
    # Two gradients are quick; of the five, one is asked and one may be judged meanwhile.
    assert 2 + 3 <= partial.run < partial.planned == 12
    assert any(verdict.diagnosis for verdict in partial.verdicts)
    for report in reports.values():
        assert report.run == len(report.verdicts) == sum(report.totals.values())
        assert report.planned == 12
    page = (tmp_path / "cut" / "slow_and_wrong.md").read_text(encoding="utf-8")
    assert f"cut short: {12 - partial.run} of 12 planned were not run" in page

    code, _, asked = runs.whole(*command, "--resume")
    whole, asked_in_one_go = in_one_go
    resumed = reports_in(tmp_path / "cut")
    assert code == 1
    assert resumed["slow_and_wrong"] == whole
    assert whole.run == 12
    assert 0 < asked < asked_in_one_go
    if "numpy" in resumed:
        assert (resumed["numpy"].run, resumed["numpy"].totals["pass"]) == (12, 12)


def test_a_run_that_is_cut_short_while_it_asks_again_is_not_done(runs, tmp_path):
    """What was not asked again may not be reproducible, so it is no complete run that passes."""
    command = (AGAIN, "--select", "gelu", "--dtype", "float64", "--out", tmp_path)
    with runs.under_way(*command, after=3) as run:
        (partial,) = interrupted(run, signal.SIGINT, tmp_path).values()
    assert partial.totals["pass"] == partial.run == partial.planned - 1
    assert runs.whole(*command, "--resume")[0] == 0
    (report,) = reports_in(tmp_path).values()
    assert report.totals["pass"] == report.run == report.planned == partial.planned


def test_a_killed_run_takes_its_children_along_and_leaves_the_earlier_reports(runs, tmp_path):
    """Nothing is put in the place of what was whole; there was no time to say anything."""
    command = (SLOW, "--select", "gelu", "--out", tmp_path / "out")
    assert runs.whole(*command)[0] == 1
    earlier = contents(tmp_path / "out")
    assert len(earlier) == 5
    with runs.under_way(*command, after=1, seconds=3600) as run:
        assert runs.trace.processes()
        run.kill()
        assert runs.trace.is_gone()
    assert run.returncode == -signal.SIGKILL
    assert contents(tmp_path / "out") == earlier


class Interrupted(NumpyBackend):
    """Answers ``left`` questions; then someone presses Ctrl-C."""

    name = "interrupted"

    def __init__(self, left):
        self.left = left

    def gelu(self, x):
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)
        self.left -= 1
        return super().gelu(x) * (1.5 if x.size == 7 else 1)


def test_wherever_the_interrupt_comes_nothing_is_lost_or_doubled(tmp_path):
    """Between any two questions, those that are asked again included."""
    select = ["gelu/odd-part", "gelu/pair", "gelu/shoulders"]

    def judged(left, resume):
        (report,) = conformance.run(
            [Interrupted(left)], select=select, out=tmp_path, options=Options(resume=resume)
        )
        return report

    whole = judged(-1, resume=False)
    assert [each.verdict for each in whole.verdicts] == ["pass"] * 4 + ["fail"] * 2
    runs_of = []
    for left in range(99):
        partial = judged(left, resume=False)
        runs_of.append(partial.run)
        if partial.run == partial.planned:
            break
        assert partial.verdicts == whole.verdicts[: partial.run]
        again = judged(-1, resume=True)
        assert again == whole
    # Two calls of the first case and one of the others, in two dtypes; then the passes once more.
    assert runs_of == [0, 0, 1, 1, 2, 3, 4, 5, *[5] * 6, 6]


# --------------------------------------------------------------------------------- what is refused


@pytest.fixture
def resume(monkeypatch, capsys, tmp_path):
    """Runs NumPy on a case, lets the folder be tampered with, and tells how --resume ends."""
    folder = tmp_path / "out"

    def run(tamper=lambda _folder: None, *options):
        asked = ("numpy", "--in-process", "--select", "gelu/pair")
        assert running.command(monkeypatch, capsys, folder, *asked).code == 0
        tamper(folder)
        before = contents(folder)
        told = running.command(monkeypatch, capsys, folder, *asked, *options, "--resume")
        if told.code:
            assert contents(folder) == before
            assert (told.code, told.out) == (2, "")
        return told

    return run


def changed(field, value):
    """Changes one field of the report in a folder."""

    def change(folder):
        report = msgspec.json.decode((folder / "numpy.json").read_bytes())
        (folder / "numpy.json").write_bytes(msgspec.json.encode({**report, field: value}))

    return change


def test_a_complete_report_is_gone_on_from_as_well(resume):
    """There is nothing left to ask but the sample."""
    told = resume()
    assert told.code == 0
    assert told.out.startswith("numpy: 2 pass, 0 fail of 2\n")
    (report,) = reports_in(told.folder).values()
    assert report.run == report.planned == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kit", {"version": "0.0.1", "digest": "another"}),
        ("specification", {"digest": "another"}),
        ("backend", {"name": "numpy", "versions": {"numpy": "1.0"}}),
        ("planned", 3),
    ],
)
def test_a_report_of_something_else_is_not_gone_on_from(resume, field, value):
    """What it was judged by, or on, has changed: its verdicts are of another run."""
    told = resume(changed(field, value))
    assert told.err.startswith("conformance: ")
    assert told.err.endswith(
        f"numpy.json can't be gone on from: it has another {field}\n  run without --resume\n"
    )


def test_a_report_of_an_adapter_that_was_edited_is_not_gone_on_from(monkeypatch, capsys, tmp_path):
    """Half of the verdicts would be those of another file."""
    adapter, folder = tmp_path / "mine.py", tmp_path / "out"
    adapter.write_text("from conformance.backends.numpy import NumpyBackend as N\n")
    with adapter.open("a") as file:
        file.write("class Mine(N):\n    pass\n")
    asked = (str(adapter), "--select", "gelu/pair")
    assert running.command(monkeypatch, capsys, folder, *asked).code == 0
    assert running.command(monkeypatch, capsys, folder, *asked, "--resume").code == 0
    with adapter.open("a") as file:
        file.write("# a word more\n")
    told = running.command(monkeypatch, capsys, folder, *asked, "--resume")
    assert told.code == 2
    assert "can't be gone on from: the adapter has changed since\n" in told.err


@pytest.mark.parametrize(
    ("field", "options"),
    [("selection", ("--select", "gelu/far")), ("dtypes", ("--dtype", "float64"))],
)
def test_a_report_of_other_cases_is_not_gone_on_from(resume, field, options):
    """A command that asks for something else is not the same command."""
    told = resume(lambda _folder: None, *options)
    assert f"it has another {field}\n  run without --resume\n" in told.err


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda folder: (folder / "numpy.json").unlink(), "numpy.json to go on from"),
        (lambda folder: (folder / "numpy.json").write_text("{"), "not a report: "),
        (changed("verdicts", 5), "not a report: "),
        (lambda folder: (folder / "numpy.answers.msgpack").unlink(),
         "numpy.answers.msgpack can't be read: No such file or directory"),
        (lambda folder: (folder / "numpy.answers.msgpack").write_bytes(b"\xdd"),
         "numpy.answers.msgpack is no file of answers: "),
        (lambda folder: (folder / "numpy.answers.msgpack").write_bytes(b"\x90"),
         "its answers are of another run"),
    ],
    ids=["no report", "no JSON", "no verdicts", "no answers", "no MessagePack", "other answers"],
)  # fmt: skip
def test_nothing_to_go_on_from_is_told(resume, tamper, message):
    """Whatever is missing or broken, one message and no stack; the files stay as they are."""
    told = resume(tamper)
    assert message in told.err
    assert "Traceback" not in told.err


class Rectifies(NumpyBackend):
    """Fails, so that there is something to diagnose."""

    def gelu(self, x):
        return x * (x > 0)


def test_an_interrupted_diagnosis_keeps_the_verdicts(monkeypatch):
    """What was judged stays judged; the report is partial, and its failures have no diagnosis."""

    def interrupted(*_given, **_named):
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.diagnosis.diagnose.diagnose", interrupted)
    (report,) = conformance.run([Rectifies()], select=["gelu/pair", "gelu/shoulders"])
    assert report.planned == 4
    assert [verdict.verdict for verdict in report.verdicts] == ["fail"] * 3
    assert not [verdict for verdict in report.verdicts if verdict.diagnosis]


# ---------------------------------------------------------------- while mistakes are looked for


def test_what_was_not_diagnosed_is_not_called_unknown(monkeypatch, tmp_path):
    """An interrupt while mistakes are looked for is told as one; who goes on looks again."""
    from conformance.diagnosis import diagnose

    class Rectifies(NumpyBackend):
        name = "rectifies"

        def gelu(self, x):
            return x * (x > 0)

    def judged(**options):
        (report,) = conformance.run(
            [Rectifies()], select=["gelu/pair"], out=tmp_path, options=Options(**options)
        )
        return report

    whole = judged()
    assert all(each.diagnosis for each in whole.verdicts)
    with monkeypatch.context() as patch:
        patch.setattr(diagnose, "diagnose", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        partial = judged()
    assert (partial.run, partial.planned) == (1, 2)
    (left,) = partial.verdicts
    assert left.message.endswith("\nnot diagnosed: interrupted")
    told = "\n".join(summary_lines(partial))
    assert "gelu fail, not diagnosed: 1 of 1 failures" in told
    assert "no known mistake" not in told
    assert judged(resume=True) == whole


def test_an_interrupted_run_says_that_it_looks_for_mistakes(tmp_path):
    """It may take a while, and nothing else is to be seen; a run that is done says nothing."""
    said = []
    select = ["gelu/odd-part", "gelu/pair", "gelu/shoulders"]
    for left, times in ((-1, 0), (8, 1)):
        said.clear()
        conformance.run(
            [Interrupted(left)], select=select, out=tmp_path, interrupted=lambda: said.append(1)
        )
        assert len(said) == times
