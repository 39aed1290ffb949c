"""Reports as files in a folder: written whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from conformance.errors import UsageError
from conformance.model import Report
from conformance.report import json, junit, markdown

#: The name of the file in which the backends stand side by side.
SUMMARY = "README.md"

#: How the name of the table ends that has what trainings recorded, after that of the backend.
CURVES = ".training.csv"


def file_name(backend_name: str) -> str:
    """A backend's name as a file name without its ending: ``fault:zeros`` is ``fault-zeros``.

    Everything but ASCII letters, digits, ``.``, ``_`` and ``-`` becomes ``-``. It never starts
    with ``.`` (a hidden file) or ``-`` (an option), and is never empty.
    """
    return re.sub(r"[^A-Za-z0-9._-]", "-", backend_name).lstrip(".-") or "backend"


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` so that ``path`` has all of it or stays as it was.

    Raises ``OSError`` where the folder can't be written.
    """
    # "x" gives the permissions of any new file; those of `tempfile` are for its owner alone.
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with beside.open("xb") as file:
            file.write(data)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_reports(
    reports: Sequence[Report], folder: Path, *, published: bool = False
) -> tuple[Path, ...]:
    """Write ``.json``, ``.xml`` and ``.md`` for each backend, and the summary; return the paths.

    ``published`` writes the Markdown alone, without what changes from run to run. Everything is
    encoded before the first file is touched. Raises ``UsageError`` as ``refuse_files``, and where
    the folder can't be made or written.
    """
    names = refuse_files([report.backend.name for report in reports], folder)
    contents: dict[Path, bytes] = {}
    for name, report in zip(names, reports, strict=True):
        if not published:
            contents[folder / f"{name}.json"] = json.encode(report)
            contents[folder / f"{name}.xml"] = junit.render(report)
        curves = folder / f"{name}{CURVES}"
        recorded = None if published or not curves.is_file() else curves.name
        page = markdown.render(report, published=published, curves=recorded)
        contents[folder / f"{name}.md"] = page.encode("utf-8")
    contents[folder / SUMMARY] = markdown.render_summary(reports).encode("utf-8")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in contents.items():
            write_atomically(path, data)
    except OSError as error:
        reason = error.strerror or str(error)
        what = f"reports can't be written to {folder}: {reason}"
        raise UsageError(what, "name another folder with --out") from error
    return tuple(contents)


def refuse_files(backend_names: Sequence[str], folder: Path) -> list[str]:
    """The file name of each backend's report in ``folder``, where nothing is lost by writing it.

    Names are compared without case, as some file systems do. Raises ``UsageError`` where two would
    have one name, and where there is a page of that name that is no report.
    """
    taken = {Path(SUMMARY).stem.casefold(): SUMMARY}
    names = []
    for backend_name in backend_names:
        name = file_name(backend_name)
        key = name.casefold()
        if key in taken:
            what = f"{taken[key]} and {backend_name} would both be written to {name}.*"
            raise UsageError(what, "name one of the backends otherwise, or run them apart")
        taken[key] = backend_name
        names.append(name)
    for page in (folder / SUMMARY, *(folder / f"{name}.md" for name in names)):
        if not _may_be_replaced(page):
            what = f"{page} is no report, and would be replaced by one"
            raise UsageError(what, "name another folder with --out")
    return names


def _may_be_replaced(page: Path) -> bool:
    """Whether there is no such file, or one that a run has written; what can't be read is told
    when it is written.
    """
    try:
        with page.open("rb") as file:
            begins = file.read(len(markdown.TITLE))
    except OSError:
        return True
    return not begins or begins == markdown.TITLE.encode()
