"""The wheel has exactly what git tracks of the package, under one top-level name."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Folders of the checkout and where they are in the wheel.
PLACES = {
    "conformance/": "conformance/",
    "spec/": "conformance/spec/",
    "backends/": "conformance/backends/",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names in a wheel that was built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_the_wheel_has_what_git_tracks_and_nothing_else(wheel):
    """Every tracked file of package, specification and adapters is in the wheel; no other is."""
    listed = subprocess.run(
        ["git", "ls-files", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    expected = set()
    for name in listed.stdout.splitlines():
        place = next(place for place in PLACES if name.startswith(place))
        expected.add(PLACES[place] + name.removeprefix(place))
    found = {name for name in wheel if ".dist-info/" not in name}
    assert found == expected


def test_the_wheel_has_one_top_level_name(wheel):
    """Nothing but ``conformance`` is put beside other packages, which have generic names too."""
    tops = {name.partition("/")[0] for name in wheel if ".dist-info/" not in name}
    assert tops == {"conformance"}
    assert "conformance/py.typed" in wheel
    assert "conformance/backends/__init__.py" in wheel


def test_the_readmes_commands_are_those_that_are_verified():
    """The two commands of the README are run by .ci/run as they stand."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    verified = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    for command in (
        "python -m pip install -c constraints.txt -e '.[all]' && conformance run",
        "python -m pip install -c constraints.txt -e '.[all,test]' && pytest -n 2",
    ):
        assert f"```\n{command}\n```" in readme
        assert command in verified


def test_the_published_reports_are_of_this_specification():
    """The reports under reports/ name the digest of the specification as it is."""
    from conformance.running.environment import specification

    digest = specification(str(ROOT / "spec"))["digest"]
    for name in ("README", "numpy", "torch", "jax"):
        page = (ROOT / "reports" / f"{name}.md").read_text(encoding="utf-8")
        assert digest in page, "run: conformance run --published --out reports"
