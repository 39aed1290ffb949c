"""Tells when every process that was forked for a question has ended."""

from __future__ import annotations

import os

from conformance.harness.waiting import wait_readable


class Forks:
    """A pipe whose one end every fork holds open, however it was forked, until it ends.

    Forks of forks hold it too, in whatever session they are. A program that is started, which is a
    fork that becomes something else, does not: the end is closed there.
    """

    def __init__(self) -> None:
        """Watch what is forked from here on."""
        self._ended, self._held = os.pipe()
        os.set_blocking(self._held, False)  # who writes to whatever is open must not hang here

    def run_on(self) -> bool:
        """Whether anything still runs that was forked since this object was made."""
        os.close(self._held)
        if wait_readable(self._ended, 0):  # nobody writes: every other end is closed
            os.close(self._ended)
            return False
        return True

    def wait(self) -> None:
        """Return when nothing of that runs any more."""
        os.read(self._ended, 1)
        os.close(self._ended)
