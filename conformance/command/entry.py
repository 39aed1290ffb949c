"""Runs a command and ends with its exit code, whatever it raises."""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from conformance.command.cli import cli
from conformance.errors import DEFECT, INTERRUPTED, ConformanceError

#: The number of the last of the standard streams.
_STANDARD_ERROR = 2

#: What a file says that has no room, or whose disk fails.
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))


def main() -> None:
    """Run the command line and exit with the code of the design."""
    _open_streams()
    _listen()
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
    except OSError as error:
        if error.errno not in _FULL:
            _tell_defect()
        click.echo(f"conformance: what there is to say can't be written: {error}", err=True)
        _look_away(2)
    except Exception:
        _tell_defect()
    sys.exit(_code(code))


def _open_streams() -> None:
    """Where a standard stream is closed, nothing else may get its number: what is printed would
    go into a pipe to a child.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        pass
    os.close(number)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("r+"))  # noqa: SIM115 -- to the end


def _listen() -> None:
    """What asks to end does as Ctrl-C, and children end too."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _as_from_the_keyboard)


def _tell_defect() -> NoReturn:
    import traceback

    traceback.print_exc()
    click.echo("conformance: this is a defect of the kit, not of your backend.", err=True)
    sys.exit(DEFECT)


def _as_from_the_keyboard(_number: int, frame: FrameType | None) -> None:
    """Whoever notices Ctrl-C notices this, also where a shell has it ignored."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)


def _look_away(code: int = 0) -> NoReturn:
    """End where nobody reads, without a last attempt to print."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


def _code(returned: Any) -> int:
    return returned if isinstance(returned, int) else 0
