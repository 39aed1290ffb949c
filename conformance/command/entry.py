"""Runs a command and ends with its exit code, whatever it raises."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

import click

from conformance.command.cli import cli
from conformance.errors import DEFECT, INTERRUPTED, ConformanceError


def main() -> None:
    """Run the command line and exit with the code of the design."""
    for name in ("SIGTERM", "SIGHUP"):  # what asks to end does as Ctrl-C, and children end too
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _as_from_the_keyboard)
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except ConformanceError as error:
        click.echo(f"conformance: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("conformance: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except SystemExit:  # click's own: the reader of our output has gone, as in `| head`
        _look_away()
    except BrokenPipeError:
        _look_away()
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo("conformance: this is a defect of the kit, not of your backend.", err=True)
        sys.exit(DEFECT)
    sys.exit(_code(code))


def _as_from_the_keyboard(_number: int, frame: FrameType | None) -> None:
    """Whoever notices Ctrl-C notices this, also where a shell has it ignored."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)


def _look_away() -> None:
    """End in silence where nobody reads."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


def _code(returned: Any) -> int:
    return returned if isinstance(returned, int) else 0
