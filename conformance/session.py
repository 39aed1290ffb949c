"""One backend, asked one case after the other: question, answer, verdict."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from threading import Event
from typing import Any

import msgspec

from conformance import judge
from conformance.answers import AnswerFile
from conformance.frozen.kept import KeptTruth
from conformance.harness.arrays import number_name
from conformance.harness.connection import Connection
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
from conformance.model.verdicts import PRINTED
from conformance.precision import Dtype
from conformance.questions import question
from conformance.specification import Specification

#: How many judged cases are asked again at the end of a run, in reverse, for the same bits.
REPEATED = 24

#: How the line begins that diagnosis adds to a message.
_DIAGNOSED = "\nno known mistake, but "

#: Called with how many cases are judged, and how many are planned.
Progress = Callable[[int, int], None]

#: What was kept of a case in a report that is gone on from: its verdict, its answers by call.
Kept = tuple[Verdict, dict[str, Answer]]


class Session:
    """The run of one backend over the planned cases; ``stop`` ends it after the case at hand."""

    def __init__(
        self, backend: Connection, spec: Specification, answers: AnswerFile, stop: Event
    ) -> None:
        self.backend = backend
        self.spec = spec
        self.answers = answers
        self.stop = stop
        self.truth = KeptTruth(Path(spec.root) / "truth")
        self.twins: dict[tuple[str, str], Answer] = {}
        self.failures: list[dict[str, Any]] = []
        self.verdicts: list[Verdict] = []
        self._sample: frozenset[int] = frozenset()
        self._again: dict[int, dict[str, Answer]] = {}

    def judge_all(
        self,
        planned: Sequence[tuple[Case, Dtype]],
        kept: Sequence[Kept],
        progress: Progress,
    ) -> tuple[Verdict, ...]:
        """The verdicts in the order planned, diagnosed where any failed; once for each session.

        The first of them are taken from ``kept``. Fewer than planned come back where the run was
        stopped, or interrupted from the keyboard, before all were judged and the sample of them
        was asked again.
        """
        self._sample = _sample(len(planned))
        for (case, dtype), (verdict, answers) in zip(planned, kept, strict=False):
            self._add(case, dtype, self._take(case, dtype, verdict, answers), answers)
        try:
            complete = self._judge_rest(planned, progress) and self._repeat_all(planned)
        except KeyboardInterrupt:
            self.stop.set()
            complete = False
        if not complete:
            # Without the sample a run is not done, though all of its cases were judged.
            del self.verdicts[len(planned) - 1 :]
        try:
            return self._diagnosed()
        except KeyboardInterrupt:  # what was judged is kept, and goes on to be diagnosed
            self.stop.set()
            return tuple(self.verdicts[: len(planned) - 1])

    def _judge_rest(self, planned: Sequence[tuple[Case, Dtype]], progress: Progress) -> bool:
        """Judge what is planned beyond the verdicts there are; False where it was stopped."""
        rest = planned[len(self.verdicts) :]
        first: Question | None = None
        for (case, dtype), following in zip_longest(rest, rest[1:]):
            if self.stop.is_set():
                return False
            # Built while the backend is at work on the one before, which it was asked ahead.
            ahead = None if following is None else self._first(*following)
            verdict, answers = self._judge(case, dtype, first, ahead)
            first = ahead
            if self.stop.is_set():  # the answer may be that of a child that was ended
                return False
            self._add(case, dtype, verdict, answers)
            progress(len(self.verdicts), len(planned))
        return True

    def _repeat_all(self, planned: Sequence[tuple[Case, Dtype]]) -> bool:
        """Ask the sample again, in another order; False where it was stopped."""
        for position in sorted(self._again, reverse=True):
            if self.stop.is_set():
                return False
            case, dtype = planned[position]
            verdict = self._repeat(case, dtype, self._again[position], self.verdicts[position])
            if self.stop.is_set():
                return False
            self.verdicts[position] = verdict
        return True

    def _judge(
        self, case: Case, dtype: Dtype, first: Question | None, ahead: Question | None
    ) -> Kept:
        """Ask every call of ``case``, and judge the answers while the backend works ``ahead``."""
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
            self._note_failure(verdict, case, questions, answers)
        return verdict, answers

    def _take(
        self, case: Case, dtype: Dtype, verdict: Verdict, answers: dict[str, Answer]
    ) -> Verdict:
        """A verdict of an earlier run as it was before its diagnosis, a failure noted as one."""
        judged, found, _ = verdict.message.rpartition(_DIAGNOSED)
        message = judged if found else verdict.message
        verdict = msgspec.structs.replace(verdict, message=message, diagnosis=None, because=None)
        answered = all(answer.status in {"outputs", "rejected"} for answer in answers.values())
        if verdict.verdict == "fail" and answered:
            operation = self.spec.operations[case.operation]
            asked = {call: question(case, operation, call, dtype, answers) for call in answers}
            questions = {call: each for call, each in asked.items() if each is not None}
            self._note_failure(verdict, case, questions, answers)
        return verdict

    def _add(self, case: Case, dtype: Dtype, verdict: Verdict, answers: dict[str, Answer]) -> None:
        """Keep the answers, then the verdict: whatever interrupts, none is without answers."""
        for call, answer in answers.items():
            self.answers.add(case.id, dtype, call, answer)
        position = len(self.verdicts)
        if position in self._sample and verdict.verdict == "pass":
            self._again[position] = answers
        self.verdicts.append(verdict)

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
        verdict: Verdict,
        case: Case,
        questions: dict[str, Question],
        answers: dict[str, Answer],
    ) -> None:
        arrays = [array for answer in answers.values() for array in answer.outputs.values()]
        if not all(number_name(array.dtype) for array in arrays):
            return  # no mistake in numbers explains what has none
        values = isinstance(case.expectation, Values | Relations)
        self.failures.append(
            {
                "verdict": verdict,
                "case": case,
                "truth": self.truth.of(case) if values else None,
                "questions": questions,
                "answers": answers,
            }
        )

    def _twin(self, case: Case, dtype: Dtype) -> Answer | None:
        """The answer to the valid case beside a rejection; asked once in each dtype."""
        if not isinstance(case.expectation, Rejection | Undefined):
            return None
        beside = case.expectation.beside
        key = (beside, dtype)
        if key not in self.twins:
            _, answers = self._ask(self.spec.cases[beside], dtype)
            self.twins[key] = answers[""]
        return self.twins[key]

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

    def _diagnosed(self) -> tuple[Verdict, ...]:
        judged = {(verdict.case, verdict.dtype) for verdict in self.verdicts}
        failures = [
            failure
            for failure in self.failures
            if (failure["verdict"].case, failure["verdict"].dtype) in judged
        ]
        if not failures:
            return tuple(self.verdicts)
        from conformance.diagnose import Failure, diagnose  # failures only: it loads the faults

        told = [Failure(**failure) for failure in failures]
        return tuple(diagnose(told, self.verdicts, self.spec.operations, specification=self.spec))


def _sample(planned: int) -> frozenset[int]:
    """Positions that are asked again: the same ones in every run of so many cases."""
    return frozenset(random.Random(0).sample(range(planned), min(REPEATED, planned)))  # noqa: S311


def _identical(name: str, before: Answer, after: Answer) -> bool:
    if name not in after.outputs:
        return False
    return bool(before.outputs[name].tobytes() == after.outputs[name].tobytes())
