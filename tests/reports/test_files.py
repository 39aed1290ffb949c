"""Reports as files: which, whole or not at all, and never over each other."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.report import files, json, markdown


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("numpy", "numpy"),
        ("fault:sample-variance", "fault-sample-variance"),
        ("../my dir/öl.py:Mine", "my-dir--l.py-Mine"),
        ("/abs.py", "abs.py"),
        ("..", "backend"),
        ("", "backend"),
        ("a\nb", "a-b"),
    ],
)
def test_a_backend_names_its_files(backend, expected):
    """A file name has no path, no hidden or option-like start, and is never empty."""
    assert files.file_name(backend) == expected


def test_a_run_writes_four_kinds_of_files(tmp_path, make):
    """Each backend has a .json, .xml and .md, and README.md has them side by side."""
    folder = tmp_path / "deep" / "er"
    written = files.write_reports(
        [make.mixed("a:b"), make.report(make.passing(), name="two")], folder
    )
    expected = [f"{name}.{kind}" for name in ("a-b", "two") for kind in ("json", "xml", "md")]
    assert [path.name for path in written] == [*expected, "README.md"]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*expected, "README.md"])
    assert json.decode((folder / "two.json").read_bytes()) == make.report(
        make.passing(), name="two"
    )
    page = (folder / "a-b.md").read_text(encoding="utf-8")
    assert page == markdown.render(make.mixed("a:b"), published=False)
    files.write_reports([make.mixed("a:b")], folder, published=True)
    assert "a-machine" not in (folder / "a-b.md").read_text(encoding="utf-8")


def test_a_page_names_the_table_of_what_trainings_recorded(tmp_path, make):
    """Where there is one beside it; what is published has none."""
    (tmp_path / "one.training.csv").touch()
    reports = [make.report(make.passing(), name=name) for name in ("one", "two")]
    files.write_reports(reports, tmp_path)
    row = "| losses and gradient norms by step | `one.training.csv` |"
    assert row in (tmp_path / "one.md").read_text(encoding="utf-8").splitlines()
    assert "training.csv" not in (tmp_path / "two.md").read_text(encoding="utf-8")
    files.write_reports(reports, tmp_path, published=True)
    assert "training.csv" not in (tmp_path / "one.md").read_text(encoding="utf-8")


def test_new_files_have_ordinary_permissions(tmp_path):
    """Reports are as readable as any file the user makes, not for the owner alone."""
    before = os.umask(0o022)
    try:
        files.write_atomically(tmp_path / "a", b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """Where writing or replacing breaks, the old file stays and nothing is left beside it."""
    target = tmp_path / "a"
    files.write_atomically(target, b"old")

    def broken(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(target, b"new")
    with pytest.raises(TypeError):
        files.write_atomically(target, "no bytes")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


def test_nothing_is_written_before_all_is_encoded(tmp_path, monkeypatch, make):
    """A defect in one format leaves every old file as it was."""
    files.write_reports([make.report(make.passing())], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def broken(reports):
        raise ZeroDivisionError

    monkeypatch.setattr(markdown, "render_summary", broken)
    with pytest.raises(ZeroDivisionError):
        files.write_reports([make.report(make.failing())], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_written_is_named(tmp_path, make):
    """The user learns which folder, why, and which option names another."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "reports"
    with pytest.raises(UsageError) as refused:
        files.write_reports([make.report(make.passing())], folder)
    assert str(refused.value) == (
        f"reports can't be written to {folder}: Not a directory\n  name another folder with --out"
    )


@pytest.mark.parametrize("pair", [("a:b", "a/b"), ("Mine", "mine"), ("x", "x"), ("two", "readme")])
def test_two_backends_never_share_a_file(pair, tmp_path, make):
    """Names that become one file name are refused, whatever their case, README.md included."""
    with pytest.raises(UsageError, match=r"would both be written to [\w-]+\.\*"):
        files.write_reports([make.report(name=name) for name in pair], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("page", ["README.md", "mine.md"])
def test_a_page_that_is_no_report_is_never_replaced(page, tmp_path, make):
    """Whoever names the folder of a project keeps what people wrote there; reports are replaced."""
    reports = [make.report(name="mine")]
    files.write_reports(reports, tmp_path)
    files.write_reports(reports, tmp_path)
    (tmp_path / page).write_text("# My project\n")
    with pytest.raises(UsageError, match=f"{page} is no report, and would be replaced by one"):
        files.refuse_files(["mine"], tmp_path)
    with pytest.raises(UsageError):
        files.write_reports(reports, tmp_path)
    assert (tmp_path / page).read_text() == "# My project\n"


def test_reports_are_made_without_the_numerics():
    """Reading and writing reports loads neither NumPy nor a framework nor the oracle."""
    modules = ", ".join(path.stem for path in Path(files.__file__).parent.glob("[!_]*.py"))
    code = f"import sys\nfrom conformance.report import {modules}\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in loaded.stdout.split()}
    assert not loaded & {"numpy", "torch", "jax", "flint", "rich", "jinja2", "yaml"}
    assert "msgspec" in loaded
