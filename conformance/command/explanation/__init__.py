"""``conformance explain``: how a case comes to its values, and what known mistakes would give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conformance.command.explanation.derived import derivation
from conformance.command.explanation.mistakes import mistakes
from conformance.command.explanation.tensors import plain_text
from conformance.command.showing import find_case, heading
from conformance.diagnosis.diagnose import Failure, diagnose
from conformance.errors import Rejected, UsageError
from conformance.frozen import CaseTruth, Truth, dotted
from conformance.harness.connection import Connection
from conformance.judging import judge
from conformance.model import (
    Answer,
    Case,
    Operation,
    Question,
    Rejection,
    Relations,
    Undefined,
    Values,
)
from conformance.questions import question
from conformance.report.text import failure_text
from conformance.specification import Specification
from conformance.truth.arithmetic.balls import NotProven
from conformance.truth.proof.prove import prove_values


def explain(
    case_id: str, specification: Specification, backend: Connection | None = None
) -> Iterator[str]:
    """The lines of the explanation; with ``backend`` its answers stand beside.

    Raises UsageError where there is no such case, or where its values can't be proven.
    """
    case = find_case(case_id, specification)
    operation = specification.operations[case.operation]
    try:
        yield from _explained(case, operation, specification, backend)
    except NotProven as error:
        hint = "`conformance freeze` tells it of every case"
        raise UsageError(f"{case.id} can't be proven: {error}", hint) from None


def _explained(
    case: Case, operation: Operation, specification: Specification, backend: Connection | None
) -> Iterator[str]:
    yield from heading(case, specification)
    if isinstance(case.expectation, Rejection | Undefined):
        yield from _rejection(case, operation)
    elif case.free is None:
        yield from derivation(case, operation, specification.operations)
    if backend is not None:
        yield from _answers(case, specification, backend)
    yield from mistakes(case, operation)


def _rejection(case: Case, operation: Operation) -> Iterator[str]:
    due = case.expectation
    try:
        prove_values(case, operation)
    except Rejected as rejected:
        yield f"  rejected as {rejected.kind}: {rejected.message}"
    else:
        assert isinstance(due, Undefined)
        yield f"  {due.output} is 0/0 or infinite: it has no value"


def _answers(case: Case, specification: Specification, backend: Connection) -> Iterator[str]:
    operation = specification.operations[case.operation]
    truth: CaseTruth | None = None
    if isinstance(case.expectation, Values | Relations):
        truth = Truth(Path(specification.root) / "truth").of(case)
    for dtype in case.dtypes:
        questions: dict[str, Question] = {}
        answers: dict[str, Answer] = {}
        for call in case.calls:
            asked = question(case, operation, call, dtype, answers)
            if asked is not None:
                questions[call] = asked
                answers[call] = backend.answer(asked)
        yield f"  {backend.name} in {dtype}"
        for call, answer in answers.items():
            if answer.status != "outputs":
                yield f"    {answer.status} {answer.kind or ''} {answer.message}".rstrip()
            for output, value in answer.outputs.items():
                yield f"    {dotted(call, output)} = {plain_text(value)}"
        twin = Answer()  # alone, a rejection is shown as if its twin had been answered
        verdict = judge.verdict(case, dtype, truth, answers, twin)
        failure = Failure(verdict, case, truth, questions, answers)
        failures = [failure] * (verdict.verdict == "fail")
        (verdict,) = diagnose(
            failures, [verdict], specification.operations, specification=specification
        )
        yield from (f"    {line}" for line in failure_text(verdict).splitlines())
        yield ""
