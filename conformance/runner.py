"""Runs the cases of the specification on backends: question, answer, verdict, report."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance import environment, judge
from conformance.answers import AnswerFile
from conformance.errors import UsageError
from conformance.frozen import Truth
from conformance.harness.ask import ask
from conformance.harness.load import bundled, installed, load
from conformance.model import (
    VERDICTS,
    Answer,
    Backend,
    Case,
    Question,
    Rejection,
    Relations,
    Report,
    Undefined,
    Values,
    Verdict,
)
from conformance.precision import DTYPES, Dtype
from conformance.questions import question
from conformance.report.files import file_name, write_reports
from conformance.specification import Specification
from conformance.specification import load as load_specification

#: How many judged cases are asked again at the end of a run, in reverse, for the same bits.
REPEATED = 24

#: Called with the name of the backend, how many cases are judged, and how many are planned.
Progress = Callable[[str, int, int], None]


def run(
    backends: Sequence[str | Backend] = (),
    *,
    select: Iterable[str] = (),
    dtypes: Sequence[Dtype] = DTYPES,
    out: Path | str | None = None,
    published: bool = False,
    specification: Specification | None = None,
    progress: Progress = lambda _name, _done, _planned: None,
) -> list[Report]:
    """Judge ``backends`` (names or objects; none: every bundled one whose library is installed).

    ``select`` has globs or parts of case ids. Reports are written to the folder ``out`` if given;
    ``published`` writes Markdown alone, without what changes from run to run.
    Raises SpecificationError, UsageError (nothing selected, two backends of one name) and
    BackendError.
    """
    spec = specification or load_specification()
    patterns = tuple(select)
    cases = spec.select(patterns)
    if not cases:
        known = "`conformance list cases` shows the ids"
        raise NothingSelected(f"no case matches {', '.join(patterns)}", known)
    names = backends or [name for name in bundled() if installed(name)]
    loaded = [backend_named(name) if isinstance(name, str) else name for name in names]
    _refuse_equal_names(loaded)
    folder = None if out is None else Path(out)
    reports = []
    for backend in loaded:
        path = None
        if folder is not None and not published:
            path = folder / f"{file_name(backend.name)}.answers.msgpack"
        with AnswerFile(path) as answers:
            session = _Session(backend, spec, answers)
            verdicts = session.judge_all(cases, dtypes, progress)
        reports.append(_report(backend, spec, patterns, dtypes, verdicts))
    if folder is not None:
        write_reports(reports, folder, published=published)
    return reports


class NothingSelected(UsageError):
    """The patterns select no case, so nothing received a verdict."""

    exit_code = 4


def backend_named(name: str) -> Backend:
    """A backend by name; ``fault:NAME`` is answered by the reference with one rule wrong."""
    if name.startswith("fault:"):
        from conformance.truth.fault_backend import FaultBackend

        return FaultBackend(name.removeprefix("fault:"))
    return load(name)


def exit_code(reports: Iterable[Report]) -> int:
    """1: any fail or error; 3: any crash or timeout; 4: nothing received a verdict; 0 otherwise."""
    totals = [report.totals for report in reports]
    if any(total["fail"] or total["error"] for total in totals):
        return 1
    if any(total["crash"] or total["timeout"] for total in totals):
        return 3
    return 0 if any(total["pass"] for total in totals) else 4


class _Session:
    """One backend, asked one case after the other."""

    def __init__(self, backend: Backend, spec: Specification, answers: AnswerFile) -> None:
        self.backend = backend
        self.spec = spec
        self.answers = answers
        self.truth = Truth(Path(spec.root) / "truth")
        self.twins: dict[tuple[str, str], Answer] = {}
        self.failures: list[dict[str, Any]] = []

    def judge_all(
        self, cases: Sequence[Case], dtypes: Sequence[Dtype], progress: Progress
    ) -> tuple[Verdict, ...]:
        """The verdicts in the order of the cases, diagnosed where any failed."""
        planned = [(case, dtype) for case in cases for dtype in dtypes if dtype in case.dtypes]
        chosen = random.Random(0).sample(range(len(planned)), min(REPEATED, len(planned)))  # noqa: S311
        kept: dict[int, dict[str, Answer]] = {}
        verdicts: list[Verdict] = []
        for position, (case, dtype) in enumerate(planned):
            verdict, answers = self.judge_one(case, dtype)
            verdicts.append(verdict)
            if position in chosen:
                kept[position] = answers
            progress(self.backend.name, position + 1, len(planned))
        for position in sorted(kept, reverse=True):
            case, dtype = planned[position]
            if verdicts[position].verdict == "pass":
                verdicts[position] = self._repeated(case, dtype, kept[position], verdicts[position])
        if not self.failures:
            return tuple(verdicts)
        from conformance.diagnose import Failure, diagnose

        failures = [Failure(**failure) for failure in self.failures]
        return tuple(diagnose(failures, verdicts, self.spec.operations))

    def judge_one(self, case: Case, dtype: Dtype) -> tuple[Verdict, dict[str, Answer]]:
        """Ask every call of ``case``, and judge the answers."""
        questions, answers = self._ask_calls(case, dtype)
        for call, answer in answers.items():
            self.answers.add(case.id, dtype, call, answer)
        truth = None
        if isinstance(case.expectation, Values | Relations):
            truth = self.truth.of(case)
        verdict = judge.verdict(case, dtype, truth, answers, self._twin(case, dtype))
        if verdict.verdict == "fail":
            self.failures.append(
                {
                    "verdict": verdict,
                    "case": case,
                    "truth": truth,
                    "questions": questions,
                    "answers": answers,
                }
            )
        return verdict, answers

    def _ask_calls(self, case: Case, dtype: Dtype) -> tuple[dict[str, Question], dict[str, Answer]]:
        operation = self.spec.operations[case.operation]
        questions: dict[str, Question] = {}
        answers: dict[str, Answer] = {}
        for call in case.calls:
            asked = question(case, operation, call, dtype, answers)
            if asked is None:  # it takes an output that did not come; that answer is judged
                break
            questions[call] = asked
            answers[call] = ask(self.backend, asked)
            if answers[call].status != "outputs":
                break
        return questions, answers

    def _twin(self, case: Case, dtype: Dtype) -> Answer | None:
        """The answer to the valid case beside a rejection; its outputs are not kept."""
        if not isinstance(case.expectation, Rejection | Undefined):
            return None
        beside = case.expectation.beside
        key = (beside, dtype)
        if key not in self.twins:
            _, answers = self._ask_calls(self.spec.cases[beside], dtype)
            self.twins[key] = msgspec.structs.replace(answers[""], outputs={})
        return self.twins[key]

    def _repeated(
        self, case: Case, dtype: Dtype, before: Mapping[str, Answer], verdict: Verdict
    ) -> Verdict:
        """Fails a case whose answers are not the same to the bit when it is asked again."""
        _, after = self._ask_calls(case, dtype)
        for call, answer in before.items():
            again = after.get(call, Answer(status="error"))
            names = [name for name in answer.outputs if not _identical(name, answer, again)]
            if answer.status == again.status and not names:
                continue
            what = ", ".join(names) or answer.status
            message = f"not reproducible: asked again, {what} came out otherwise"
            return msgspec.structs.replace(verdict, verdict="fail", message=message, ratio=None)
        return verdict


def _identical(name: str, before: Answer, after: Answer) -> bool:
    if name not in after.outputs:
        return False
    return bool(before.outputs[name].tobytes() == after.outputs[name].tobytes())


def _refuse_equal_names(backends: Sequence[Backend]) -> None:
    names = [backend.name for backend in backends]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        hint = "give one of them a class attribute `name`"
        raise UsageError(f"two backends are called {', '.join(sorted(twice))}", hint)


def _report(
    backend: Backend,
    spec: Specification,
    patterns: tuple[str, ...],
    dtypes: Sequence[Dtype],
    verdicts: tuple[Verdict, ...],
) -> Report:
    totals: dict[str, int] = {
        name: sum(verdict.verdict == name for verdict in verdicts) for name in VERDICTS
    }
    description = backend.describe()
    known = tuple(name for name in spec.operations if name in description.operations)
    return Report(
        kit=environment.kit(),
        specification=environment.specification(spec.root),
        backend=msgspec.structs.replace(description, name=backend.name, operations=known),
        environment=environment.machine(),
        selection=patterns,
        dtypes=tuple(dtypes),
        planned=len(verdicts),
        run=len(verdicts),
        totals=totals,
        verdicts=verdicts,
    )
