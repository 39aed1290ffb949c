"""When an operation is not asked any more, because it always takes its process with it."""

from __future__ import annotations

from collections import Counter

from conformance.model import Answer, Status
from conformance.model.verdicts import NOT_ASKED

#: After so many crashes or timeouts in a row, the rest of an operation is not asked any more.
IN_A_ROW = 5


class Patience:
    """Counts the crashes and timeouts in a row of each operation."""

    def __init__(self) -> None:
        self._in_a_row: Counter[str] = Counter()
        self._last: dict[str, Status] = {}

    def ended(self, operation: str) -> bool:
        """Whether the last ``IN_A_ROW`` questions of ``operation`` all crashed or hung."""
        return self._in_a_row[operation] >= IN_A_ROW

    def note(self, operation: str, answer: Answer) -> None:
        """Count how a question of ``operation`` ended."""
        bad = answer.status in {"crash", "timeout"}
        self._in_a_row[operation] = self._in_a_row[operation] + 1 if bad else 0
        self._last[operation] = answer.status

    def not_asked(self, operation: str) -> Answer:
        """What stands for the answer where patience has ended: it counts as the last one did."""
        message = f"{NOT_ASKED}: {IN_A_ROW} crashes or timeouts of {operation} in a row"
        return Answer(status=self._last[operation], message=message)
