"""What one connection is asked of a run: question, answer, verdict, one case after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from threading import Event
from typing import NamedTuple

import msgspec

from conformance.frozen.kept import KeptTruth
from conformance.harness.arrays import number_name
from conformance.harness.connection import Connection
from conformance.judging import judge
from conformance.model import (
    Answer,
    Case,
    Question,
    Rejection,
    Relations,
    Undefined,
    Values,
    Verdict,
    VerdictName,
)
from conformance.model.verdicts import DIAGNOSED, NOT_DIAGNOSED, PRINTED
from conformance.precision import Dtype
from conformance.questions import question
from conformance.running.answers import AnswerFile
from conformance.specification import Specification

#: A case in one dtype, as it is planned.
Pair = tuple[Case, Dtype]

#: What was kept of a case in a report that is gone on from: its verdict, its answers by call.
Kept = tuple[Verdict, dict[str, Answer]]


class Noted(NamedTuple):
    """A failure that may be diagnosed: the case, what it was asked, and what was answered."""

    case: Case
    questions: dict[str, Question]
    answers: dict[str, Answer]


class Share:
    """The cases that ``backend`` is asked; ``stop`` ends it after the case at hand.

    ``verdicts`` and ``failures`` are by the position of the case in the plan; ``sample`` has the
    positions that are asked again.
    """

    def __init__(
        self,
        backend: Connection,
        spec: Specification,
        answers: AnswerFile,
        stop: Event,
        sample: frozenset[int],
    ) -> None:
        self.backend = backend
        self.spec = spec
        self.answers = answers
        self.stop = stop
        self.truth = KeptTruth(Path(spec.root) / "truth")
        self.verdicts: dict[int, Verdict] = {}
        self.failures: dict[int, Noted] = {}
        self.complete = False
        self._sample = sample
        self._twins: dict[tuple[str, str], Answer] = {}
        self._again: dict[int, dict[str, Answer]] = {}

    def take(self, planned: Sequence[Pair], kept: Mapping[int, Kept]) -> None:
        """Take what was ``kept`` of an earlier run, by position in ``planned``, as it is."""
        for position, (verdict, answers) in kept.items():
            taken = self._take(position, planned[position], verdict, answers)
            self._add(position, planned[position], taken, answers)

    def judge(
        self, planned: Sequence[Pair], hands: Iterator[Sequence[int]], judged: Callable[[], None]
    ) -> None:
        """Judge hand after hand of positions in ``planned`` while there are any.

        ``judged`` is called after each case. Those of the sample that passed are asked again at the
        end. The share ``is complete`` unless it was stopped, or interrupted from the keyboard.
        """
        try:
            self.complete = all(
                self._judge_hand([(position, planned[position]) for position in hand], judged)
                for hand in hands
            ) and self._repeat_all(planned)
        except KeyboardInterrupt:
            self.stop.set()

    def _judge_hand(self, hand: Sequence[tuple[int, Pair]], judged: Callable[[], None]) -> bool:
        """Judge cases one after the other; False where it was stopped."""
        first: Question | None = None
        for (position, pair), following in zip_longest(hand, hand[1:]):
            if self.stop.is_set():
                return False
            # Built while the backend is at work on the one before, which it was asked ahead.
            ahead = None if following is None else self._first(*following[1])
            verdict, answers = self._judge(position, pair, first, ahead)
            first = ahead
            if self.stop.is_set():  # the answer may be that of a child that was ended
                return False
            self._add(position, pair, verdict, answers)
            judged()
        return True

    def _repeat_all(self, planned: Sequence[Pair]) -> bool:
        """Ask the sample again, in another order; False where it was stopped."""
        for position in sorted(self._again, reverse=True):
            if self.stop.is_set():
                return False
            before, verdict = self._again[position], self.verdicts[position]
            verdict = self._repeat(*planned[position], before, verdict)
            if self.stop.is_set():
                return False
            self.verdicts[position] = verdict
        return True

    def _judge(
        self, position: int, pair: Pair, first: Question | None, ahead: Question | None
    ) -> Kept:
        """Ask every call of the case, and judge the answers while the backend works ``ahead``."""
        case, dtype = pair
        questions, answers = self._ask(case, dtype, first)
        beside = isinstance(case.expectation, Rejection | Undefined)
        printed = self.backend.printed() if beside else None  # before the twin prints
        twin = self._twin(case, dtype)
        if ahead is not None:
            self.backend.ask_ahead(ahead)
        truth = None
        if isinstance(case.expectation, Values | Relations):
            truth = self.truth.of(case)
        verdict = judge.verdict(case, dtype, truth, answers, twin)
        if verdict.verdict == "fail":
            printed = self.backend.printed() if printed is None else printed
            # The message of a rejection says itself what was printed.
            if printed and PRINTED not in verdict.message:
                message = f"{verdict.message}\n{PRINTED}\n{printed}"
                verdict = msgspec.structs.replace(verdict, message=message)
            self._note_failure(position, case, questions, answers)
        return verdict, answers

    def _take(
        self, position: int, pair: Pair, verdict: Verdict, answers: dict[str, Answer]
    ) -> Verdict:
        """A verdict of an earlier run as it was before its diagnosis, a failure noted as one."""
        case, dtype = pair
        message = verdict.message
        for line in (NOT_DIAGNOSED, DIAGNOSED):
            judged, found, _ = message.rpartition(f"\n{line} ")
            message = judged if found else message
        verdict = msgspec.structs.replace(verdict, message=message, diagnosis=None, because=None)
        answered = all(answer.status in {"outputs", "rejected"} for answer in answers.values())
        if verdict.verdict == "fail" and answered:
            operation = self.spec.operations[case.operation]
            asked = {call: question(case, operation, call, dtype, answers) for call in answers}
            questions = {call: each for call, each in asked.items() if each is not None}
            self._note_failure(position, case, questions, answers)
        return verdict

    def _add(self, position: int, pair: Pair, verdict: Verdict, answers: dict[str, Answer]) -> None:
        """Keep the answers, then the verdict: whatever interrupts, none is without answers."""
        case, dtype = pair
        for call, answer in answers.items():
            self.answers.add(case.id, dtype, call, answer)
        if position in self._sample and verdict.verdict == "pass":
            self._again[position] = answers
        self.verdicts[position] = verdict

    def _first(self, case: Case, dtype: Dtype) -> Question | None:
        """The question of the first call, which takes no other's answer."""
        return question(
            case, self.spec.operations[case.operation], next(iter(case.calls)), dtype, {}
        )

    def _ask(
        self, case: Case, dtype: Dtype, first: Question | None = None
    ) -> tuple[dict[str, Question], dict[str, Answer]]:
        """Questions and answers by call; the ``first`` of them may have been asked ahead."""
        operation = self.spec.operations[case.operation]
        questions: dict[str, Question] = {}
        answers: dict[str, Answer] = {}
        for call in case.calls:
            asked, first = first or question(case, operation, call, dtype, answers), None
            if asked is None:  # it takes an output that did not come; that answer is judged
                break
            questions[call] = asked
            answers[call] = self.backend.answer(asked)
            if answers[call].status != "outputs":
                break
        return questions, answers

    def _note_failure(
        self,
        position: int,
        case: Case,
        questions: dict[str, Question],
        answers: dict[str, Answer],
    ) -> None:
        arrays = [array for answer in answers.values() for array in answer.outputs.values()]
        if all(number_name(array.dtype) for array in arrays):
            # No mistake in numbers explains what has none.
            self.failures[position] = Noted(case, questions, answers)

    def _twin(self, case: Case, dtype: Dtype) -> Answer | None:
        """The answer to the valid case beside a rejection; asked once in each dtype."""
        if not isinstance(case.expectation, Rejection | Undefined):
            return None
        beside = case.expectation.beside
        key = (beside, dtype)
        if key not in self._twins:
            _, answers = self._ask(self.spec.cases[beside], dtype)
            self._twins[key] = answers[""]
        return self._twins[key]

    def _repeat(
        self, case: Case, dtype: Dtype, before: Mapping[str, Answer], verdict: Verdict
    ) -> Verdict:
        """Fails a case whose answers are not the same to the bit when it is asked again."""
        if self.backend.gave_up(case.operation):
            return verdict
        _, after = self._ask(case, dtype)
        for call, answer in before.items():
            again = after.get(call, Answer(status="error"))
            names = [name for name in answer.outputs if not _identical(name, answer, again)]
            if answer.status == again.status and not names:
                continue
            found: VerdictName = "fail"
            message = f"not reproducible: asked again, {', '.join(names)} came out otherwise"
            if again.status in {"crash", "timeout", "error"}:
                found, message = again.status, f"asked again: {again.message}"
            elif answer.status != again.status:
                message = f"not reproducible: asked again, {again.message or again.status}"
            return Verdict(
                case=case.id,
                operation=case.operation,
                mode=case.mode,
                dtype=dtype,
                verdict=found,
                message=message,
                clauses=case.clauses,
            )
        return verdict


def _identical(name: str, before: Answer, after: Answer) -> bool:
    if name not in after.outputs:
        return False
    return bool(before.outputs[name].tobytes() == after.outputs[name].tobytes())
