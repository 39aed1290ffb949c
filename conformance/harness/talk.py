"""The messages to and from one running child, each within its time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec

from conformance.harness import protocol
from conformance.harness.spawn import Spawned
from conformance.harness.waiting import wait_readable, wait_writable
from conformance.harness.wording import tame
from conformance.model import Answer, Question

#: How often it is seen whether a child lives that says nothing: a fork may hold its pipe open.
_GLANCE = 0.2

#: How much is read at once: what a pipe holds. Room for more would be mapped, and unmapped, anew.
_CHUNK = 64 * 1024

#: How much of a line that is no message is shown, in bytes.
_SHOWN = 80


class Gone(Exception):
    """The child is dead, or has closed its pipe, or must not go on: then its text says why."""


class TooSlow(Exception):
    """Nothing came, or could be said, within the time limit."""


class Garbage(Exception):
    """What came is no message, or not the one that is due."""


class Talk:
    """A conversation: ``hello`` once, then ``ask`` and ``answer`` in turn, with ``timeout`` each.

    ``printed`` tells what the child printed since the last ``ask``.
    """

    def __init__(self, child: Spawned, timeout: float) -> None:
        self.child = child
        self._timeout = timeout
        self._number = 0
        self._mark = 0
        self._as_bytes = False
        self._rest = b""
        os.set_blocking(child.questions, False)

    def hello(self, timeout: float) -> protocol.Hello | protocol.Refused:
        """The first message of the child. Raises Gone, TooSlow and Garbage."""
        message, line = self._receive(time.monotonic() + timeout)
        if isinstance(message, protocol.Hello | protocol.Refused):
            self._as_bytes = isinstance(message, protocol.Hello) and message.reads_bytes
            return message
        raise Garbage(f"it does not begin with a hello, but with {line[:_SHOWN]!r}")

    def ask(self, question: Question) -> None:
        """Send ``question``. Raises Gone and TooSlow."""
        self._number += 1
        self._mark = self.child.printed_so_far()
        message = protocol.ask_message(self._number, question, as_bytes=self._as_bytes)
        self._send(protocol.encode(message))

    def answer(self) -> Answer:
        """The answer to what was asked, if it is the only one. Raises Gone, TooSlow and Garbage."""
        deadline = time.monotonic() + self._timeout
        message, _ = self._receive(deadline)
        if not isinstance(message, protocol.Answered):
            raise Garbage(f"{type(message).__name__} instead of an answer")
        if message.number != self._number:
            raise Garbage(f"an answer to question {message.number} to question {self._number}")
        try:
            last, line = self._receive(deadline)
        except TooSlow:
            raise TooSlow(f"what it has forked runs on after {self._timeout:g} s") from None
        if last != protocol.Done(number=self._number):
            raise Garbage(f"more than one answer to question {self._number}: {line[:_SHOWN]!r}")
        try:
            answer = protocol.answer_of(message)
        except (ValueError, msgspec.ValidationError) as error:
            raise Garbage(str(error)) from None
        return msgspec.structs.replace(answer, message=tame(answer.message))

    def printed(self) -> str:
        """The last lines that the child printed since it was asked, or since its start."""
        return self.child.printed_since(self._mark)

    # ------------------------------------------------------------------------------------ inside

    def _receive(self, deadline: float) -> tuple[protocol.FromChild, bytes]:
        line = self._line(deadline)
        try:
            return protocol.decode_from_child(line), line
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Garbage(f"{error}: {line[:_SHOWN]!r}") from None

    def _send(self, line: bytes) -> None:
        """Write a message, while the child may be too dead or too busy to read it."""
        view = memoryview(line)
        deadline = time.monotonic() + self._timeout
        while view:
            try:
                view = view[os.write(self.child.questions, view) :]
            except (BrokenPipeError, ConnectionResetError):
                raise Gone from None
            except BlockingIOError:
                self._await(wait_writable, self.child.questions, deadline)

    def _line(self, deadline: float) -> bytes:
        """The next line from the child, no longer than any honest answer."""
        parts = [self._rest]
        size = len(self._rest)
        while b"\n" not in parts[-1]:
            if size > protocol.LARGEST:
                raise Garbage(f"a line of more than {protocol.LARGEST} bytes")
            self._await(wait_readable, self.child.answers, deadline)
            chunk = os.read(self.child.answers, _CHUNK)
            if not chunk:
                raise Gone
            parts.append(chunk)
            size += len(chunk)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _await(self, wait: Callable[[int, float], bool], end: int, deadline: float) -> None:
        """Return when ``end`` is ready. Raises Gone for a dead child, TooSlow for a late one."""
        while not wait(end, min(_GLANCE, deadline - time.monotonic())):
            if self.child.process.poll() is not None and not wait(end, 0):
                raise Gone
            if self.child.too_large():
                raise Gone(f"it holds more than {self.child.memory} MiB")
            if time.monotonic() >= deadline:
                raise TooSlow(f"no answer within {self._timeout:g} s")
