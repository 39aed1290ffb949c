"""The run of one backend: its cases dealt out, asked, and what came of it diagnosed together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Event, Lock

import msgspec

from conformance.harness.connection import Connection
from conformance.judging.dependants import with_reasons
from conformance.model import Case, Relations, Values, Verdict
from conformance.model.verdicts import NOT_DIAGNOSED
from conformance.running.answers import AnswerFile
from conformance.running.share import Kept, Pair, Share
from conformance.specification import Specification

#: How many judged cases are asked again at the end of a run, in reverse, for the same bits.
REPEATED = 24

#: Called with how many are done, of cases that are judged or failures that are looked into, and
#: with how many there are.
Progress = Callable[[int, int], None]


class Session:
    """The run of one backend over the ``planned`` cases, through one connection or several.

    ``stop`` ends it after the cases at hand; ``interrupted`` is called before the mistakes are
    looked for in what a stopped run has judged, which takes a while.
    """

    def __init__(
        self,
        connections: Sequence[Connection],
        planned: Sequence[Pair],
        spec: Specification,
        answers: AnswerFile,
        stop: Event,
        interrupted: Callable[[], None] = lambda: None,
    ) -> None:
        self._interrupted = interrupted
        self.spec = spec
        self.stop = stop
        self.planned = planned
        sample = _sample(len(planned))
        self.shares = [Share(each, spec, answers, stop, sample) for each in connections]
        self.defect: Exception | None = None
        self._judged = 0
        self._lock = Lock()

    def tasks(self, kept: Mapping[int, Kept], progress: Progress) -> list[Callable[[], None]]:
        """What there is to do, in any order or side by side, before ``verdicts``.

        Some of the verdicts, by position, are taken from ``kept``.
        """
        self.shares[0].take(self.planned, kept)
        for position, (_, answers) in kept.items():
            for share in self.shares:  # whoever is dealt the operation
                for answer in answers.values():
                    share.backend.recall(self.planned[position][0].operation, answer)
        self._judged = len(kept)
        rest = [position for position in range(len(self.planned)) if position not in kept]
        # Whoever is done takes the next; ``next`` of a list's iterator is safe among threads.
        hands = iter(self._by_operation(rest) if len(self.shares) > 1 else [rest])

        def judged() -> None:
            with self._lock:
                self._judged += 1
                progress(self._judged, len(self.planned))

        return [partial(share.judge, self.planned, hands, judged) for share in self.shares]

    def _by_operation(self, positions: Iterable[int]) -> list[list[int]]:
        """The positions of each operation, the largest first: the last to be done is a small one.

        An operation is in one share whole: what is compiled, counted or remembered by operation is
        the same in one share and in several. Its size is how many numbers its questions give.
        """
        hands: dict[str, list[int]] = {}
        for position in positions:
            hands.setdefault(self.planned[position][0].operation, []).append(position)
        return sorted(
            hands.values(), key=lambda hand: -sum(_size(self.planned[each][0]) for each in hand)
        )

    def verdicts(self, progress: Progress = lambda _done, _planned: None) -> tuple[Verdict, ...]:
        """The verdicts in the order planned, diagnosed where any failed; once for each session.

        Fewer than planned come back where the run was stopped, or interrupted from the keyboard,
        before all were judged and the sample of them was asked again; and where the mistakes could
        not be looked for, by a ``defect`` of the kit.
        """
        found = {place: each for share in self.shares for place, each in share.verdicts.items()}
        if not all(share.complete for share in self.shares):
            # Without the sample a run is not done, though all of its cases were judged.
            found.pop(len(self.planned) - 1, None)
        why = ""
        try:
            judged = self._diagnosed(found, progress)
        except KeyboardInterrupt:
            self.stop.set()
            why = "interrupted"
        except Exception as defect:  # of the kit; what a backend was found to do is worth more
            self.defect = defect
            why = "the kit failed"
        if why:  # what was judged is kept, and goes on to be diagnosed
            found.pop(len(self.planned) - 1, None)
            judged = tuple(_not_diagnosed(found[position], why) for position in sorted(found))
        return with_reasons(judged, self.spec.operations)

    def _diagnosed(self, found: Mapping[int, Verdict], progress: Progress) -> tuple[Verdict, ...]:
        verdicts = [found[position] for position in sorted(found)]
        noted = sorted(
            (position, share, failure)
            for share in self.shares
            for position, failure in share.failures.items()
            if position in found
        )
        if not noted:
            return tuple(verdicts)
        if self.stop.is_set():
            self._interrupted()
        # Failures only: it loads the faults.
        from conformance.diagnosis.diagnose import Failure, diagnose

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
        return tuple(diagnose(told, verdicts, self.spec.operations, progress, self.spec))


def _not_diagnosed(verdict: Verdict, why: str) -> Verdict:
    if verdict.verdict != "fail":
        return verdict
    return msgspec.structs.replace(verdict, message=f"{verdict.message}\n{NOT_DIAGNOSED} {why}")


def _size(case: Case) -> int:
    """How many numbers the questions of a case give; one where they give none."""
    return 1 + sum(len(tensor.data) for tensor in case.tensors())


def _sample(planned: int) -> frozenset[int]:
    """Positions that are asked again: the same ones in every run of so many cases."""
    return frozenset(random.Random(0).sample(range(planned), min(REPEATED, planned)))  # noqa: S311
