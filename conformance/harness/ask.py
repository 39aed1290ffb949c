"""Asks a backend one question, so that nothing it does reaches the caller's arrays or stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import numpy as np

from conformance.harness.protocol import DtypeName
from conformance.harness.wording import tame, told
from conformance.model import Answer, Backend, Question, Status

#: More numbers than any question asks for. Written out, they fit into one message.
MOST_NUMBERS = 2**21

_STATUSES = frozenset(get_args(Status))
_DTYPES = frozenset(get_args(DtypeName))


def ask(backend: Backend, question: Question) -> Answer:
    """The answer of ``backend``. Its exceptions are errors; a SystemExit is a crash.

    The backend gets copies. What it writes into them is found by comparing with the originals, to
    the bit, and named in ``changed``. The outputs are copies too, in the byte order of this
    machine; what has no dtype of the protocol (objects, text, complex numbers) is an error.
    """
    given = _copy(question)
    try:
        answer = backend.answer(given)
    except KeyboardInterrupt:
        raise
    except MemoryError as error:
        return Answer(status="crash", message=f"out of memory: {tame(error)}")
    except SystemExit as error:
        return Answer(status="crash", message=f"SystemExit: {tame(error.code)}")
    except BaseException as error:
        return Answer(status="error", message=f"answer() raised {told(error)}")
    wrong = _form(answer) or _names(answer.outputs, question) or _arrays(answer.outputs)
    if wrong:
        return Answer(status="error", message=wrong)
    changed = [*_changed(question.arguments, given.arguments)]
    changed += [f"upstream {name}" for name in _changed(question.upstream, given.upstream)]
    return Answer(
        status=answer.status,
        # What is kept must not alias what the backend may write into at its next call.
        outputs={
            name: np.array(value, dtype=value.dtype.newbyteorder("="))
            for name, value in answer.outputs.items()
        },
        kind=None if answer.kind is None else tame(answer.kind),
        message=tame(answer.message),
        changed=tuple(changed),
    )


def _form(answer: Any) -> str:
    """What is wrong with what ``answer()`` returned; only a backend without Adapter errs here."""
    if not isinstance(answer, Answer):
        return f"answer() returned {type(answer).__name__}, not conformance.Answer"
    if not isinstance(answer.status, str) or answer.status not in _STATUSES:
        return f"answer() returned the status {tame(answer.status)!r}"
    if not isinstance(answer.outputs, Mapping):
        return f"answer() returned {type(answer.outputs).__name__} for outputs, not a dict"
    return ""


def _names(outputs: Mapping[str, Any], question: Question) -> str:
    asked = question.outputs if question.mode == "evaluate" else question.wrt
    strangers = ", ".join(tame(name) for name in outputs if name not in asked)
    return f"answer() returned names that are not asked for: {strangers}" if strangers else ""


def _arrays(outputs: Mapping[str, Any]) -> str:
    for name, value in outputs.items():
        if not isinstance(value, np.ndarray):
            return f"{name} is {type(value).__name__}, not numpy.ndarray"
        if value.dtype.name not in _DTYPES:
            return f"{name} is an array of {tame(value.dtype)}, not of real numbers"
    if sum(value.size for value in outputs.values()) > MOST_NUMBERS:
        shapes = ", ".join(
            f"{name} has shape {list(value.shape)}" for name, value in outputs.items()
        )
        return f"answered more numbers than any question asks for: {shapes}"
    return ""


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
        left = after.get(name)
        if isinstance(value, Mapping):
            inside = _changed(value, left) if isinstance(left, Mapping) else [""]
            names += [f"{name}.{inner}" if inner else name for inner in inside]
        elif isinstance(value, np.ndarray) and not _same(value, left):
            names.append(name)
    return names


def _same(before: np.ndarray, after: Any) -> bool:
    """Equal to the bit; a backend may have taken the array out of the question altogether."""
    return (
        isinstance(after, np.ndarray)
        and before.shape == after.shape
        and before.tobytes() == after.tobytes()
    )
