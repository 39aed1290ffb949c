"""What the kit asks through: a backend in this process, or behind the pipe of a child."""

from __future__ import annotations

from typing import Protocol

from conformance.harness.ask import INTERRUPTS_ITSELF, ask
from conformance.harness.interrupts import Interrupts
from conformance.harness.load import described, own_name
from conformance.harness.patience import Patience
from conformance.harness.wording import tame
from conformance.model import Answer, Backend, Description, Question


class Connection(Protocol):
    """A backend that is safe to ask: it never raises, and what it is given is not written to."""

    name: str

    def describe(self) -> Description:
        """What the backend says of itself."""
        ...

    def answer(self, question: Question) -> Answer:
        """The answer to one question, whatever happens."""
        ...

    def ask_ahead(self, question: Question) -> None:
        """Let the backend begin on the question that it will be asked next, if it can.

        Meanwhile its last answer is judged. The next call of ``answer`` is for this object.
        """
        ...

    def printed(self) -> str:
        """What the backend printed last, of the question it answered last, if anyone knows."""
        ...

    def gave_up(self, operation: str) -> bool:
        """Whether ``operation`` crashed or hung so often that it is not asked any more."""
        ...

    def recall(self, operation: str, answer: Answer) -> None:
        """Count an answer of an earlier run among those of ``operation``, as if it came now."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


class InProcess:
    """A backend in this process: for objects, for debuggers, and inside the child itself."""

    def __init__(self, backend: Backend) -> None:
        """Raises BackendError where the backend can't describe itself."""
        self._backend = backend
        self.name = tame(own_name(backend) or type(backend).__name__)
        self._description = described(backend, self.name)
        self._patience = Patience()
        self._interrupts = Interrupts()

    def describe(self) -> Description:
        return self._description

    def answer(self, question: Question) -> Answer:
        if self.gave_up(question.operation):
            return self._patience.not_asked(question.operation)
        try:
            answer = ask(self._backend, question)
        except KeyboardInterrupt:
            if self._interrupts.pressed:
                raise
            answer = INTERRUPTS_ITSELF
        self._patience.note(question.operation, answer)
        return answer

    def ask_ahead(self, question: Question) -> None:
        pass  # it answers where the kit judges

    def printed(self) -> str:
        return ""  # it prints where the kit prints

    def gave_up(self, operation: str) -> bool:
        return self._patience.ended(operation)

    def recall(self, operation: str, answer: Answer) -> None:
        self._patience.note(operation, answer)

    def close(self) -> None:
        self._interrupts.close()
