"""Whatever a backend does to its process, it has a verdict, and the run goes on."""

from __future__ import annotations

import os
import re
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest

from conformance.errors import BackendError
from conformance.harness import process
from conformance.harness.process import ChildBackend
from conformance.harness.spawn import Spawned
from conformance.model import Question
from tests import running
from tests.running import MISBEHAVING, Trace, eventually, vice

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are looked for in /proc"
)

#: One case that the vice is in, and one after it that it is not in; a run with no other dtype.
FEW = ("--select", "gelu/pair", "--select", "linear/one-vector", "--dtype", "float64")
#: Seconds that a question of a backend that never answers may take here.
SHORT = ("--timeout", "0.5")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    running.own_cache(monkeypatch, tmp_path_factory)


@pytest.fixture
def trace(monkeypatch):
    return Trace(monkeypatch)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path, trace):
    """Runs the command on one vice; nothing of it may be left running, and no stack be shown."""

    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # not everyone has it

    def run(name, *arguments):
        told = running.command(monkeypatch, capsys, tmp_path / name, vice(name), *arguments)
        assert trace.is_gone()
        assert "Traceback" not in told.err
        assert (told.folder / "README.md").is_file() or told.code == 2
        return told

    return run


NO_ANSWER = "what came is no answer: "
TOO_MANY = "answered more numbers than any question asks for: "
GARBAGE = "invalid character (byte 0): b'\\x00\\xff garbage'"

CODES = {"pass": 0, "fail": 1, "error": 1, "crash": 3, "timeout": 3}

#: Vice, verdict on gelu, the first line of its message, further options.
VICES = [
    ("segfaults", "crash", "died of SIGSEGV"),
    ("exits_at_once", "crash", "exited with code 3"),
    ("aborts", "crash", "died of SIGABRT"),
    ("exceeds_memory", "crash", "out of memory: Unable to allocate 8.00 GiB", "--memory", "1024"),
    ("raises_system_exit", "crash", "SystemExit(7)"),
    ("raises_keyboard_interrupt", "crash", "KeyboardInterrupt"),
    ("closes_everything", "crash", "exited with code 1\nit printed last:\nthe backend has closed"),
    ("shares_too_much", "crash", "it holds more than 1024 MiB", "--memory", "1024"),
    ("forks_hold_too_much", "crash", "it holds more than 1024 MiB", "--memory", "1024"),
    ("prints_and_dies", "crash", "died of SIGABRT\nit printed last:\nthe last words"),
    ("loops", "timeout", "no answer within 0.5 s", *SHORT),
    ("sleeps", "timeout", "no answer within 0.5 s", *SHORT),
    ("ignores_sigterm", "timeout", "no answer within 0.5 s", *SHORT),
    ("stops_itself", "timeout", "no answer within 0.5 s", *SHORT),
    ("leaves_a_fork", "timeout", "what it has forked runs on after 0.5 s", *SHORT),
    ("waits_for_its_fork", "timeout", "no answer within 0.5 s", *SHORT),
    ("leaves_a_daemon", "timeout", "what it has forked runs on after 0.5 s", *SHORT),
    ("forks_for_a_while", "pass", ""),
    ("forks_and_both_answer", "error", f"{NO_ANSWER}more than one answer to question 1: "),
    ("fork_holds_the_pipes", "crash", "exited with code 5"),
    ("prints", "pass", ""),
    ("floods_stderr", "pass", ""),
    ("answers_a_gigabyte", "error", f"{TOO_MANY}y has shape [134217728]"),
    ("writes_garbage", "error", f"{NO_ANSWER}JSON is malformed: {GARBAGE}"),
    ("writes_without_end", "error", f"{NO_ANSWER}a line of more than 67108864 bytes"),
    ("answers_another_question", "error",
     f"{NO_ANSWER}an answer to question 999 to question 1"),
    ("answers_twice", "error",
     f"{NO_ANSWER}more than one answer to question 1: b'{{\"type\":\"answered\",\"number\":1,"),
    ("raises_surrogates", "error",
     "rejected valid arguments: ValueError: half of a pair: \\ud800"),
    ("raises_unprintable", "error",
     "rejected valid arguments: Unprintable: (its text can't be shown)"),
    ("raises_ten_megabytes", "fail", "rejected valid arguments: ValueError: long long "),
    ("lies_about_dtype", "fail", "y is float32, not float64"),
    ("lies_about_shape", "fail", "y has shape [1, 2], not [2]"),
    ("writes_into_its_argument", "fail", "changed its input: x"),
    ("writes_through_a_view", "fail", "changed its input: x"),
    ("answers_objects", "fail", "y is object, not float64"),
    ("answers_complex", "fail", "y is complex128, not float64"),
    ("answers_text", "fail", "y is <U32, not float64"),
    ("answers_records", "fail", "y is |V8, not float64"),
    ("answers_truths", "fail", "y is bool, not float64"),
    ("answers_huge_objects", "error", f"{TOO_MANY}y has shape [100000, 100000]"),
    ("answers_one_number", "fail", "y has shape [], not [2]"),
    ("answers_strided", "pass", ""),
    ("answers_big_endian", "pass", ""),
    ("answers_read_only", "pass", ""),
    ("answers_its_own_memory", "pass", ""),
    ("prints_at_import", "pass", ""),
    ("spawns_threads", "pass", ""),
]  # fmt: skip


