"""A KeyboardInterrupt that nobody pressed is the backend's own doing."""

from __future__ import annotations

import itertools
import signal
import threading

import pytest

import conformance
from conformance.backends.numpy import NumpyBackend
from conformance.harness.interrupts import Interrupts


@pytest.fixture(autouse=True)
def python_s_own():
    """Every test begins with the handler that Python has, and leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    left = signal.signal(signal.SIGINT, before)
    assert left is signal.default_int_handler


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_every_watcher_sees_the_press_until_it_is_closed(order):
    """In whatever order they are closed, and Python's own handler raises in the end."""
    watchers = [Interrupts() for _ in range(3)]
    for closed in order:
        for each in watchers:
            each.pressed = False
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert watchers[closed].pressed
        watchers[closed].close()
        watchers[closed].close()


def test_what_is_raised_is_not_pressed():
    """Nobody has sent a signal."""
    watcher = Interrupts()
    with pytest.raises(KeyboardInterrupt):
        raise KeyboardInterrupt
    assert not watcher.pressed
    watcher.close()


def test_a_handler_of_somebody_else_is_left_alone():
    """It may raise KeyboardInterrupt as well, so whoever pressed can't be told."""

    def own(_number, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, own)
    watcher = Interrupts()
    assert watcher.pressed
    assert signal.getsignal(signal.SIGINT) is own
    watcher.close()
    assert signal.getsignal(signal.SIGINT) is own
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_beside_the_main_thread_nobody_can_press():
    """Python raises there only what is raised there."""
    found = []

    def watch():
        watcher = Interrupts()
        found.append(watcher.pressed)
        watcher.close()

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert found == [False]


class Throws(NumpyBackend):
    """Interrupts itself, as a backend may that catches too much and raises it again."""

    def gelu(self, x):
        raise KeyboardInterrupt


class Other(NumpyBackend):
    name = "other"


def test_the_run_goes_on_after_it_in_this_process():
    """A crash of that question, with its reason; what comes after it is asked."""
    select = ["gelu/pair", "linear/one-vector"]
    report, other = conformance.run([Throws(), Other()], select=select, dtypes=["float64"])
    bad, good = report.verdicts
    assert (bad.verdict, bad.message) == ("crash", "KeyboardInterrupt")
    assert good.verdict == "pass"
    assert other.totals["pass"] == 2


def test_five_of_them_end_an_operation_here_too():
    """As in a child: what always ends so is not asked for ever."""
    (report,) = conformance.run([Throws()], select=["gelu/"], dtypes=["float64"])
    told = [verdict.message for verdict in report.verdicts if verdict.mode == "evaluate"]
    assert told[4] == "KeyboardInterrupt"
    assert told[5] == "not asked: 5 crashes or timeouts of gelu in a row"
