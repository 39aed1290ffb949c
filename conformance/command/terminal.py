"""What a person sees while and after a run: a progress bar on a terminal, then the summary."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from conformance.harness.names import bundled, install_line, installed
from conformance.model import Report
from conformance.report.causes import failures, root_causes
from conformance.report.text import failure_text, summary_lines

#: How many annotations of one kind GitHub shows for a step.
_ANNOTATIONS = 10

Progress = Callable[[str, int, int], None]


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar on standard error while the block runs; nothing at all where it is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _name, _done, _planned: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def advance(name: str, done: int, planned: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=planned)
            bar.update(tasks[name], completed=done)

        yield advance


def say_missing_backends() -> None:
    """Name the bundled backends whose library is not installed, with the line that installs it."""
    for name in bundled():
        if not installed(name):
            click.echo(f"{name} is not installed and not run; {install_line(name)}", err=True)


def say_looking_for_mistakes() -> None:
    """Why an interrupted run is not over yet, and how to end it."""
    told = "interrupted: looking for the mistakes in what was judged; Ctrl-C again leaves that out"
    click.echo(told, err=True)


def say_interrupted(reports: Sequence[Report]) -> None:
    """Name the reports that are partial, and how to go on."""
    partial = [report.backend.name for report in reports if report.run < report.planned]
    names = ", ".join(partial)
    click.echo(f"interrupted: {names} partial; the same command with --resume goes on", err=True)


def show_reports(reports: Sequence[Report], names: Sequence[str], out: Path) -> None:
    """The summary of every report, root causes first, and where the reports are.

    ``names`` are those that the backends were asked by.
    """
    for report, name in zip(reports, names, strict=True):
        for line in summary_lines(report, shlex.quote(name)):
            click.echo(line)
        click.echo("")
    click.echo(f"Reports: {out / 'README.md'}")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for report in reports:
            for line in workflow_commands(report):
                click.echo(line)


def workflow_commands(report: Report) -> Iterator[str]:
    """Failures as workflow commands of GitHub Actions, which shows at most ten of a kind.

    The worst of each cause first, in the order of the summary; then others, as long as they fit.
    """
    worst = [cause.worst for cause in root_causes(report.verdicts).roots]
    others = [verdict for verdict in failures(report.verdicts) if verdict not in worst]
    for verdict in [*worst, *others][:_ANNOTATIONS]:
        title = _property(f"{report.backend.name}: {verdict.case}")
        yield f"::error title={title}::{_data(failure_text(verdict))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