@pytest.mark.parametrize("row", VICES, ids=[name for name, *_ in VICES])
def test_a_vice_is_one_verdict_and_the_run_goes_on(run, row):
    """The question it is in has its verdict; the next case is judged; nothing is left running."""
    name, verdict, message, *more = row
    told = run(name, *FEW, *more)
    (bad, good) = told.told()
    assert bad[:3] == ("gelu/pair", "float64", verdict)
    assert bad[3].startswith(message) if message else not bad[3]
    assert good == ("linear/one-vector", "float64", "pass", "")
    assert told.code == CODES[verdict]
    assert told.seconds < 10


#: The vices that take no process of their own, and those among them that take a pipe.
HARMLESS = ("answers_", "lies_about_", "raises_", "writes_into_", "writes_through_")
ON_THE_PIPE = ("answers_another_question", "answers_twice")
ODD = [row for row in VICES if row[0].startswith(HARMLESS) and row[0] not in ON_THE_PIPE]


@pytest.mark.parametrize("row", ODD, ids=[name for name, *_ in ODD])
def test_an_odd_answer_is_judged_alike_in_this_process(run, row):
    """Nothing of it depends on the way through a pipe."""
    name, verdict, message, *_ = row
    bad, good = run(name, *FEW, "--in-process").told()
    assert bad[2] == verdict
    assert bad[3].startswith(message) if message else not bad[3]
    assert good[2] == "pass"


GELU = ("--select", "gelu", "--dtype", "float64")
NOT_ASKED = "not asked: 5 crashes or timeouts of gelu in a row"


def messages(told, operation, mode):
    """Verdicts and first lines of the messages of one operation and mode, in the order judged."""
    (report,) = told.reports.values()
    return [
        (found.verdict, found.message.partition("\n")[0])
        for found in report.verdicts
        if (found.operation, found.mode) == (operation, mode)
    ]


def test_after_five_crashes_in_a_row_an_operation_is_not_asked_any_more(run):
    """The rest of it is a crash too, and says that nobody has asked; other operations are."""
    told = run("exits_at_once", *GELU, "--select", "linear/one-vector")
    found = messages(told, "gelu", "evaluate")
    assert len(found) > 6
    assert found[:5] == [("crash", "exited with code 3")] * 5
    assert set(found[5:]) == {("crash", NOT_ASKED)}
    assert messages(told, "linear", "evaluate") == [("pass", "")]
    assert told.code == 3


def test_an_answer_in_between_starts_the_count_again(run):
    """More than five crashes, never five in a row: everything is asked."""
    found = messages(run("dies_on_odd_sizes", *GELU), "gelu", "evaluate")
    assert found.count(("crash", "exited with code 3")) > 5
    assert set(found) == {("crash", "exited with code 3"), ("pass", "")}


def test_timeouts_count_like_crashes(run):
    """Five times the time limit is all that an operation costs which never answers."""
    told = run("sleeps", *GELU, "--timeout", "0.1")
    found = messages(told, "gelu", "evaluate")
    assert found[:5] == [("timeout", "no answer within 0.1 s")] * 5
    assert set(found[5:]) == {("timeout", NOT_ASKED)}
    assert told.seconds < 15


