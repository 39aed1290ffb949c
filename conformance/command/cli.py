"""Each command, a few calls into the house.

Only click is imported when the command starts; everything else when a command needs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance import __version__
from conformance.command.options import (
    jobs_option,
    json_option,
    memory_option,
    spec_option,
    timeout_option,
)
from conformance.errors import INTERRUPTED, SpecificationError, UsageError
from conformance.layout import LATEST_REPORTS

if TYPE_CHECKING:
    from conformance.precision import Dtype


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="conformance")
def cli() -> None:
    """Prove which rules of the transformer decoder's specification an implementation keeps.

    A BACKEND is numpy, torch or jax, a file mine.py[:Class], a package.module:Class, or
    fault:NAME, the reference with one known mistake.
    """


@cli.command()
@click.argument("backends", nargs=-1, metavar="[BACKEND]...")
@click.option(
    "--select", multiple=True, metavar="PATTERN", help="A glob, or a part of an id; repeatable."
)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(["float64", "float32"]),
    help="Repeatable.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=LATEST_REPORTS,
    show_default=True,
    help="Folder for the reports.",
)
@timeout_option
@memory_option
@jobs_option
@click.option("--in-process", is_flag=True, help="No child processes, for debuggers.")
@click.option("--resume", is_flag=True, help="Go on from the partial reports in the folder.")
@click.option("--published", is_flag=True, help="Markdown alone, without what changes by run.")
@spec_option
def run(
    backends: tuple[str, ...],
    select: tuple[str, ...],
    dtypes: tuple[str, ...],
    out: Path,
    spec: Path,
    **how: Any,
) -> int:
    """Judge backends, each in a process of its own, and write their reports.

    Without BACKEND, every bundled one whose library is installed. Ctrl-C keeps what was judged;
    --resume goes on from it.

    \b
    Exit code: 0 all that was judged passed   1 a fail or an error
               2 a wrong command or a faulty specification
               3 a crash or a timeout         4 nothing received a verdict
               70 a defect of the kit         130 interrupted
    Of several, the first of 1, 3, 4 that is true.
    """  # noqa: D301 -- click wants the character itself
    from conformance.harness.names import default_names
    from conformance.harness.spawn import Spawned, adopt_orphans, spawn_all

    names = backends or tuple(default_names())
    children: dict[str, list[Spawned]] = {}
    try:
        if not how["in_process"]:  # they start while this process imports what it needs
            adopt_orphans()
            children = spawn_all(names, how["memory"], how["jobs"])
        from conformance.command import terminal
        from conformance.running import runner
        from conformance.running.options import Options
        from conformance.specification import load

        if not backends:
            terminal.say_missing_backends()
        with terminal.progress() as progress:
            reports = runner.run(
                names,
                select=select,
                dtypes=dtypes or ("float64", "float32"),  # type: ignore[arg-type] # click checks
                out=out,
                options=Options(**how),
                specification=load(spec),
                progress=progress,
                interrupted=terminal.say_looking_for_mistakes,
                spawned=children,
            )
    finally:
        for each in children.values():
            for child in each:
                child.end()
    terminal.show_reports(reports, names, out)
    if any(report.run < report.planned for report in reports):
        terminal.say_interrupted(reports)
        return INTERRUPTED
    return runner.exit_code(reports)


@cli.command("list")
@click.argument("what", type=click.Choice(["cases", "operations", "clauses", "faults", "backends"]))
@click.option("--select", multiple=True, metavar="PATTERN", help="Only of cases; as for run.")
@json_option
@spec_option
def list_(what: str, select: tuple[str, ...], as_json: bool, spec: Path) -> None:
    """List cases, operations, clauses, faults or backends."""
    from conformance.command import listing
    from conformance.specification.selection import NothingSelected

    try:
        rows = listing.rows(what, spec, select)
    except NothingSelected:
        if not as_json:
            raise
        rows = []  # what a program asked for
    if as_json:
        click.echo(listing.as_json(rows))
        return
    for line in listing.lines(rows):
        click.echo(line)


@cli.command()
@click.argument("case")
@spec_option
def show(case: str, spec: Path) -> None:
    """Show one CASE: what it asks, what is due, and the clauses it shows."""
    from conformance.command.showing import show as lines

    for line in lines(case, spec):
        click.echo(line)


@cli.command()
@click.argument("case")
@click.option("--backend", metavar="BACKEND", help="Show its answer beside.")
@timeout_option
@click.option("--reproducer", is_flag=True, help="Print a file that needs only NumPy instead.")
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32"]),
    help="Of the reproducer, which is in float64 without it.",
)
@spec_option
def explain(
    case: str,
    backend: str | None,
    timeout: float,
    reproducer: bool,
    dtype: Dtype | None,
    spec: Path,
) -> None:
    """Explain CASE: its derivation, an answer beside it, what each known mistake would give."""
    if dtype and not reproducer:
        raise UsageError("--dtype is of the reproducer alone", "add --reproducer, or leave it out")
    if backend and reproducer:
        raise UsageError("a reproducer has no backend in it", "leave out --backend")
    from contextlib import ExitStack

    from conformance.specification import load

    specification = load(spec)
    if reproducer:
        from conformance.command import reproducer as files
        from conformance.command.showing import find_case

        found = find_case(case, specification)
        click.echo(files.reproducer(found, specification, dtype or "float64"), nl=False)
        return
    from conformance.command.explanation import explain as lines
    from conformance.running.options import Options
    from conformance.running.runner import connect

    with ExitStack() as stack:
        connection = connect(backend, Options(timeout=timeout), {}, stack)[0] if backend else None
        for line in lines(case, specification, connection):
            click.echo(line)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--from", "base", type=click.Choice(["numpy", "torch", "jax"]), help="Derive from it."
)
def init(file: Path, base: str | None) -> None:
    """Write a commented adapter to FILE: every operation, its shapes, one of them done."""
    import shlex

    from conformance.command.scaffold import write_adapter
    from conformance.specification import load

    write_adapter(file, load().operations, base)
    path = str(file) if file.is_absolute() else f"./{file}"
    click.echo(f"wrote {file}; now: conformance run {shlex.quote(path)}")


@cli.command()
@click.option(
    "--missed", is_flag=True, help="Only faults that no case rejects; exit code 1 if any."
)
@json_option
@spec_option
def faults(missed: bool, as_json: bool, spec: Path) -> int:
    """List every known mistake, and which cases reject it: D by family and dtype."""
    from conformance.truth.effects import matrix as kills

    found = kills.matrix(spec)
    gaps = kills.missed(found)
    if as_json:
        rows = [row for row in found.faults if not missed or any(row is gap for gap, _ in gaps)]
        click.echo(kills.as_json(rows))
    elif missed:
        for row, dtype in gaps:
            click.echo(f"{row.name}: no case rejects it in {dtype}")
        if not gaps:
            click.echo("every fault is rejected, in every dtype that can show it.")
    else:
        for line in kills.lines(found):
            click.echo(line)
    return 1 if missed and gaps else 0


@cli.command()
@click.option("--quick", is_flag=True, help="Without the oracle: figures against frozen truth.")
@spec_option
def check(quick: bool, spec: Path) -> None:
    """Prove the specification: its figures and relations, its truth, its kill of every fault."""
    from conformance.command import terminal
    from conformance.specification import load
    from conformance.truth.checking.check import check as check_specification

    specification = load(spec)
    with terminal.progress() as progress:
        check_specification(
            specification,
            quick=quick,
            progress=lambda done, planned: progress("proving", done, planned),
        )
    cases, facts = len(specification.cases), len(specification.facts)
    proof = "hold to the frozen truth" if quick else "are proven"
    click.echo(f"{cases} cases, {facts} facts and {len(specification.clauses)} clauses {proof}.")


@cli.command()
@click.argument("families", nargs=-1)
@spec_option
def freeze(families: tuple[str, ...], spec: Path) -> None:
    """Prove every case and write the truth: values, bounds and sharpest kills.

    FAMILIES are folders of cases; without any, all are proven. What is untrue of a case is told.
    """
    from conformance.command import terminal
    from conformance.specification import load
    from conformance.truth.checking.check import about_cases
    from conformance.truth.checking.freeze import prove_all, write

    specification = load(spec)
    known = {case.family for case in specification.cases.values()}
    for family in families:
        if family not in known:
            raise UsageError(f"there is no family {family!r}", f"one of {', '.join(known)}")
    with terminal.progress() as progress:
        results = list(
            prove_all(
                specification,
                lambda done, planned: progress("proving", done, planned),
                families,
            )
        )
    for path in write(results, spec / "truth", some=bool(families)):
        click.echo(f"wrote {path}")
    if problems := list(about_cases(specification, results)):
        raise SpecificationError(problems)
    click.echo("`conformance check` says whether it all holds.")
