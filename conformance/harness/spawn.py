"""Starts and ends a child process. It imports no NumPy: a child is started before the kit itself
imports it, so that both start at the same time.

The child gets two pipes for messages and one that takes everything it prints. It leads a session
of its own, and every process it starts inherits a token in its environment; ending a child ends
them all, whatever they did to get away.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from conformance.harness.names import check_name

#: Every descendant of a child has this variable, with the token of the child.
_MARK = "CONFORMANCE_CHILD"

#: How much of what a child prints is kept, in bytes.
_KEPT = 16 * 1024

_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from conformance.harness.child import main
main(*sys.argv[2:])
"""


def spawn_all(names: Iterable[str], memory: int | None) -> dict[str, Spawned]:
    """A child for each of ``names`` that runs in one; faults are answered by the kit itself.

    Raises BackendError, before any is started, for a name that can't be a backend.
    """
    wanted = [name for name in names if not name.startswith("fault:")]
    for name in wanted:
        check_name(name)
    return {name: Spawned(name, memory) for name in wanted}


class Spawned:
    """A running child: its process, the ends of its pipes, and what it has printed lately."""

    def __init__(self, backend: str, memory: int | None = None) -> None:
        """Start a child for the backend called ``backend``, with at most ``memory`` MiB of data."""
        questions_in, self.questions = os.pipe()
        self.answers, answers_out = os.pipe()
        printed, printed_in = os.pipe()
        self._token = secrets.token_hex(16)
        command = [sys.executable, "-c", _START, json.dumps(_path())]
        command += [str(questions_in), str(answers_out), str(memory or 0), backend]
        try:
            self.process = subprocess.Popen(  # noqa: S603 -- our own interpreter and module
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed_in,
                stderr=printed_in,
                pass_fds=(questions_in, answers_out),
                start_new_session=True,
                env={**os.environ, _MARK: self._token},
            )
        finally:
            for end in (questions_in, answers_out, printed_in):
                os.close(end)
        self._ended = False
        self._printed: deque[bytes] = deque()
        self.printed_bytes = 0
        self._drain = threading.Thread(target=self._take, args=(printed,), daemon=True)
        self._drain.start()

    def printed_since(self, mark: int, lines: int = 5) -> str:
        """The last lines printed after ``printed_bytes`` was ``mark``."""
        if self.process.poll() is not None:
            self._drain.join(0.5)
        fresh = self.printed_bytes - mark
        if fresh <= 0:
            return ""
        text = b"".join(self._printed)[-fresh:].decode("utf-8", "backslashreplace")
        return "\n".join(text.strip().splitlines()[-lines:])

    def end(self) -> None:
        """Kill the child and everything it started, and close the pipes; once."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for pid in _marked(self._token):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for end in (self.questions, self.answers):
            with contextlib.suppress(OSError):
                os.close(end)

    def _take(self, printed: int) -> None:
        """Read all that is printed, so that the child never waits; keep the end of it."""
        kept = 0
        while chunk := os.read(printed, 65536):
            self._printed.append(chunk)
            self.printed_bytes += len(chunk)
            kept += len(chunk)
            while kept - len(self._printed[0]) >= _KEPT:
                kept -= len(self._printed.popleft())
        os.close(printed)


def _path() -> list[str]:
    """The module path of this process, for the child to see the same modules."""
    return [str(Path.cwd()) if entry == "" else entry for entry in sys.path]


def _marked(token: str) -> list[int]:
    """Processes that have the token in their environment, where /proc tells."""
    found = []
    needle = f"{_MARK}={token}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if needle in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found