def test_a_child_that_can_t_be_started_again_is_a_crash_of_the_next_question(
    run, tmp_path, monkeypatch
):
    """It was there once; that it is not there any more ends no run."""
    monkeypatch.setenv("STARTED", str(tmp_path / "started"))
    _, next_one = run("starts_once", *FEW).told()
    assert next_one[2] == "crash"
    assert next_one[3].startswith("can't be started again: ")
    assert next_one[3].endswith("starts_once.py can't be started: exited with code 4")


@pytest.mark.parametrize(("ending", "verdict"), [("", "pass"), ("dies", "crash")])
def test_a_program_that_inherits_nothing_is_ended_too(run, monkeypatch, ending, verdict):
    """It has left the session and has no environment: but it is a descendant of the child, or,
    where that is gone, of the kit.
    """
    seconds = f"3600.{os.getpid()}"
    monkeypatch.setenv("SLEEP", seconds)
    monkeypatch.setenv("ENDING", ending)
    told = run("leaves_a_stranger", *FEW)
    assert [found for _, _, found, _ in told.told()] == [verdict, "pass"]

    def sleeping():
        return any(
            seconds.encode() in running.contents(folder / "cmdline")
            for folder in Path("/proc").glob("[0-9]*")
        )

    assert eventually(lambda: not sleeping())


def test_what_a_fork_writes_later_is_an_error_of_the_question_at_hand(run):
    """It can't pass for an answer; the child is started again, and all goes on."""
    first, later, other = run("fork_writes_later", "--select", "gelu/far", *FEW).told()
    assert (first[0], first[2]) == ("gelu/pair", "pass")
    assert (later[0], later[2]) == ("gelu/far", "error")
    assert later[3].startswith(NO_ANSWER)
    assert later[3].endswith("b'late'")
    assert other == ("linear/one-vector", "float64", "pass", "")


def test_two_answers_to_the_last_question_of_a_run_are_an_error(run):
    """Nothing else is asked that could find the second."""
    (bad,) = run("answers_twice", "--select", "gelu/pair", "--dtype", "float64").told()
    assert bad[2] == "error"
    assert bad[3].startswith(f"{NO_ANSWER}more than one answer to question 1: ")


@pytest.mark.parametrize(
    "name", ["raises_surrogates", "raises_unprintable", "raises_ten_megabytes"]
)
def test_a_rejection_counts_whatever_its_text(run, name):
    """Where one is due it passes; the text is shown as far as it can be, and ends."""
    told = run(name, "--select", "residual/one-sequence", "--select", "gelu/pair")
    rejected = messages(told, "residual_add", "evaluate")
    assert rejected == [("pass", "")] * 2
    assert told.code == 1
    assert all(path.stat().st_size < 100_000 for path in told.folder.iterdir())


def test_the_last_lines_printed_are_shown_with_a_failure(run):
    """Five of them, in every report, and made harmless."""
    told = run("prints_and_fails", *FEW)
    bad, _ = told.told()
    lines = [f"step {step} of \x1b[31mnine\x1b[0m <b>" for step in range(4, 9)]
    assert bad[3].split("\n")[1:] == ["it printed last:", *lines]
    assert bad[3].startswith("y is off by ")
    for suffix in ("json", "md", "xml"):
        text = (told.folder / f"prints_and_fails.{suffix}").read_text(encoding="utf-8")
        assert "step 8 of" in text
        assert "\x1b" not in text


