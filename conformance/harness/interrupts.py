"""Tells a KeyboardInterrupt that someone pressed from one that a backend raised itself."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """Watches for SIGINT while it ``watches``; ``pressed`` says whether it may have come.

    Only Python's own handler in the main thread turns SIGINT into KeyboardInterrupt. A handler of
    somebody else (a debugger) may do so unseen, and is left alone.
    """

    def __init__(self) -> None:
        """Watch, if it is possible here, in front of whoever watches already."""
        here = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGINT) if here else signal.SIG_IGN
        known = before is signal.default_int_handler or _watcher(before) is not None
        self.before: Any = before if known else None
        self.watches = known
        self.pressed = callable(before) and not known
        if self.watches:
            signal.signal(signal.SIGINT, self._press)

    def close(self) -> None:
        """Watch no longer; the last one who does puts Python's own handler back."""
        if not self.watches:
            return
        self.watches = False
        handler = signal.getsignal(signal.SIGINT)
        while (watcher := _watcher(handler)) is not None and not watcher.watches:
            handler = watcher.before
        signal.signal(signal.SIGINT, handler)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        self.before(number, frame)


def _watcher(handler: Any) -> Interrupts | None:
    """Whose method ``handler`` is, if it watches."""
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Interrupts) else None
