"""Every error a user can cause, and the one exception an adapter raises on purpose.

::

    ConformanceError           what went wrong, where, and what to do next; exit code 2
    ├── SpecificationError     faults of the YAML files, all at once, each with file, line and path
    ├── UsageError             a command or call that asks for something that isn't there
    └── BackendError           a backend that can't be found, loaded or built

    Rejected                   raised by an adapter: the arguments break a rule of the specification

Anything else that escapes is a defect of this kit, and is shown as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: The exit code when the kit itself is at fault, so that it never looks like a verdict.
DEFECT = 70

#: The exit code after Ctrl-C, as shells have it.
INTERRUPTED = 130


class ConformanceError(Exception):
    """A mistake the user can mend. ``str()`` says what, where, and what to do next."""

    exit_code = 2

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"{what}\n  {hint}" if hint else what)
        self.what = what
        self.hint = hint


class UsageError(ConformanceError):
    """The command line or a call asks for something that does not exist."""


class BackendError(ConformanceError):
    """A backend can't be found, imported or constructed."""


class Problem(NamedTuple):
    """One fault of the specification: where it is and what is wrong."""

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class SpecificationError(ConformanceError):
    """The specification is not well formed or not true; ``problems`` has every fault found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Rejected(Exception):
    """Raised by an adapter when the specification forbids the arguments.

    ``kind`` is one of the operation's ``rejects`` in ``spec/operations.yaml`` (``"weight-rank"``,
    …) and is compared with the expected kind in a column of its own; ``message`` is for people.
    """

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(message or kind)
        self.kind = kind
        self.message = message