def test_what_was_printed_before_a_rejection_is_shown_once(run):
    """Of a valid case that was refused, and of the rejection that does not count beside it."""
    select = ("--select", "residual/one-sequence", "--select", "residual/rank-three")
    told = run("prints_and_rejects", *select, "--dtype", "float64").told()
    assert len(told) == 2
    for _, _, verdict, message in told:
        assert verdict == "fail"
        assert message.count("it printed last:") == 1
        assert message.endswith("it printed last:\nno wish to add")


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("keeps_state", {"gelu/pair", "gelu/far", "gelu/shoulders"}),
        ("depends_on_time", {"gelu/pair"}),
        ("depends_on_order", {"gelu/pair", "gelu/far"}),
        ("depends_on_threads", {"gelu/pair", "gelu/far", "gelu/shoulders"}),
    ],
)
def test_what_is_not_the_same_when_asked_again_is_not_reproducible(run, name, failing):
    """A sample is asked once more in reverse; all of these answers are within their bounds."""
    select = ("--select", "gelu/pair", "--select", "gelu/far", "--select", "gelu/shoulders")
    told = run(name, *select, "--dtype", "float64").told()
    again = "not reproducible: asked again, y came out otherwise"
    assert {case: message for case, _, verdict, message in told if verdict == "fail"} == (
        dict.fromkeys(failing, again)
    )
    assert {verdict for case, _, verdict, _ in told if case not in failing} <= {"pass"}


def test_what_dies_when_asked_again_crashed(run):
    """It is not told as numbers that came out otherwise, and the exit code is that of a crash."""
    told = run("dies_when_asked_again", "--select", "gelu/pair", "--dtype", "float64")
    assert told.told() == [("gelu/pair", "float64", "crash", "asked again: exited with code 9")]
    assert told.code == 3


def test_what_is_too_slow_when_asked_again_is_a_timeout(run, monkeypatch, tmp_path):
    """A right answer that took its time once is not wrong."""
    monkeypatch.setenv("SLOW", "30")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    select = ("--select", "gelu/pair", "--dtype", "float64")
    told = run("slow_when_asked_again", *select, *SHORT)
    slow = ("gelu/pair", "float64", "timeout", "asked again: no answer within 0.5 s")
    assert told.told() == [slow]
    assert told.code == 3


def test_a_failed_rejection_shows_what_was_printed_for_it_and_not_for_its_twin(run):
    """The twin is asked after it, and says something of its own."""
    select = ("--select", "linear/weight-of-rank-one", "--dtype", "float64")
    ((_, _, verdict, message),) = run("prints_its_shapes", *select).told()
    assert verdict == "fail"
    assert message.splitlines()[-1] == "asked (1, 2, 2) (2,)"


def test_a_changed_upstream_gradient_is_a_changed_input(run):
    """The gradient that was given is the kit's as well."""
    told = run("writes_into_upstream", "--select", "gelu/gradients-far", "--dtype", "float64")
    assert told.told()[0][2:] == ("fail", "changed its input: upstream y")


def test_rejections_count_only_beside_an_answer(run):
    """Whoever rejects everything, or nothing, passes no case of a rejection."""
    select = ("--select", "linear/weight-of-rank-one", "--select", "linear/one-vector")
    refusing = run("rejects_everything", *select, "--dtype", "float64").told()
    assert {case: message for case, _, verdict, message in refusing if verdict == "fail"} == {
        "linear/weight-of-rank-one": "does not count: the valid case "
        "linear/two-tokens-bias-free was not answered",
        "linear/one-vector": "rejected valid arguments: Rejected: never",
    }
    welcoming = run("accepts_everything", *select, "--dtype", "float64").told()
    assert {case: message for case, _, verdict, message in welcoming if verdict == "fail"} == {
        "linear/weight-of-rank-one": "accepted what must be rejected (weight-rank)"
    }


# ---------------------------------------------------------------------------- starting and ending


def test_a_backend_that_takes_too_long_to_import_is_told(run, monkeypatch):
    """Exit code 2: nothing was judged."""
    monkeypatch.setattr(process, "START_TIMEOUT", 0.5)
    told = run("slow_to_import", *FEW)
    assert told.seconds < 5
    assert (told.code, told.reports) == (2, {})
    assert (
        told.err
        == f"conformance: {vice('slow_to_import')} can't be started: not ready after 0.5 s\n"
    )


def test_too_little_memory_to_start_in_is_told_as_that(run):
    """The stack of a library that ran out of memory while it was imported says nothing more."""
    told = run("prints", *FEW, "--memory", "10")
    assert (told.code, told.reports) == (2, {})
    assert told.err.splitlines()[1] == "  10 MiB are too little to start in: give it more memory"
    assert "Traceback" not in told.err


