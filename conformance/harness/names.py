"""The names a backend can go by; nothing of a backend is imported to tell."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conformance.errors import BackendError
from conformance.layout import BACKENDS, CHECKOUT, ROOT

#: The group of entry points in which third parties register backends.
GROUP = "conformance.backends"


def bundled() -> tuple[str, ...]:
    """The names of the adapters that come with the kit; each is named like its library."""
    names = [path.stem for path in BACKENDS.glob("*.py") if not path.stem.startswith("_")]
    return tuple(sorted(names, key=lambda name: (name != "numpy", name != "torch", name)))


def installed(name: str) -> bool:
    """Whether the library of the bundled adapter ``name`` can be imported."""
    return importlib.util.find_spec(name) is not None


def default_names() -> list[str]:
    """The bundled backends whose library is installed."""
    return [name for name in bundled() if installed(name)]


def install_line(name: str) -> str:
    """The command that installs the library of the bundled adapter ``name``."""
    what = f"-e '{ROOT}[{name}]'" if CHECKOUT else f"'decoder-conformance[{name}]'"
    return f"python -m pip install {what}"


def known_names() -> list[str]:
    """Bundled names and entry points."""
    return [*bundled(), *sorted(entry.name for entry in entry_points())]


def entry_points() -> Iterable[Any]:
    """The backends that third parties have registered."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return entry_points(group=GROUP)


def check_name(name: str) -> None:
    """Raise BackendError for a name that can't be a backend, with what to do about it."""
    path = Path(name.partition(":")[0])
    if path.suffix == ".py":
        if not path.is_file():
            hint = "give the path of a Python file with a class derived from conformance.Adapter"
            raise BackendError(f"there is no file {path}", hint)
    elif name in bundled():
        if not installed(name):
            hint = f"install it: {install_line(name)}"
            raise BackendError(f"the backend {name} needs {name}, which is not installed", hint)
    elif ":" not in name and name not in known_names():
        raise _unknown(name)


def check_names(names: Iterable[str]) -> None:
    """``check_name`` of each, and BackendError for one that is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BackendError(f"the backend {name} is named twice", "name it once")
        seen.add(name)
        if not name.startswith("fault:"):
            check_name(name)


def _unknown(name: str) -> BackendError:
    from difflib import get_close_matches  # only on the way out

    names = known_names()
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    if Path(f"{name}.py").is_file():
        near = [f"./{name}.py"]
    offer = f"did you mean {', '.join(near)}? " if near else ""
    hint = f"{offer}known: {', '.join(names)}, fault:NAME, FILE.py[:Class], package.module:Class"
    return BackendError(f"there is no backend {name!r}", hint)
