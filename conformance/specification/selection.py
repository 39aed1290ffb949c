"""Which cases a command is about."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.errors import UsageError
from conformance.model import Case
from conformance.specification import Specification

_HINT = "`conformance list cases` shows the ids"


class NothingSelected(UsageError):
    """The patterns select no case, so nothing received a verdict."""

    exit_code = 4


def selected(specification: Specification, patterns: Iterable[str]) -> list[Case]:
    """The cases of ``selected_ids``."""
    return [specification.cases[case_id] for case_id in selected_ids(specification, patterns)]


def selected_ids(specification: Specification, patterns: Iterable[str]) -> list[str]:
    """The ids that match any of ``patterns``, globs or parts of an id; all without any.

    Raises NothingSelected where there is none, and UsageError for a pattern that is empty or
    matches nothing while others do: a slip of the pen would go unseen.
    """
    wanted = tuple(patterns)
    if "" in wanted:
        raise UsageError("an empty pattern selects nothing by itself", _HINT)
    ids = specification.ids(wanted)
    if not ids:
        raise NothingSelected(f"no case matches {', '.join(wanted)}", _HINT)
    idle = [pattern for pattern in wanted if not specification.ids([pattern])]
    if idle:
        raise UsageError(f"no case matches {', '.join(idle)}", _HINT)
    return ids
