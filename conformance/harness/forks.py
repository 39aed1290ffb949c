"""Tells when every process that was forked for a question has ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from conformance.harness.processes import children, command_line

#: How often it is seen whether a fork still runs, in seconds.
_GLANCE = 0.01


class Forks:
    """The processes of this one that have begun since, and are still the program that it is.

    Orphans among its descendants become its children (see ``child.py``), so a daemon is one too,
    whatever it has closed. A fork that has become another program is not: it may live on.
    """

    def __init__(self) -> None:
        """Watch what is forked from here on."""
        self._before = children(os.getpid()) if _has_children() else set()

    def run_on(self) -> bool:
        """Whether anything still runs that was forked since this object was made."""
        if not _has_children():
            return False
        ours = command_line(os.getpid())
        begun = children(os.getpid()) - self._before
        return bool(ours) and any(command_line(pid) == ours for pid in begun)

    def wait(self) -> None:
        """Return when nothing of that runs any more."""
        while self.run_on():
            time.sleep(_GLANCE)


def _has_children() -> bool:
    """Whether it is worth looking: one call of the system, for most backends never fork."""
    if not hasattr(os, "waitid"):
        return True
    with suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False
