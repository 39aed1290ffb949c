"""Whether a method can be called with what a question gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from conformance.model import Question


def mismatch(method: Callable[..., Any], question: Question, leading: tuple[str, ...]) -> str:
    """Why ``method`` can't take ``leading`` and the arguments of ``question``; empty if it can."""
    signature = _signature(method)
    if signature is None:  # a builtin without a signature: let the call decide
        return ""
    try:
        signature.bind(*leading, **question.arguments)
    except TypeError as error:
        name = getattr(method, "__name__", question.operation)
        asked = ", ".join((*leading, *question.arguments))
        return f"{name}{signature} can't be called with {asked}: {error}"
    return ""


def _signature(method: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a bound method, without self."""
    function = getattr(method, "__func__", None)
    try:
        if function is None:
            return inspect.signature(method)
        return _signature_of_function(function)
    except (TypeError, ValueError):
        return None


@lru_cache(maxsize=256)
def _signature_of_function(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])
