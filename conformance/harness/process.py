"""A backend in a child process of its own, with the same two methods as any other.

What the child does to itself (a segmentation fault, a hang, garbage on the pipe) is one answer;
then the child is started again and the run goes on.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections import Counter
from typing import Self

import msgspec

from conformance.errors import BackendError
from conformance.harness import protocol
from conformance.harness.spawn import Spawned
from conformance.model import Answer, Description, Question

#: After so many crashes or timeouts in a row, the rest of an operation is not asked any more.
IN_A_ROW = 5

#: How long a child may take to import its libraries, in seconds.
START_TIMEOUT = 300.0


class _Gone(Exception):
    """The child has closed its pipe."""


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
        if self._child is None:
            return ""
        time.sleep(0.02)  # what it printed before it answered may still be in the pipe
        return self._child.printed_since(self._mark)

    def close(self) -> None:
        """End the child and all it started."""
        if self._child is not None:
            with contextlib.suppress(OSError):
                os.write(self._child.questions, protocol.encode(protocol.Stop()))
            self._child.end()
            self._child = None

    # ------------------------------------------------------------------------------------ inside

    def _ask(self, question: Question) -> Answer:
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
            answer = Answer(status="crash", message=self._cause_of_death())
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
        self._rest = b""
        try:
            message = protocol.decode_from_child(self._line(START_TIMEOUT))
        except (_Gone, _TooSlow, ValueError, msgspec.MsgspecError) as error:
            printed = self._child.printed_since(0)
            slow = isinstance(error, _TooSlow)
            why = f"not ready after {START_TIMEOUT:g} s" if slow else self._cause_of_death()
            self._end()
            raise BackendError(f"{self._asked} can't be started: {why}", printed) from None
        if isinstance(message, protocol.Hello) and message.version == protocol.VERSION:
            return message
        self._end()
        if isinstance(message, protocol.Refused):
            raise BackendError(message.what, message.hint)
        raise BackendError(f"{self._asked} speaks another version of the protocol: {message}")

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def _cause_of_death(self) -> str:
        assert self._child is not None
        try:
            code = self._child.process.wait(2.0)
        except Exception:  # it has closed its pipe and lives on
            return "closed its pipe"
        if code >= 0:
            return f"exited with code {code}"
        try:
            return f"died of {signal.Signals(-code).name}"
        except ValueError:
            return f"died of signal {-code}"

    def _receive_answer(self) -> Answer:
        line = self._line(self._timeout)
        message = protocol.decode_from_child(line)
        if not isinstance(message, protocol.Answered):
            raise ValueError(f"{type(message).__name__} instead of an answer")  # noqa: TRY004
        if message.number != self._number:
            numbers = f"an answer to question {message.number} to question {self._number}"
            raise ValueError(numbers)
        return protocol.answer_of(message)

    def _send(self, line: bytes) -> None:
        """Write a message, while the child may be too dead or too busy to read it."""
        assert self._child is not None
        end, view = self._child.questions, memoryview(line)
        os.set_blocking(end, False)
        deadline = time.monotonic() + self._timeout
        while view:
            _, writable, _ = select.select([], [end], [], max(0.0, deadline - time.monotonic()))
            if not writable:
                raise _TooSlow
            try:
                view = view[os.write(end, view) :]
            except (BrokenPipeError, ConnectionResetError):
                raise _Gone from None
            except BlockingIOError:
                continue

    def _line(self, timeout: float) -> bytes:
        """The next line from the child.

        Raises _Gone, _TooSlow, and ValueError for a line that no honest answer is as long as.
        """
        assert self._child is not None
        deadline = time.monotonic() + timeout
        parts = [self._rest]
        size = len(self._rest)
        while b"\n" not in parts[-1]:
            if size > protocol.LARGEST:
                raise ValueError(f"a line of more than {protocol.LARGEST} bytes")
            remaining = deadline - time.monotonic()
            readable, _, _ = select.select([self._child.answers], [], [], max(0.0, remaining))
            if not readable:
                raise _TooSlow
            chunk = os.read(self._child.answers, 1 << 20)
            if not chunk:
                raise _Gone
            parts.append(chunk)
            size += len(chunk)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line
