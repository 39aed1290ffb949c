"""What runs beside this process, as far as /proc tells; elsewhere nothing is known of it."""

from __future__ import annotations

import contextlib
import os
import sys


def become_subreaper() -> bool:
    """Have the orphans among our descendants become our children; False where nobody can."""
    if sys.platform != "linux":
        return False
    import ctypes

    set_child_subreaper = 36
    return bool(ctypes.CDLL(None).prctl(set_child_subreaper, 1) == 0)


def children(parent: int) -> set[int]:
    """The processes whose parent is ``parent``, those that have ended and are still known too."""
    return _by_parent().get(parent, set())


def descendants(ancestor: int) -> set[int]:
    """The children of a process, their children and so on."""
    below = _by_parent()
    found = list(below.get(ancestor, ()))
    for pid in found:  # it grows meanwhile
        found += below.get(pid, ())
    return set(found)


def marked(mark: bytes) -> set[int]:
    """Processes that have ``mark``, a name with its value, in their environment."""
    return {pid for pid in _all() if mark in _contents(pid, "environ")}


def command_line(pid: int) -> bytes:
    """What a process was started as, which a fork has from its parent; nothing if it has ended."""
    return _contents(pid, "cmdline")


def data_size(pid: int) -> int:
    """The data of a process in MiB, as RLIMIT_DATA counts it; 0 where nothing is known of it."""
    for line in _contents(pid, "status").splitlines():
        if line.startswith(b"VmData:"):
            return int(line.split()[1]) // 1024
    return 0


def resident(pids: set[int]) -> int:
    """The memory of these processes that is not a file's, in MiB; what they share counts once.

    Anonymous mappings that are shared are part of it, which no limit of a process covers.
    """
    kilobytes = 0
    for pid in pids:
        for line in _contents(pid, "smaps_rollup").splitlines():
            if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
                kilobytes += int(line.split()[1])
    return kilobytes // 1024


def _by_parent() -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for pid in _all():
        # After the name, which may have any character in it: state and parent.
        fields = _contents(pid, "stat").rpartition(b")")[2].split()
        if len(fields) > 1:
            found.setdefault(int(fields[1]), set()).add(pid)
    return found


def _all() -> list[int]:
    with contextlib.suppress(OSError):
        # Plain calls: a Path for each of them takes as long as reading it.
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
    return []


def _contents(pid: int, name: str) -> bytes:
    path = f"/proc/{pid}/{name}"
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()
    return b""
