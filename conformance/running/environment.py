"""What a report says of where it was made: digests of kit and specification, and the machine."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance import __version__
from conformance.layout import BACKENDS, PACKAGE


def kit() -> dict[str, str]:
    """Version of the kit and a digest of its source."""
    # In a wheel the adapters lie inside the package, in a checkout beside it.
    sources = {f"conformance/backends/{name}": path for name, path in _under(BACKENDS, ".py")}
    sources |= {f"conformance/{name}": path for name, path in _under(PACKAGE, ".py")}
    return {"version": __version__, "digest": _digest(sources)}


def specification(root: str) -> dict[str, str]:
    """A digest of every file of the specification, its truth included."""
    return {"digest": _digest(dict(_under(Path(root), ".yaml", ".json")))}


def machine() -> dict[str, str]:
    """Where the run took place."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
    }


def _under(folder: Path, *endings: str) -> Iterator[tuple[str, Path]]:
    """The files in ``folder`` and below whose names end so, by their paths from there."""
    for path in folder.rglob("*"):
        if path.suffix in endings:
            yield path.relative_to(folder).as_posix(), path


def _digest(files: Mapping[str, Path]) -> str:
    """A digest of the names and contents of ``files``, in whatever order they come."""
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\0".encode())
        total.update(hashlib.sha256(files[name].read_bytes()).digest())
    return total.hexdigest()[:16]
