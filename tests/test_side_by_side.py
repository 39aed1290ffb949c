"""A verdict is the same wherever its backend runs, alone or beside others."""

from __future__ import annotations

import os

import msgspec
import pytest

import conformance
from conformance.running.options import Options
from tests import running
from tests.running import Trace, vice

#: Values, gradients, relations, rejections and undefined outputs.
SELECT = (
    "gelu", "residual", "linear/*rank*", "layer-norm/no-eps-constant",
    # parameters by name, whole numbers, several outputs, draws, and a training
    "decoder/one-block", "optimiser/clipping-above", "model/registered-424",
    "model/initial-seeds", "training/one-step",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def surroundings(tmp_path_factory):
    """What the wrong backend asks for; a cache; and nothing left running in the end."""
    with pytest.MonkeyPatch.context() as patch:
        running.own_cache(patch, tmp_path_factory)
        patch.setenv("ASKED", os.devnull)
        patch.setenv("SLOW", "0")
        trace = Trace(patch)
        yield
        assert trace.is_gone()


def run(*names, select=SELECT, out=None, **options):
    return conformance.run(names, select=select, out=out, options=Options(**options))


WRONG = vice("slow_and_wrong")


@pytest.fixture(scope="module")
def in_children():
    """The reports of PyTorch, NumPy and a wrong backend, one after the other, each in a child."""
    return run("torch", "numpy", WRONG)


def test_a_report_is_the_same_in_this_process(in_children):
    """``--in-process`` is for debuggers; it changes nothing of what is judged."""
    assert run("torch", "numpy", WRONG, in_process=True) == in_children


def test_reports_are_the_same_side_by_side(in_children):
    """In the order the backends were named in, whichever is done first; each in full."""
    assert run("torch", "numpy", WRONG, jobs=2) == in_children


def test_the_sample_has_every_kind_of_case(in_children):
    """Equal reports say something: they have failures with a diagnosis, and every expectation."""
    torch, numpy, wrong = in_children
    assert [each.backend.name for each in in_children] == ["torch", "numpy", "slow_and_wrong"]
    assert len({verdict.case for verdict in torch.verdicts}) >= 30
    assert {verdict.verdict for verdict in numpy.verdicts} == {"pass"}
    assert {verdict.mode for verdict in numpy.verdicts} == {"evaluate", "vjp"}
    assert any(verdict.kind_right for verdict in numpy.verdicts)
    assert any(verdict.diagnosis for verdict in wrong.verdicts)


def test_jax_is_the_same_in_a_child():
    """It compiles there, for each question of a new shape, as it does here."""
    few = ("gelu/pair", "gelu/gradients-far", "linear/one-vector", "linear/weight-of-rank-one")
    assert run("jax", select=few) == run("jax", select=few, in_process=True)


def test_two_jobs_are_at_work_at_the_same_time(monkeypatch, tmp_path):
    """Each of these backends answers only once the other has been asked."""
    monkeypatch.setenv("MEETING", str(tmp_path))
    both = [f"{vice('waits_for_the_other')}:{name}" for name in ("First", "Second")]
    reports = run(*both, select=("gelu/pair",), jobs=2, out=tmp_path / "out")
    assert [report.backend.name for report in reports] == ["first", "second"]
    assert [report.totals["pass"] for report in reports] == [2, 2]
    written = {path.name for path in (tmp_path / "out").iterdir()}
    endings = ("json", "xml", "md", "answers.msgpack")
    each = {f"{name}.{ending}" for name in ("first", "second") for ending in endings}
    assert written == each | {"README.md"}


def test_the_operations_of_one_backend_are_dealt_out_to_so_many_children(monkeypatch, tmp_path):
    """Two answer at the same time, each of them whole operations; and the report is the same."""
    monkeypatch.setenv("MEETING", str(tmp_path))
    seen = []
    (report,) = conformance.run(
        [vice("tells_who_asks")],
        select=SELECT,
        options=Options(jobs=2),
        progress=lambda name, done, planned: seen.append((name, done, planned)),
    )
    assert report.totals["pass"] == report.run == report.planned
    assert seen == [("tells_who_asks", n, report.planned) for n in range(1, report.planned + 1)]
    asked = [line.split() for line in (tmp_path / "asked").read_text().splitlines()]
    children = {operation: set() for _, operation in asked}
    for pid, operation in asked:
        children[operation].add(pid)
    assert all(len(pids) == 1 for pids in children.values())
    assert len(set.union(*children.values())) == 2


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_partial_report_with_gaps_is_gone_on_from(tmp_path, jobs):
    """What several children had judged is not the beginning of what was planned."""
    whole = run(WRONG, out=tmp_path)
    path = tmp_path / "slow_and_wrong.json"
    report = msgspec.json.decode(path.read_bytes())
    gone = {"gelu/pair", "linear/one-vector", report["verdicts"][0]["case"]}
    report["verdicts"] = [each for each in report["verdicts"] if each["case"] not in gone]
    running.recount(report)
    path.write_bytes(msgspec.json.encode(report))
    seen = []
    resumed = conformance.run(
        [WRONG],
        select=SELECT,
        out=tmp_path,
        options=Options(jobs=jobs, resume=True),
        progress=lambda name, done, planned: seen.append((name, done, planned)),
    )
    assert resumed == whole
    planned, name = whole[0].planned, whole[0].backend.name
    judged = [(name, done, planned) for done in range(report["run"] + 1, planned + 1)]
    fails = whole[0].totals["fail"]
    looked = [(f"{name}, mistakes", done, fails) for done in range(1, fails + 1)]
    assert seen == judged + looked
