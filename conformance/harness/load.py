"""From the name of a backend to the backend.

A name is one of ``numpy``, ``torch``, ``jax`` (the adapters that come with the kit), a file
``mine.py`` or ``mine.py:Class``, ``package.module:Class``, or the name of an entry point in the
group ``conformance.backends``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from conformance.errors import BackendError, ConformanceError
from conformance.harness.names import bundled, check_name, entry_points
from conformance.harness.wording import tame, told
from conformance.layout import BACKENDS
from conformance.model import Backend, Description

#: Where the bundled adapters are, in a checkout and in the wheel.
_BUNDLED = "conformance.backends"


def load(name: str) -> Backend:
    """The backend called ``name``.

    Raises BackendError, which says what is wrong with the name, the file or the class.
    """
    check_name(name)
    if name in bundled():
        module = _guard(lambda: importlib.import_module(f"{_BUNDLED}.{name}"), name)
        return _construct(_only(_adapters(module), name), name, name)
    path, _, cls = name.partition(":")
    if path.endswith(".py"):
        return _construct(_from_file(Path(path), cls), name, Path(path).stem)
    if ":" in name:
        return _construct(_from_module(path, cls), name, path.rpartition(".")[2])
    entry = next(entry for entry in entry_points() if entry.name == name)
    return _construct(_guard(entry.load, name), name, name)


def described(backend: Backend, asked: str) -> Description:
    """What ``backend`` says of itself, fit for the report, before anything is asked of it.

    Raises BackendError where it can't say, or where what it says is no Description.
    """
    return msgspec.structs.replace(_said(backend, asked), source=_source(backend))


def _said(backend: Backend, asked: str) -> Description:
    said = _guard(backend.describe, asked)
    if not isinstance(said, Description):
        kind = type(said).__name__
        raise BackendError(f"{asked}: describe() returned {kind}, not conformance.Description")
    if isinstance(said.dtypes, str):
        raise BackendError(
            f"{asked}: dtypes is the text {tame(said.dtypes)!r}, not a tuple of names",
            f"write dtypes = ({tame(said.dtypes)!r},)",
        )
    try:
        checked = msgspec.convert(msgspec.to_builtins(said, enc_hook=_text), Description)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise BackendError(f"{asked} does not describe itself in text: {tame(error)}") from None
    return Description(
        name=tame(checked.name),
        language=tame(checked.language),
        versions={tame(name): tame(version) for name, version in checked.versions.items()},
        device=tame(checked.device),
        dtypes=_tame_all(checked.dtypes),
        operations=_tame_all(checked.operations),
    )


def _text(value: Any) -> str:
    """Text of a class of its own, as the version of PyTorch is."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no text")


def _source(backend: Backend) -> str:
    """A digest of the file that has the class, and of those beside it that it imports.

    Nothing where there is no file to read, as for a class that was typed in.
    """
    with suppress(TypeError, OSError, SyntaxError, ValueError):
        total = hashlib.sha256()
        files = [Path(inspect.getfile(type(backend))).resolve()]
        for path in files:  # it grows meanwhile
            contents = path.read_bytes()
            total.update(contents)
            files += [each for each in _imported_beside(path, contents) if each not in files]
        return total.hexdigest()[:16]
    return ""


def _imported_beside(path: Path, contents: bytes) -> Iterator[Path]:
    """The files in the folder of ``path`` that its ``contents`` import, in order."""
    names: list[str] = []
    for node in ast.walk(ast.parse(contents)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level <= 1:
            module = [node.module] if node.module else []
            names += module + [".".join([*module, alias.name]) for alias in node.names]
    for name in names:
        stem = path.parent.joinpath(*name.split("."))
        for found in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
            if found.is_file():
                yield found


def _tame_all(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(tame(text) for text in texts)


def _from_file(path: Path, cls: str) -> Any:
    if path.resolve().parent == BACKENDS:  # a bundled adapter is part of a package
        return _from_module(f"{_BUNDLED}.{path.stem}", cls)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # last, for what lies beside the file and isn't installed
    module_name = f"conformance_backend_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None  # the file exists and ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    loader = spec.loader
    _guard(lambda: loader.exec_module(module), str(path))
    return _choose(module, cls, str(path))


def _from_module(module_name: str, cls: str) -> Any:
    module = _guard(lambda: _imported(module_name), module_name)
    return _choose(module, cls, module_name)


def _imported(module_name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # last: what is installed is not hidden by what is here
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not error.name or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and imports another that isn't
        hint = "modules are looked for in the current folder and among what is installed"
        raise BackendError(f"there is no module {error.name!r}", hint) from None


def _choose(module: ModuleType, cls: str, where: str) -> Any:
    if not cls:
        return _only(_adapters(module), where)
    found = getattr(module, cls, None)
    if found is None:
        from difflib import get_close_matches  # only on the way out

        classes = [name for name, value in vars(module).items() if inspect.isclass(value)]
        near = get_close_matches(cls, classes, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else f"it has {', '.join(classes)}"
        raise BackendError(f"{where} has no class {cls!r}", hint)
    return found


def _adapters(module: ModuleType) -> list[type[Any]]:
    """The classes defined in ``module`` itself that can answer questions."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and callable(getattr(value, "answer", None))
        and callable(getattr(value, "describe", None))
    ]


def _only(found: list[type[Any]], where: str) -> Any:
    if not found:
        hint = "define class MyBackend(conformance.Adapter) with a method an operation"
        raise BackendError(f"{where} defines no adapter", hint)
    if len(found) > 1:
        names = ", ".join(cls.__name__ for cls in found)
        hint = f"name one, as in {where}:{found[0].__name__}"
        raise BackendError(f"{where} defines {len(found)} adapters: {names}", hint)
    return found[0]


def _construct(cls: Any, asked: str, default_name: str) -> Backend:
    """The instance, under the name its own class gives, or else the name of its file."""
    backend = _guard(cls, asked) if inspect.isclass(cls) else cls
    if not (callable(getattr(backend, "answer", None)) and hasattr(backend, "describe")):
        hint = "derive it from conformance.Adapter, or give it describe() and answer(question)"
        raise BackendError(f"{asked} is no backend: it has no answer() or describe()", hint)
    backend.name = tame(own_name(backend) or default_name)
    _said(backend, asked)  # a backend that can't is refused while its file can be named
    checked: Backend = backend
    return checked


def own_name(backend: Any) -> Any:
    """The name that the backend or its own class gives; one that is inherited is another's."""
    own = {**vars(type(backend)), **getattr(backend, "__dict__", {})}
    return backend.name if "name" in own else None


def _guard(action: Any, where: str) -> Any:
    """Run code of the adapter; its exception becomes an error that names file and line."""
    try:
        return action()
    except (ConformanceError, MemoryError):
        raise  # too little memory is no mistake of the adapter, wherever it shows
    except SyntaxError as error:
        place = f"{error.filename or where}:{error.lineno or 0}"
        raise BackendError(f"{place}: syntax error: {error.msg}") from None
    except (Exception, SystemExit) as error:
        place = _raised_at(error)
        hint = f"raised at {place}" if place else ""
        raise BackendError(f"{where} can't be loaded: {told(error)}", hint) from None


def _raised_at(error: BaseException) -> str:
    """File and line that raised, beyond this module and the import system; empty if none is."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file != __file__ and not file.startswith("<frozen"):
            place = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
