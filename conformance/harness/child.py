"""What runs in the child process: loads one backend, answers questions until its pipe ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from conformance.errors import ConformanceError
from conformance.harness.processes import become_subreaper, data_size

#: What an adapter has no business with. It keeps nobody out who reads the installed files.
_CLOSED = tuple(
    f"conformance.{room}" for room in ("truth", "frozen", "judging", "diagnosis", "spec")
)


class _Closed:
    """An import hook that refuses the rooms of the truth."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name.startswith(_CLOSED):
            raise ImportError(f"{name} is not for adapters: a question comes without its answer")
        return None


def main(questions: str, answers: str, memory: str, backend_name: str) -> None:
    """Serve ``backend_name`` on the two pipes, whose numbers are given as text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    sys.meta_path.insert(0, _Closed())
    from conformance.harness import protocol
    from conformance.harness.wording import tame

    incoming, outgoing = os.fdopen(int(questions), "rb"), int(answers)
    for end in (int(questions), outgoing):  # what the backend starts must not hold them open
        os.set_inheritable(end, False)
    _die_with_parent()
    _limit(int(memory))
    try:
        from conformance.harness.load import described, load

        backend = load(backend_name)
        description = described(backend, backend_name)
        hello = protocol.Hello(
            version=protocol.VERSION,
            name=tame(backend.name),
            description=description,
            reads_bytes=True,
        )
    except ConformanceError as error:
        _send(outgoing, protocol.encode(protocol.Refused(what=error.what, hint=error.hint)))
        return
    _send(outgoing, protocol.encode(hello))
    from conformance.harness.ask import INTERRUPTS_ITSELF, ask
    from conformance.harness.forks import Forks

    asked = os.getpid()
    while line := incoming.readline():
        message = protocol.decode_to_child(line)
        forks = Forks()
        try:
            answer = ask(backend, protocol.question_of(message))
        except KeyboardInterrupt:  # SIGINT is ignored here, so the backend raised it
            answer = INTERRUPTS_ITSELF
        answered = protocol.encode(protocol.answered_message(message.number, answer, as_bytes=True))
        if os.getpid() != asked:  # a fork that came back as well: its answer is one too many
            _send(outgoing, answered)
            os._exit(0)
        if forks.run_on():
            _send(outgoing, answered)
            answered = b""
            forks.wait()
        _send(outgoing, answered + protocol.encode(protocol.Done(number=message.number)))


def _send(outgoing: int, line: bytes) -> None:
    view = memoryview(line)
    try:
        while view:
            view = view[os.write(outgoing, view) :]
    except OSError as error:  # what is printed last is shown with the crash
        sys.exit(f"the backend has closed the pipe that its answers go through: {error.strerror}")


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its parent is gone, however that came about.

    And to make orphans among its descendants its children, for the parent to find them.
    """
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    become_subreaper()


def _limit(memory: int) -> None:
    """At most ``memory`` MiB of data, where the system can limit it; 0 means no limit.

    Raises MemoryError where there is more already: what little is asked for later may find room
    that was left free, or may not.
    """
    if not memory:
        return
    import resource

    size = memory * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    if data_size(os.getpid()) > memory:
        raise MemoryError
