"""What a report says of where it was made: digests of kit and specification, and the machine."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from pathlib import Path

from conformance import __version__
from conformance.layout import BACKENDS, PACKAGE


def kit() -> dict[str, str]:
    """Version of the kit and a digest of its source."""
    sources = [*PACKAGE.rglob("*.py"), *BACKENDS.rglob("*.py")]
    return {"version": __version__, "digest": _digest(set(sources))}


def specification(root: str) -> dict[str, str]:
    """A digest of every file of the specification, its truth included."""
    folder = Path(root)
    files = [path for path in folder.rglob("*") if path.suffix in {".yaml", ".json"}]
    return {"digest": _digest(files)}


def machine() -> dict[str, str]:
    """Where the run took place."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
    }


def _digest(files: Iterable[Path]) -> str:
    """A digest of names and contents, whatever folder they are in."""
    total = hashlib.sha256()
    for path in sorted(files, key=lambda path: (path.parent.name, path.name)):
        total.update(f"{path.parent.name}/{path.name}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]
