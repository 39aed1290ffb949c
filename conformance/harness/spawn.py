"""Starts and ends a child process. It imports no NumPy: a child is started before the kit itself
imports it, so that both start at the same time.

The child gets two pipes for messages and one that takes everything it prints. It leads a session
of its own, every process it starts inherits a token in its environment, and orphans among them
become its children, or ours where the child is gone and we ``adopt_orphans``. Ending a child ends
them all; where nobody adopts them, one that has left the session, cleared its environment and
outlived the child can't be told from any other.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from conformance.harness.names import check_names
from conformance.harness.processes import (
    become_subreaper,
    children,
    descendants,
    marked,
    resident,
)
from conformance.harness.waiting import wait_readable
from conformance.harness.wording import MOST

#: Every descendant of a child has this variable, with the token of the child.
_MARK = "CONFORMANCE_CHILD"

#: How much of what a child prints is kept, in bytes.
_KEPT = 16 * 1024

#: How often processes are looked for that were started while others were ended.
_ROUNDS = 20

_START = """
import sys
sys.path[:] = sys.argv[5:]
from conformance.harness.child import main
main(*sys.argv[1:5])
"""


#: The children that run, and those of this process that are somebody else's, if we adopt orphans.
_running: set[int] = set()
_others: set[int] | None = None

#: Held while a child is started, which is ours before it is known, or orphans are looked for.
_family = threading.Lock()


def adopt_orphans() -> None:
    """From now on take in what children leave that are gone, where Linux can do that, to end it.

    For a process that starts no other children meanwhile: whatever is there before stays.
    """
    global _others  # noqa: PLW0603 -- it is a state of the process
    if become_subreaper():
        _others = children(os.getpid()) - _running


def spawn_all(names: Iterable[str], memory: int | None, jobs: int = 1) -> dict[str, list[Spawned]]:
    """So many children as ``jobs`` for each of ``names``; faults are answered by the kit itself.

    Raises BackendError, before any is started, for a name that can't be a backend.
    """
    asked = list(names)
    check_names(asked)
    in_children = [name for name in asked if not name.startswith("fault:")]
    return {name: [Spawned(name, memory) for _ in range(jobs)] for name in in_children}


class Spawned:
    """A running child: its process, the ends of its pipes, and what it has printed lately."""

    def __init__(self, backend: str, memory: int | None = None) -> None:
        """Start a child for the backend called ``backend``, with at most ``memory`` MiB of data."""
        questions_in, self.questions = os.pipe()
        self.answers, answers_out = os.pipe()
        printed, printed_in = os.pipe()
        self._token = os.urandom(16).hex()
        # -P: a json.py in the current folder is not ours. -u: what is printed is there at once.
        command = [sys.executable, "-P", "-u", "-c", _START]
        command += [str(questions_in), str(answers_out), str(memory or 0), backend, *_path()]
        try:
            with _family:
                self.process = subprocess.Popen(  # noqa: S603 -- our own interpreter and module
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=printed_in,
                    stderr=printed_in,
                    pass_fds=(questions_in, answers_out),
                    start_new_session=True,
                    env={**os.environ, _MARK: self._token},
                )
                _running.add(self.process.pid)
        except BaseException:
            for end in (self.questions, self.answers, printed):
                os.close(end)
            raise
        finally:
            for end in (questions_in, answers_out, printed_in):
                os.close(end)
        self.memory = memory
        self._killed = self._ended = False
        self._printed: deque[bytes] = deque()
        self._printed_bytes = 0
        self._printing: int | None = printed
        self._lock = threading.Lock()
        self._drain = threading.Thread(target=self._take, args=(printed,), daemon=True)
        self._drain.start()

    def printed_so_far(self) -> int:
        """How many bytes were printed, when those that are there have been taken."""
        deadline = time.monotonic() + 0.5
        while not self._all_taken() and time.monotonic() < deadline:
            time.sleep(0.001)
        return self._printed_bytes

    def printed_since(self, mark: int, lines: int = 5) -> str:
        """The last lines printed after ``mark`` bytes."""
        fresh = self.printed_so_far() - mark
        if fresh <= 0:
            return ""
        text = b"".join(self._printed)[-fresh:].decode("utf-8", "backslashreplace")
        return "\n".join(text.strip().splitlines()[-lines:])[-MOST:]

    def ending(self) -> str:
        """How a child ended that has closed its pipe."""
        try:
            code = self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        if code >= 0:
            return f"exited with code {code}"
        try:
            return f"died of {signal.Signals(-code).name}"
        except ValueError:
            return f"died of signal {-code}"

    def too_large(self) -> bool:
        """Whether the child and all it started hold more memory than they may, as far as is known.

        The child limits itself to so much data; this is what it shares, and has its forks hold.
        """
        if self.memory is None:
            return False
        pid = self.process.pid
        return resident({pid, *descendants(pid)}) > self.memory

    def kill(self) -> None:
        """Kill the child and everything it started; whoever reads its pipes finds them ended."""
        if self._killed:
            return
        self._killed = True
        family = set() if self.process.poll() is not None else descendants(self.process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        _running.discard(self.process.pid)
        mark = f"{_MARK}={self._token}".encode()
        known: set[int] = set()
        for _ in range(_ROUNDS):
            _end_all(family)
            known |= family
            family = marked(mark) - known
            if not family:
                break
        _end_adopted()

    def end(self) -> None:
        """Kill the child and close the pipes; once."""
        if self._ended:
            return
        self._ended = True
        self.kill()
        for end in (self.questions, self.answers):
            with contextlib.suppress(OSError):
                os.close(end)

    def _all_taken(self) -> bool:
        with self._lock:
            return self._printing is None or not wait_readable(self._printing, 0)

    def _take(self, printed: int) -> None:
        """Read all that is printed, so that the child never waits; keep the end of it."""
        kept = 0
        while True:
            if not wait_readable(printed, 3600):
                continue
            with self._lock:  # what is not in the pipe any more is in what is kept
                chunk = os.read(printed, 65536)
                if not chunk:
                    break
                self._printed.append(chunk)
                self._printed_bytes += len(chunk)
                kept += len(chunk)
                while kept - len(self._printed[0]) >= _KEPT:
                    kept -= len(self._printed.popleft())
        self._printing = None
        os.close(printed)


def _path() -> list[str]:
    """The module path of this process, for the child to see the same modules."""
    return [str(Path.cwd()) if entry == "" else entry for entry in sys.path]


def _end_all(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _end_adopted() -> None:
    """End what children have left that are gone, and what becomes ours when that has ended."""
    if _others is None:
        return
    with _family:
        for _ in range(_ROUNDS):
            left = children(os.getpid()) - _running - _others
            if not left:
                return
            _end_all(left)
            for pid in left:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
