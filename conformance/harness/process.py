"""A backend in a child process of its own, with the same two methods as any other.

What the child does to itself (a segmentation fault, a hang, garbage on the pipe) is one answer;
then the child is started again and the run goes on.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Self

import msgspec

from conformance.errors import BackendError
from conformance.harness import protocol
from conformance.harness.spawn import Spawned
from conformance.harness.waiting import wait_readable, wait_writable
from conformance.harness.wording import tame
from conformance.model import Answer, Description, Question

#: After so many crashes or timeouts in a row, the rest of an operation is not asked any more.
IN_A_ROW = 5

#: How long a child may take to import its libraries, in seconds.
START_TIMEOUT = 300.0

#: How often it is seen whether a child lives that says nothing: a fork may hold its pipe open.
_GLANCE = 0.2

#: How much of a line that is no message is shown, in bytes.
_SHOWN = 80


class _Gone(Exception):
    """The child is dead, or has closed its pipe."""


class _TooSlow(Exception):
    """Nothing came within the time limit."""


class ChildBackend:
    """The backend called ``asked``, behind a pipe."""

    def __init__(
        self,
        asked: str,
        *,
        timeout: float = 60.0,
        memory: int | None = None,
        spawned: Spawned | None = None,
    ) -> None:
        """Start the child, or take the one that was ``spawned`` already.

        ``timeout`` is per question in seconds, ``memory`` in MiB. Raises BackendError with what
        the child says where it can't load the backend.
        """
        self._asked = asked
        self._timeout = timeout
        self._memory = memory
        self._child: Spawned | None = spawned
        self._number = 0
        self._rest = b""
        self._mark = 0
        self._lock = threading.Lock()
        self._closed = False
        self._in_a_row: Counter[str] = Counter()
        hello = self._start()
        self.name = hello.name
        self._description = hello.description

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def describe(self) -> Description:
        """What the backend said of itself when the child started."""
        return self._description

    def answer(self, question: Question) -> Answer:
        """The child's answer; a crash, timeout or error where none came."""
        if self.gave_up(question.operation):
            message = f"not asked: {IN_A_ROW} crashes or timeouts of {question.operation} in a row"
            return Answer(status="crash", message=message)
        with self._lock:
            answer = self._ask(question)
        if answer.status in {"crash", "timeout"}:
            self._in_a_row[question.operation] += 1
        else:
            self._in_a_row[question.operation] = 0
        return answer

    def gave_up(self, operation: str) -> bool:
        """Whether the last ``IN_A_ROW`` questions of ``operation`` all crashed or hung."""
        return self._in_a_row[operation] >= IN_A_ROW

    def printed(self) -> str:
        """The last lines that the child printed since it was asked the latest question."""
        return "" if self._child is None else self._child.printed_since(self._mark)

    def close(self) -> None:
        """End the child and all it started, for good.

        A thread that waits for an answer gets a crash instead, and no other child is started.
        """
        self._closed = True
        child = self._child
        if child is not None:
            child.kill()  # first, so that nobody waits
        with self._lock:
            self._end()

    # ------------------------------------------------------------------------------------ inside

    def _ask(self, question: Question) -> Answer:
        if self._closed:
            return Answer(status="crash", message="not asked: the backend is closed")
        if self._child is None:
            try:
                self._start()
            except BackendError as error:
                return Answer(status="crash", message=f"can't be started again: {error.what}")
        assert self._child is not None
        self._number += 1
        self._mark = self._child.printed_bytes
        try:
            self._send(protocol.encode(protocol.ask_message(self._number, question)))
            answer = self._receive_answer()
        except _Gone:
            answer = Answer(status="crash", message=self._child.ending())
        except _TooSlow:
            answer = Answer(status="timeout", message=f"no answer within {self._timeout:g} s")
        except (ValueError, msgspec.MsgspecError) as error:
            answer = Answer(status="error", message=f"what came is no answer: {error}")
            self._end()
        if answer.status == "outputs":
            return answer
        printed = self._child.printed_since(self._mark) if self._child else ""
        if printed:
            message = f"{answer.message}\nit printed last:\n{printed}"
            answer = msgspec.structs.replace(answer, message=message)
        if answer.status in {"crash", "timeout"}:
            self._end()
        return answer

    def _start(self) -> protocol.Hello:
        """Start the child unless it runs already, and wait until it is ready."""
        self._child = self._child or Spawned(self._asked, self._memory)
        if self._closed:  # meanwhile, by another thread that has seen no child to kill
            self._child.kill()
        self._rest = b""
        try:
            message, _ = self._receive(time.monotonic() + START_TIMEOUT)
        except (_Gone, _TooSlow, ValueError, msgspec.MsgspecError) as error:
            printed = self._child.printed_since(0)
            slow = isinstance(error, _TooSlow)
            why = f"not ready after {START_TIMEOUT:g} s" if slow else self._child.ending()
            self._end()
            if self._memory and "MemoryError" in printed:  # its stack says no more than that
                printed = f"{self._memory} MiB are too little to start in: give it more memory"
            raise BackendError(f"{self._asked} can't be started: {why}", printed) from None
        if isinstance(message, protocol.Hello) and message.version == protocol.VERSION:
            return message
        self._end()
        if isinstance(message, protocol.Refused):
            raise BackendError(message.what, message.hint)
        if isinstance(message, protocol.Hello):
            spoken = f"version {message.version} of the protocol, not {protocol.VERSION}"
            raise BackendError(f"{self._asked} speaks {spoken}")
        raise BackendError(f"{self._asked} does not begin with a hello")

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def _receive_answer(self) -> Answer:
        deadline = time.monotonic() + self._timeout
        message, _ = self._receive(deadline)
        if not isinstance(message, protocol.Answered):
            raise ValueError(f"{type(message).__name__} instead of an answer")  # noqa: TRY004
        if message.number != self._number:
            numbers = f"an answer to question {message.number} to question {self._number}"
            raise ValueError(numbers)
        last, line = self._receive(deadline)
        if last != protocol.Done(number=self._number):
            raise ValueError(f"more than one answer to question {self._number}: {line[:_SHOWN]!r}")
        answer = protocol.answer_of(message)
        return msgspec.structs.replace(answer, message=tame(answer.message))

    def _receive(self, deadline: float) -> tuple[protocol.FromChild, bytes]:
        line = self._line(deadline)
        try:
            return protocol.decode_from_child(line), line
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError(f"{error}: {line[:_SHOWN]!r}") from None

    def _send(self, line: bytes) -> None:
        """Write a message, while the child may be too dead or too busy to read it."""
        assert self._child is not None
        end, view = self._child.questions, memoryview(line)
        os.set_blocking(end, False)
        deadline = time.monotonic() + self._timeout
        while view:
            self._await(wait_writable, end, deadline)
            try:
                view = view[os.write(end, view) :]
            except (BrokenPipeError, ConnectionResetError):
                raise _Gone from None
            except BlockingIOError:
                continue

    def _line(self, deadline: float) -> bytes:
        """The next line from the child.

        Raises _Gone, _TooSlow, and ValueError for a line that no honest answer is as long as.
        """
        assert self._child is not None
        parts = [self._rest]
        size = len(self._rest)
        while b"\n" not in parts[-1]:
            if size > protocol.LARGEST:
                raise ValueError(f"a line of more than {protocol.LARGEST} bytes")
            self._await(wait_readable, self._child.answers, deadline)
            chunk = os.read(self._child.answers, 1 << 20)
            if not chunk:
                raise _Gone
            parts.append(chunk)
            size += len(chunk)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _await(self, wait: Callable[[int, float], bool], end: int, deadline: float) -> None:
        """Return when ``end`` is ready. Raises _Gone for a dead child, _TooSlow for a late one."""
        assert self._child is not None
        while not wait(end, min(_GLANCE, deadline - time.monotonic())):
            if self._child.process.poll() is not None and not wait(end, 0):
                raise _Gone
            if time.monotonic() >= deadline:
                raise _TooSlow
