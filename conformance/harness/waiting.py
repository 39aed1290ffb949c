"""Waits for one end of a pipe. ``select.select`` would refuse the numbers of many open files."""

from __future__ import annotations

import select


def wait_readable(end: int, seconds: float) -> bool:
    """Whether ``end`` has something to read, or was closed on the other side, in time."""
    return _wait(end, select.POLLIN, seconds)


def wait_writable(end: int, seconds: float) -> bool:
    """Whether something can be written to ``end``, or nobody reads any more, in time."""
    return _wait(end, select.POLLOUT, seconds)


def _wait(end: int, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(end, event)
    return bool(poll.poll(max(0.0, seconds) * 1000))
