"""Asks a backend one question, so that nothing it does reaches the caller's arrays or stack."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args

import msgspec
import numpy as np

from conformance.harness.arrays import blank, number_name
from conformance.harness.wording import legible, tame, told
from conformance.model import MOST_NUMBERS, Answer, Backend, Layout, Question, Status
from conformance.questions.strides import laid_out, of_place

_STATUSES = frozenset(get_args(Status))

#: The answer of a backend that raised KeyboardInterrupt when nobody had pressed anything.
INTERRUPTS_ITSELF = Answer(status="crash", message="KeyboardInterrupt")


def ask(backend: Backend, question: Question) -> Answer:
    """The answer of ``backend``. Its exceptions are errors; a SystemExit is a crash.

    A KeyboardInterrupt is raised here too: whoever asks knows whether it came from the keyboard.

    The backend gets copies, in the layout of the question. What it writes into them is found by
    comparing with the originals, to the bit, and named in ``changed``. The outputs are copies too,
    in the byte order of this machine; of what has no numbers (objects, text, complex) dtype and
    shape are kept.
    """
    given = _copy(question)
    try:
        answer = backend.answer(given)
    except KeyboardInterrupt:
        raise
    except MemoryError as error:
        return Answer(
            status="crash", message=": ".join(filter(None, ("out of memory", tame(error))))
        )
    except SystemExit as error:
        return Answer(status="crash", message=f"SystemExit({_code(error)})")
    except BaseException as error:
        return Answer(status="error", message=f"answer() raised {told(error)}")
    wrong = _form(answer) or _arrays(answer.outputs) or _names(answer.outputs, question)
    if wrong:
        return Answer(status="error", message=wrong)
    changed = [*map(tame, answer.changed), *_changed(question.arguments, given.arguments)]
    changed += [f"upstream {name}" for name in _changed(question.upstream, given.upstream)]
    return Answer(
        status=answer.status,
        # What is kept must not alias what the backend may write into at its next call.
        outputs={name: _own(value) for name, value in answer.outputs.items()},
        kind=None if answer.kind is None else tame(answer.kind),
        message=tame(answer.message),
        legible=answer.legible and legible(answer.message),
        changed=tuple(dict.fromkeys(changed)),
    )


def _form(answer: Any) -> str:
    """What is wrong with what ``answer()`` returned; only a backend without Adapter errs here."""
    if not isinstance(answer, Answer):
        return f"answer() returned {type(answer).__name__}, not conformance.Answer"
    if not isinstance(answer.status, str) or answer.status not in _STATUSES:
        return f"answer() returned the status {tame(answer.status)!r}"
    if not isinstance(answer.outputs, Mapping):
        return f"answer() returned {type(answer.outputs).__name__} for outputs, not a dict"
    if not isinstance(answer.changed, tuple) or not all(isinstance(n, str) for n in answer.changed):
        return "answer() returned something else than a tuple of names for changed"
    return ""


def _names(outputs: Mapping[str, Any], question: Question) -> str:
    asked = question.outputs if question.mode == "evaluate" else question.wrt
    strangers = ", ".join(tame(name) for name in outputs if not _is_asked(name, asked))
    return f"answer() returned names that are not asked for: {strangers}" if strangers else ""


def _is_asked(name: Any, asked: Collection[str]) -> bool:
    """One of many outputs is asked for by the name that they have in common: ``shapes.head``."""
    return name in asked or (isinstance(name, str) and name.partition(".")[0] in asked)


def _arrays(outputs: Mapping[str, Any]) -> str:
    for name, value in outputs.items():
        if not isinstance(value, np.ndarray):
            return f"{name} is {type(value).__name__}, not numpy.ndarray"
    if sum(value.size for value in outputs.values()) > MOST_NUMBERS:
        shapes = ", ".join(
            f"{name} has shape {list(value.shape)}" for name, value in outputs.items()
        )
        return f"answered more numbers than any question asks for: {shapes}"
    return ""


def _own(value: np.ndarray) -> np.ndarray:
    if number_name(value.dtype):
        return np.array(value, dtype=value.dtype.newbyteorder("="))
    # Records, and the numbers of other libraries, are so many bytes each.
    dtype = np.dtype(value.dtype.str) if value.dtype.kind == "V" else value.dtype
    return blank(dtype, value.shape)


def _code(error: SystemExit) -> str:
    plain = isinstance(error.code, int | str | None)
    return tame(repr(error.code)) if plain else type(error.code).__name__


def _copy(question: Question) -> Question:
    return msgspec.structs.replace(
        question,
        arguments=_copied(question.arguments, question.layout),
        upstream=_copied(question.upstream, question.layout, first=1),
    )


def _copied(values: Mapping[str, Any], layout: Layout, first: int = 0) -> dict[str, Any]:
    return {
        name: laid_out(value, of_place(layout, place))
        if isinstance(value, np.ndarray)
        else _copied(value, layout)
        if isinstance(value, Mapping)
        else value
        for place, (name, value) in enumerate(values.items(), first)
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
