"""A backend in a child process of its own, with the same methods as any other.

What the child does to itself (a segmentation fault, a hang, garbage on the pipe) is one answer;
then the child is started again and the run goes on.
"""

from __future__ import annotations

import threading
from typing import Self

import msgspec

from conformance.errors import BackendError
from conformance.harness import protocol
from conformance.harness.patience import Patience
from conformance.harness.spawn import Spawned
from conformance.harness.talk import Garbage, Gone, Talk, TooSlow
from conformance.model import Answer, Description, Question
from conformance.model.verdicts import NOT_ASKED, PRINTED

#: How long a child may take to import its libraries, in seconds.
START_TIMEOUT = 300.0


class _Ahead:
    """A question that is sent before it is asked."""

    def __init__(self, question: Question, printed_before: str) -> None:
        self.question = question
        self.printed_before = printed_before
        self.trouble: Gone | TooSlow | None = None


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
        self._talk = None if spawned is None else Talk(spawned, timeout)
        self._ahead: _Ahead | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._patience = Patience()
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
            return self._patience.not_asked(question.operation)
        with self._lock:
            answer = self._ask(question)
        self._patience.note(question.operation, answer)
        return answer

    def ask_ahead(self, question: Question) -> None:
        """Send ``question`` to a child that waits for one; ``answer`` is called with it next."""
        with self._lock:
            if self._talk is None or self._closed or self.gave_up(question.operation):
                return
            self._ahead = _Ahead(question, self._talk.printed())
            try:
                self._talk.ask(question)
            except (Gone, TooSlow) as trouble:  # it comes out when the question is asked
                self._ahead.trouble = trouble

    def gave_up(self, operation: str) -> bool:
        """Whether ``operation`` crashed or hung so often that it is not asked any more."""
        return self._patience.ended(operation)

    def recall(self, operation: str, answer: Answer) -> None:
        """Count an answer of an earlier run among those of ``operation``, as if it came now."""
        self._patience.note(operation, answer)

    def printed(self) -> str:
        """The last lines that the child printed from the question it answered last."""
        if self._ahead is not None:
            return self._ahead.printed_before
        return "" if self._talk is None else self._talk.printed()

    def close(self) -> None:
        """End the child and all it started, for good.

        A thread that waits for an answer gets a crash instead, and no other child is started.
        """
        self._closed = True
        talk = self._talk
        if talk is not None:
            talk.child.kill()  # first, so that nobody waits
        with self._lock:
            self._end()

    # ------------------------------------------------------------------------------------ inside

    def _ask(self, question: Question) -> Answer:
        if self._closed:
            return Answer(status="crash", message=f"{NOT_ASKED}: the backend is closed")
        if self._talk is None:
            try:
                self._start()
            except BackendError as error:
                return Answer(status="crash", message=f"can't be started again: {error.what}")
        assert self._talk is not None
        lost = False
        try:
            answer = self._exchange(self._talk, question)
        except (Gone, TooSlow, Garbage) as trouble:
            answer, lost = self._told(self._talk, trouble), True
        if answer.status == "outputs":
            return answer
        printed = self._talk.printed()
        if printed:
            message = f"{answer.message}\n{PRINTED}\n{printed}"
            answer = msgspec.structs.replace(answer, message=message)
        if lost or answer.status == "crash":
            self._end()
        return answer

    def _exchange(self, talk: Talk, question: Question) -> Answer:
        """The answer to ``question``, which may have been sent already."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            talk.ask(question)
        elif ahead.trouble is not None:
            raise ahead.trouble
        else:
            assert ahead.question is question, "another question was asked ahead"
        return talk.answer()

    def _told(self, talk: Talk, trouble: Gone | TooSlow | Garbage) -> Answer:
        match trouble:
            case Gone():
                return Answer(status="crash", message=str(trouble) or talk.child.ending())
            case TooSlow():
                return Answer(status="timeout", message=str(trouble))
            case Garbage():
                return Answer(status="error", message=f"what came is no answer: {trouble}")

    def _start(self) -> protocol.Hello:
        """Start the child unless it runs already, and wait until it is ready."""
        self._talk = self._talk or Talk(Spawned(self._asked, self._memory), self._timeout)
        child = self._talk.child
        if self._closed:  # meanwhile, by another thread that has seen no child to kill
            child.kill()
        try:
            message = self._talk.hello(START_TIMEOUT)
        except (Gone, TooSlow, Garbage) as trouble:
            why = str(trouble)  # Garbage says it
            if isinstance(trouble, TooSlow):
                why = f"not ready after {START_TIMEOUT:g} s"
            elif isinstance(trouble, Gone):
                why = child.ending()
            printed = self._talk.printed()
            self._end()
            if self._memory and "MemoryError" in printed:  # its stack says no more than that
                printed = f"{self._memory} MiB are too little to start in: give it more memory"
            raise BackendError(f"{self._asked} can't be started: {why}", printed) from None
        if isinstance(message, protocol.Hello) and message.version == protocol.VERSION:
            return message
        self._end()
        if isinstance(message, protocol.Refused):
            raise BackendError(message.what, message.hint)
        spoken = f"version {message.version} of the protocol, not {protocol.VERSION}"
        raise BackendError(f"{self._asked} speaks {spoken}")

    def _end(self) -> None:
        self._ahead = None
        if self._talk is not None:
            self._talk.child.end()
            self._talk = None
