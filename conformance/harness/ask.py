"""Asks a backend one question, so that nothing it does reaches the caller's arrays or stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from conformance.model import Answer, Backend, Question


def ask(backend: Backend, question: Question) -> Answer:
    """The answer of ``backend``. Its exceptions are errors; a SystemExit is a crash.

    The backend gets copies. What it writes into them is found by comparing with the originals, to
    the bit, and named in ``changed``.
    """
    given = _copy(question)
    try:
        answer = backend.answer(given)
    except KeyboardInterrupt:
        raise
    except MemoryError as error:
        return Answer(status="crash", message=f"out of memory: {error}")
    except SystemExit as error:
        return Answer(status="crash", message=f"SystemExit({error.code!r})")
    except BaseException as error:
        return Answer(status="error", message=f"answer() raised {type(error).__name__}: {error}")
    if not isinstance(answer, Answer):
        kind = type(answer).__name__
        return Answer(status="error", message=f"answer() returned {kind}, not conformance.Answer")
    strays = [name for name, value in answer.outputs.items() if not isinstance(value, np.ndarray)]
    if strays:
        kind = type(answer.outputs[strays[0]]).__name__
        return Answer(status="error", message=f"{strays[0]} is {kind}, not numpy.ndarray")
    changed = [*_changed(question.arguments, given.arguments)]
    changed += [f"upstream {name}" for name in _changed(question.upstream, given.upstream)]
    # What is kept must not alias what the backend may write into at its next call.
    outputs = {name: np.array(value) for name, value in answer.outputs.items()}
    return msgspec.structs.replace(answer, outputs=outputs, changed=tuple(changed))


def _copy(question: Question) -> Question:
    return msgspec.structs.replace(
        question,
        arguments=_copied(question.arguments),
        upstream=_copied(question.upstream),
    )


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.copy()
        if isinstance(value, np.ndarray)
        else _copied(value)
        if isinstance(value, Mapping)
        else value
        for name, value in values.items()
    }


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = []
    for name, value in before.items():
        if isinstance(value, Mapping):
            names += [f"{name}.{inner}" for inner in _changed(value, after[name])]
        elif isinstance(value, np.ndarray) and (
            value.shape != after[name].shape or value.tobytes() != after[name].tobytes()
        ):
            names.append(name)
    return names
