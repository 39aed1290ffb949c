"""Tells a KeyboardInterrupt that someone pressed from one that a backend raised itself."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """Notices SIGINT within a ``with``; ``pressed`` says whether it may have come.

    Only Python's own handler in the main thread turns SIGINT into KeyboardInterrupt. A handler of
    somebody else (a debugger) may do so unseen, and is left alone.
    """

    def __init__(self) -> None:
        here = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGINT) if here else signal.SIG_IGN
        self._ours = handler is signal.default_int_handler
        self.pressed = callable(handler) and not self._ours

    def __enter__(self) -> Interrupts:
        if self._ours:
            signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        signal.default_int_handler(number, frame)
