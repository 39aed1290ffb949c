"""What a run may be given: every mistake in it is told before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from conformance.errors import UsageError
from conformance.precision import DTYPES


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to run, whatever is judged.

    ``timeout`` is per question in seconds, ``memory`` per child in MiB. ``jobs`` is how many
    children are asked side by side: the operations of a named backend are dealt out to so many.
    ``in_process`` asks backends in this process, for debuggers, with none of these. ``published``
    writes Markdown alone, without what changes from run to run; ``resume`` goes on from the partial
    reports in the folder.
    """

    timeout: float = 60.0
    memory: int | None = None
    jobs: int = 1
    in_process: bool = False
    published: bool = False
    resume: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for a number that is none, or none that there can be."""
        number = isinstance(self.timeout, int | float) and self.timeout > 0
        if not number or isinstance(self.timeout, bool):
            raise UsageError(f"timeout is seconds above zero, not {self.timeout!r}")
        for name, value in (("memory", self.memory), ("jobs", self.jobs)):
            unlimited = name == "memory" and value is None
            if not unlimited and (type(value) is not int or value < 1):
                raise UsageError(f"{name} is a whole number from 1 on, not {value!r}")


def listed(name: str, given: Iterable[Any]) -> tuple[Any, ...]:
    """What a list has, that may be any iterable, paths as text.

    Raises UsageError for what is none, or is text.
    """
    if isinstance(given, str):
        raise UsageError(f"{name} is a list, not the text {given!r}", f"write [{given!r}]")
    if not isinstance(given, Iterable):
        hint = "leave it out" if given is None else f"write [{given!r}]"
        raise UsageError(f"{name} is a list, not {given!r}", hint)
    return tuple(os.fspath(item) if isinstance(item, os.PathLike) else item for item in given)


def refuse_strangers(backends: Sequence[Any], select: Sequence[Any], dtypes: Sequence[Any]) -> None:
    """Raise UsageError for what is no backend, no pattern, and no dtype that is known."""
    for pattern in select:
        if not isinstance(pattern, str):
            raise UsageError(f"select has globs and parts of ids, not {pattern!r}")
    for backend in backends:
        if not isinstance(backend, str) and not hasattr(backend, "answer"):
            hint = "give the name of one, or an object with describe() and answer(question)"
            raise UsageError(f"{backend!r} is no backend", hint)
    strange = [dtype for dtype in dtypes if dtype not in DTYPES]
    if strange or not dtypes:
        raise UsageError(
            f"there is no dtype {strange[0]!r}" if strange else "there are no dtypes",
            f"known: {', '.join(DTYPES)}",
        )


def refuse_limits(how: Options) -> None:
    """What is asked in this process can't be ended by it, and has nothing beside it."""
    for name in ("timeout", "memory", "jobs"):
        if getattr(how, name) != getattr(Options(), name):
            hint = f"leave out --{name} or --in-process"
            raise UsageError(f"--{name} is for children, and in this process there are none", hint)
