"""The options of several commands, and those with a rule of their own."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.layout import SPEC

spec_option = click.option(
    "--spec",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=SPEC,
    show_default="the specification of the kit",
    help="Folder of another specification.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _number(value: float) -> float:
    """``value``, unless it is "nan", which no range refuses."""
    if not value > 0:
        raise click.BadParameter("'nan' is no number of seconds.")
    return value


timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    callback=lambda _context, _option, value: _number(value),
    default=60.0,
    show_default=True,
    help="Seconds a question.",
)

#: More than any machine has, in MiB: a limit that no system could set would be told by its calls.
_MOST_MEMORY = 2**30

memory_option = click.option(
    "--memory",
    type=click.IntRange(min=1, max=_MOST_MEMORY),
    metavar="MIB",
    help="Limit of each child.",
)

#: More children than there are operations would have nothing to do.
_MOST_JOBS = 32

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1, max=_MOST_JOBS),
    default=1,
    show_default=True,
    help="Children side by side.",
)