def test_a_backend_that_dies_at_import_is_told_with_what_it_printed(run):
    """Its last words may be the reason."""
    told = run("dies_at_import", *FEW)
    assert (told.code, told.reports) == (2, {})
    assert told.err == (
        f"conformance: {vice('dies_at_import')} can't be started: exited with code 9\n"
        "  no device found\n"
    )


QUESTION = Question(
    operation="gelu", mode="evaluate", dtype="float64", arguments={"x": np.zeros(1)}, outputs=("y",)
)


def asking(number):
    return msgspec.structs.replace(QUESTION, arguments={"x": np.full(1, float(number))})


def test_a_question_asked_ahead_is_answered_when_it_is_asked(trace):
    """What is printed belongs to the question that it was printed for, whoever judges meanwhile."""
    first, second, fatal = map(asking, (0, 1, 2))
    with ChildBackend(vice("prints_its_argument")) as backend:
        assert backend.answer(first).outputs["y"].tolist() == [0.0]
        backend.ask_ahead(second)
        time.sleep(0.1)  # it is answered by now, and has printed
        assert backend.printed() == "asked 0.0"
        assert backend.answer(second).outputs["y"].tolist() == pytest.approx([0.8413447460685429])
        assert backend.printed() == "asked 1.0"
        backend.ask_ahead(fatal)
        assert backend.printed() == "asked 1.0"
        crash = backend.answer(fatal)
        assert (crash.status, crash.message) == (
            "crash",
            "exited with code 2\nit printed last:\nasked 2.0",
        )
        backend.ask_ahead(first)  # there is no child to ask; one is started when it is asked
        assert backend.answer(first).status == "outputs"
    assert trace.is_gone()


def test_a_child_that_dies_unasked_is_a_crash_of_the_question_it_does_not_answer(trace):
    """Whether that was sent to it before it died, or could not be sent any more."""
    with ChildBackend(vice("prints_its_argument")) as backend:
        assert backend.answer(asking(3)).status == "outputs"
        time.sleep(0.3)
        late = asking(0)
        backend.ask_ahead(late)
        found = backend.answer(late)
        assert (found.status, found.message) == ("crash", "exited with code 3")
        assert backend.answer(late).status == "outputs"
    assert trace.is_gone()


@pytest.fixture
def sleeping(trace):
    """A child that answers gelu in an hour, and the thread that has asked it."""
    with ChildBackend(vice("sleeps"), timeout=30) as backend, ThreadPoolExecutor(1) as pool:
        yield backend, pool.submit(backend.answer, QUESTION)
    assert trace.is_gone()


def test_a_backend_that_is_closed_lets_nobody_wait(sleeping):
    """The thread that has asked gets a crash at once, and no other child is started."""
    backend, asked = sleeping
    time.sleep(0.2)  # the question is on its way, or soon will be: both must end
    backend.close()
    assert asked.result(timeout=10).status == "crash"
    assert backend.answer(QUESTION).message == "not asked: the backend is closed"


def test_a_backend_can_be_closed_while_it_starts(trace):
    """A child that takes long to import is not waited for."""
    spawned = Spawned(vice("slow_to_import"))
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(ChildBackend, vice("slow_to_import"), spawned=spawned)
        spawned.kill()
        with pytest.raises(BackendError, match="died of SIGKILL"):
            starting.result(timeout=10)
    assert trace.is_gone()


def test_files_beside_an_adapter_hide_no_library(trace, monkeypatch, tmp_path):
    """A user may have a json.py where the command is given."""
    for name in ("json", "signal", "subprocess", "numpy", "conformance"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    with ChildBackend("numpy") as backend:
        assert backend.answer(QUESTION).outputs["y"].tolist() == [0.0]
    assert trace.is_gone()


def test_many_open_files_are_no_obstacle(trace):
    """Pipes with numbers beyond 1024 are read like any other."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with ChildBackend("numpy") as backend:
            assert backend.answer(QUESTION).outputs["y"].tolist() == [0.0]
    finally:
        for each in many:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert trace.is_gone()


def test_every_vice_is_tried():
    """No adapter is written down and then forgotten."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    names = {path.stem for path in MISBEHAVING.glob("*.py")} - {"writing"}
    assert {name for name in names if not re.search(rf"""["']{name}["']""", tests)} == set()
