"""Keeps what was read, typed, in the user's cache folder, by the digest of the files it is from.

Reading YAML exactly takes a hundred times longer than decoding the nouns it gave. The digest
covers the files and the code that reads them, so nothing stale is ever taken; a folder that can't
be written, or a file that can't be decoded, only costs the reading. Each kind of thing has a room,
a folder of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from conformance.layout import PACKAGE, cache_folder

Typed = TypeVar("Typed", bound=msgspec.Struct)

#: The room of specifications, and how many of them are kept.
_ROOM = "specification"
_MOST = 8

#: The bytes of the checksum that a kept file begins with: parts of it are decoded later.
_SUM = hashlib.sha256().digest_size


def digest(root: Path) -> str:
    """A digest of every YAML file under ``root``, and of the code that reads them."""
    total = hashlib.sha256(_code() + root.name.encode() + b"\0")
    _add(total, root, _yaml(root))
    return total.hexdigest()[:32]


def digest_of_file(path: Path) -> str:
    """A digest of one file, and of the code that reads. Raises OSError."""
    return hashlib.sha256(_code() + path.name.encode() + b"\0" + path.read_bytes()).hexdigest()[:32]


@lru_cache(maxsize=1)
def _code() -> bytes:
    """A digest of the code that reads; what is loaded of it no longer changes."""
    total = hashlib.sha256()
    folders = ("model", "specification", "frozen")
    _add(total, PACKAGE, [path for each in folders for path in (PACKAGE / each).glob("*.py")])
    return total.digest()


def _yaml(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):  # in half the time of Path.rglob
        yield from (Path(folder, name) for name in names if name.endswith((".yaml", ".yml")))


def _add(total: hashlib._Hash, root: Path, files: Iterable[Path]) -> None:
    """Add the names and contents of files under ``root``."""
    above = root.as_posix()
    for path in sorted(files, key=str):
        total.update(path.as_posix().removeprefix(above).encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())


def read(key: str, kind: type[Typed], room: str = _ROOM) -> Typed | None:
    """What was kept under ``key``, or None where it isn't there whole."""
    try:
        kept = memoryview(_path(room, key).read_bytes())
        if hashlib.sha256(kept[_SUM:]).digest() != kept[:_SUM]:
            return None
        return msgspec.msgpack.decode(kept[_SUM:], type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def write(key: str, value: msgspec.Struct, room: str = _ROOM, most: int = _MOST) -> None:
    """Keep ``value`` under ``key``, if the folder can be written. Raises what encoding raises.

    Of more than ``most`` in the room, those least recently written go.
    """
    path = _path(room, key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        data = msgspec.msgpack.encode(value)
        beside = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
        beside.write_bytes(hashlib.sha256(data).digest() + data)
        beside.replace(path)
        kept = sorted(path.parent.glob("*.msgpack"), key=os.path.getmtime, reverse=True)
        for old in kept[most:]:
            old.unlink()


def _path(room: str, key: str) -> Path:
    return cache_folder(room) / f"{key}.msgpack"
