"""The run of one backend: its cases dealt out, asked, and what came of it diagnosed together."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Lock

from conformance.answers import AnswerFile
from conformance.harness.connection import Connection
from conformance.model import Case, Parameters, Relations, Tensor, Values, Verdict
from conformance.share import Kept, Pair, Share
from conformance.specification import Specification

#: How many judged cases are asked again at the end of a run, in reverse, for the same bits.
REPEATED = 24

#: Called with how many cases are judged, and how many are planned.
Progress = Callable[[int, int], None]


class Session:
    """The run of one backend over the planned cases, through one connection or several.

    ``stop`` ends it after the cases at hand.
    """

    def __init__(
        self,
        connections: Sequence[Connection],
        spec: Specification,
        answers: AnswerFile,
        stop: Event,
    ) -> None:
        self.spec = spec
        self.stop = stop
        self.shares = [Share(connection, spec, answers, stop) for connection in connections]
        self._planned = 0
        self._judged = 0
        self._lock = Lock()

    def tasks(
        self, planned: Sequence[Pair], kept: Mapping[int, Kept], progress: Progress
    ) -> list[Callable[[], None]]:
        """What there is to do, in any order or side by side, before ``verdicts``.

        Some of the verdicts, by position, are taken from ``kept``.
        """
        self._planned, self._judged = len(planned), len(kept)
        sample = _sample(len(planned))

        def judged() -> None:
            with self._lock:
                self._judged += 1
                progress(self._judged, self._planned)

        def task(share: Share, positions: Sequence[int]) -> Callable[[], None]:
            mine = {position: planned[position] for position in positions}
            had = {position: kept[position] for position in positions if position in kept}
            return lambda: share.judge(mine, had, sample, judged)

        hands = dealt(planned, len(self.shares))
        return [task(*each) for each in zip(self.shares, hands, strict=True)]

    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts in the order planned, diagnosed where any failed; once for each session.

        Fewer than planned come back where the run was stopped, or interrupted from the keyboard,
        before all were judged and the sample of them was asked again.
        """
        found = {place: each for share in self.shares for place, each in share.verdicts.items()}
        if not all(share.complete for share in self.shares):
            # Without the sample a run is not done, though all of its cases were judged.
            found.pop(self._planned - 1, None)
        try:
            return self._diagnosed(found)
        except KeyboardInterrupt:  # what was judged is kept, and goes on to be diagnosed
            self.stop.set()
            found.pop(self._planned - 1, None)
            return tuple(found[position] for position in sorted(found))

    def _diagnosed(self, found: Mapping[int, Verdict]) -> tuple[Verdict, ...]:
        verdicts = [found[position] for position in sorted(found)]
        noted = sorted(
            (position, share, failure)
            for share in self.shares
            for position, failure in share.failures.items()
            if position in found
        )
        if not noted:
            return tuple(verdicts)
        from conformance.diagnose import Failure, diagnose  # failures only: it loads the faults

        told = [
            Failure(
                verdict=found[position],
                case=failure.case,
                truth=share.truth.of(failure.case)
                if isinstance(failure.case.expectation, Values | Relations)
                else None,
                questions=failure.questions,
                answers=failure.answers,
            )
            for position, share, failure in noted
        ]
        return tuple(diagnose(told, verdicts, self.spec.operations, specification=self.spec))


def dealt(planned: Sequence[Pair], shares: int) -> list[list[int]]:
    """The positions in ``planned``, in order, of each of so many ``shares``.

    All cases of an operation are in one share: what is compiled, counted or remembered by operation
    is the same in one share and in several. The largest operation is dealt first, each to the
    share that has least; its size is how many numbers its questions give.
    """
    if shares == 1:
        return [[*range(len(planned))]]
    sizes: dict[str, int] = {}
    for case, _ in planned:
        sizes[case.operation] = sizes.get(case.operation, 0) + _size(case)
    hands: list[set[str]] = [set() for _ in range(shares)]
    for operation in sorted(sizes, key=lambda each: -sizes[each]):
        min(hands, key=lambda hand: sum(sizes[each] for each in hand)).add(operation)
    return [
        [position for position, (case, _) in enumerate(planned) if case.operation in hand]
        for hand in hands
    ]


def _size(case: Case) -> int:
    """How many numbers the questions of a case give; one where they give none."""
    given = [value for call in case.calls.values() for value in call.given.values()]
    tensors = [value for value in given if isinstance(value, Tensor)]
    for value in given:
        if isinstance(value, Parameters):
            tensors += value.tensors.values()
    return 1 + sum(len(tensor.data) for tensor in tensors)


def _sample(planned: int) -> frozenset[int]:
    """Positions that are asked again: the same ones in every run of so many cases."""
    return frozenset(random.Random(0).sample(range(planned), min(REPEATED, planned)))  # noqa: S311
