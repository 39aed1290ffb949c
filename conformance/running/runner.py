"""Runs the cases of the specification on backends, side by side, and writes their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Event

import msgspec

from conformance.errors import UsageError
from conformance.harness.connection import Connection, InProcess
from conformance.harness.load import load
from conformance.harness.names import check_name, check_names, default_names
from conformance.harness.process import ChildBackend
from conformance.harness.spawn import Spawned, spawn_all
from conformance.judging.support import hold_to_support, notes
from conformance.model import VERDICTS, Backend, Case, Report, Verdict
from conformance.precision import DTYPES, Dtype
from conformance.report.files import file_name, refuse_files, write_reports
from conformance.running import environment, resume
from conformance.running.answers import AnswerFile
from conformance.running.options import Options, listed, refuse_limits, refuse_strangers
from conformance.running.session import Session
from conformance.running.share import Kept
from conformance.specification import Specification
from conformance.specification import load as load_specification
from conformance.specification.selection import selected

#: Called with the name of the backend, how many cases are judged, and how many are planned; then,
#: where any failed, with ``NAME, mistakes``, into how many failures it was looked, and of how many.
Progress = Callable[[str, int, int], None]


def run(
    backends: Iterable[str | Backend] = (),
    *,
    select: Iterable[str] = (),
    dtypes: Iterable[Dtype] = DTYPES,
    out: Path | str | None = None,
    options: Options | None = None,
    specification: Specification | None = None,
    progress: Progress = lambda _name, _done, _planned: None,
    interrupted: Callable[[], None] = lambda: None,
    spawned: Mapping[str, Sequence[Spawned]] | None = None,
) -> list[Report]:
    """Judge ``backends`` (names or objects; none: every bundled one whose library is installed).

    A named backend runs in child processes of its own, an object in this process. ``select`` has
    globs or parts of case ids. Reports are written to the folder ``out`` if given; a run that is
    interrupted from the keyboard returns what was judged, as partial reports; ``interrupted`` is
    called before the mistakes in it are looked for. ``spawned`` has children that were started
    already, by name.

    Raises SpecificationError, UsageError (a pattern that selects nothing, two backends of one name,
    nothing to go on from) and BackendError.
    """
    backends, select = listed("backends", backends), listed("select", select)
    dtypes = listed("dtypes", dtypes)
    refuse_strangers(backends, select, dtypes)
    how = options or Options()
    if how.in_process:
        refuse_limits(how)
    folder = None if out is None else Path(out)
    with ExitStack() as stack:
        for child in chain.from_iterable((spawned or {}).values()):
            stack.callback(child.end)
        spec = specification or load_specification()
        cases = selected(spec, select)
        names = backends or default_names()
        check_names(name for name in names if isinstance(name, str))
        plan = _Plan(spec, select, cases, dtypes, folder, how, interrupted)  # while children start
        connections = [connect(name, how, spawned or {}, stack) for name in names]
        called = [first.name for first, *_ in connections]
        _refuse_equal_names(called)
        if folder is not None:
            refuse_files(called, folder)
        reports = _run_all(connections, plan, progress)
    if folder is not None:
        write_reports(reports, folder, published=how.published)
    if plan.defects:
        raise plan.defects[0]  # now that all that was judged is written
    return reports


def connect(
    backend: str | Backend,
    how: Options,
    spawned: Mapping[str, Sequence[Spawned]],
    stack: ExitStack,
) -> list[Connection]:
    """What to ask ``backend`` through, as often as there are jobs if it runs in children.

    ``stack`` closes them. ``fault:NAME`` is answered here, by the reference with one rule wrong:
    nothing of the truth is in a child.
    """
    if isinstance(backend, type):
        hint = f"give an object, {backend.__name__}()"
        raise UsageError(f"{backend.__name__} is a class, not a backend", hint)
    connections: list[Connection]
    if not isinstance(backend, str):
        connections = [InProcess(backend)]
    elif backend.startswith("fault:"):
        from conformance.truth.fault_backend import FaultBackend  # only where one is asked for

        connections = [InProcess(FaultBackend(backend.removeprefix("fault:")))]
    elif how.in_process:
        check_name(backend)
        connections = [InProcess(load(backend))]
    else:
        check_name(backend)
        children = spawned.get(backend) or spawn_all([backend], how.memory, how.jobs)[backend]
        for child in children:
            stack.callback(child.end)  # before the first of them is waited for
        connections = [
            ChildBackend(backend, timeout=how.timeout, memory=how.memory, spawned=child)
            for child in children
        ]
    for connection in connections:
        stack.callback(connection.close)
    return connections


def exit_code(reports: Iterable[Report]) -> int:
    """1: any fail or error; 3: any crash or timeout; 4: nothing received a verdict; 0 otherwise."""
    totals = [report.totals for report in reports]
    if any(total["fail"] or total["error"] for total in totals):
        return 1
    if any(total["crash"] or total["timeout"] for total in totals):
        return 3
    return 0 if any(total["pass"] for total in totals) else 4


class _Plan:
    """What every backend of a run is judged on, and how."""

    def __init__(
        self,
        spec: Specification,
        patterns: tuple[str, ...],
        cases: Sequence[Case],
        dtypes: tuple[Dtype, ...],
        folder: Path | None,
        how: Options,
        interrupted: Callable[[], None],
    ) -> None:
        self.interrupted = interrupted
        self.spec = spec
        self.patterns = patterns
        self.dtypes = dtypes
        self.folder = folder
        self.how = how
        self.stop = Event()
        self.defects: list[Exception] = []
        self.pairs = [(case, dtype) for case in cases for dtype in dtypes if dtype in case.dtypes]
        self.kit = environment.kit()
        self.specification = environment.specification(spec.root)
        self.environment = environment.machine()

    def answers_path(self, name: str) -> Path | None:
        """Where the answers of a backend are kept, if they are."""
        if self.folder is None or self.how.published:
            return None
        return self.folder / f"{file_name(name)}.answers.msgpack"

    def report(self, backend: Connection, verdicts: Sequence[Verdict]) -> Report:
        """The report of ``backend``, which may be partial."""
        totals: dict[str, int] = {
            name: sum(verdict.verdict == name for verdict in verdicts) for name in VERDICTS
        }
        description = backend.describe()
        known = tuple(name for name in self.spec.operations if name in description.operations)
        return Report(
            kit=self.kit,
            specification=self.specification,
            backend=msgspec.structs.replace(description, name=backend.name, operations=known),
            environment=self.environment,
            selection=self.patterns,
            notes=notes(description, self.spec.operations),
            dtypes=self.dtypes,
            planned=len(self.pairs),
            run=len(verdicts),
            totals=totals,
            verdicts=tuple(verdicts),
        )


class _Run:
    """The run of one backend, and where its answers go."""

    def __init__(
        self,
        connections: Sequence[Connection],
        plan: _Plan,
        progress: Progress,
        files: ExitStack,
    ) -> None:
        self._backend, self._plan = connections[0], plan
        name = self._backend.name
        kept: Mapping[int, Kept] = {}
        if plan.how.resume and plan.folder is not None:
            kept = resume.kept(plan.report(self._backend, ()), plan.folder, plan.pairs)
        answers = files.enter_context(AnswerFile(plan.answers_path(name)))
        self._session = Session(
            connections, plan.pairs, plan.spec, answers, plan.stop, plan.interrupted
        )
        self.tasks = self._session.tasks(kept, partial(progress, name))
        self._looking = partial(progress, f"{name}, mistakes")

    def report(self) -> Report:
        """The report, when all tasks are done."""
        verdicts = self._session.verdicts(self._looking)
        if self._session.defect is not None:
            self._plan.defects.append(self._session.defect)
        return self._plan.report(self._backend, hold_to_support(verdicts))


def _run_all(
    backends: Sequence[Sequence[Connection]], plan: _Plan, progress: Progress
) -> list[Report]:
    """The reports in the order of the backends, whatever runs side by side."""
    with ExitStack() as files:
        runs = [_Run(connections, plan, progress, files) for connections in backends]
        if plan.how.jobs <= 1 or sum(len(run.tasks) for run in runs) == 1:
            return [_reported(run) for run in runs]
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and rarely needed

        with ThreadPoolExecutor(max_workers=plan.how.jobs) as pool:
            futures = [pool.submit(task) for run in runs for task in run.tasks]
            try:
                for future in futures:
                    future.result()
            except KeyboardInterrupt:
                plan.stop.set()
                for connection in chain.from_iterable(backends):
                    connection.close()  # a thread that waits for its child waits no longer
                for future in futures:
                    future.result()
        return [run.report() for run in runs]


def _reported(run: _Run) -> Report:
    for task in run.tasks:
        task()
    return run.report()


def _refuse_equal_names(names: Sequence[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        hint = "give one of them a class attribute `name`"
        raise UsageError(f"two backends are called {', '.join(sorted(twice))}", hint)
