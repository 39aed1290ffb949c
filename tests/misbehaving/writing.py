"""What adapters that misbehave on the pipes have in common."""

import contextlib
import os
import stat


def write_to_pipes(data):
    """Write ``data`` to every pipe that is open and can be written to, beyond what is printed."""
    for number in range(3, 256):
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                os.write(number, data)
