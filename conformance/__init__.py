"""Proves of any implementation of a transformer decoder which rules of its specification it keeps.

The names below are what adapters and programs rely on. They are imported when first used, so that
``import conformance`` loads no NumPy and none of the frameworks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from conformance.errors import ConformanceError, Rejected
from conformance.layout import CHECKOUT, ROOT, cache_folder

if CHECKOUT:
    # `conformance.backends` is a plain package of the wheel; in a checkout it lies beside us.
    __path__.append(str(ROOT))

if TYPE_CHECKING:
    from conformance.harness.adapter import Adapter
    from conformance.model import Answer, Backend, Description, Question, Report, Verdict
    from conformance.running.options import Options
    from conformance.running.runner import run

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "Answer",
    "Backend",
    "ConformanceError",
    "Description",
    "Options",
    "Question",
    "Rejected",
    "Report",
    "Verdict",
    "cache_folder",
    "run",
]

_HOMES = {
    "Adapter": "conformance.harness.adapter",
    "Answer": "conformance.model",
    "Backend": "conformance.model",
    "Description": "conformance.model",
    "Options": "conformance.running.options",
    "Question": "conformance.model",
    "Report": "conformance.model",
    "Verdict": "conformance.model",
    "run": "conformance.running.runner",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
