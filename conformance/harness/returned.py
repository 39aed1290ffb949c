"""What an implementation returned, as an answer: named arrays of NumPy, or what came instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from conformance.harness.wording import told
from conformance.model import Answer, Question


def collect(question: Question, result: Any, to_numpy: Callable[[Any], Any]) -> Answer:
    """The returned arrays by name, or an error that says what came instead.

    ``to_numpy`` reads an array of the library.
    """
    if question.mode == "evaluate" and len(question.outputs) == 1:
        alone = isinstance(result, Mapping) and question.outputs[0] in result
        result = result if alone else {question.outputs[0]: result}
    wanted = question.outputs if question.mode == "evaluate" else question.wrt
    if not isinstance(result, Mapping):
        names = ", ".join(wanted)
        return _wrong(question, f"returned {_kind(result)}, not a dict of {names}")
    if question.mode == "vjp":
        result = _unfolded(result)
    strange = _strange(question, result, wanted)
    if strange:
        return _wrong(question, strange)
    outputs: dict[str, np.ndarray] = {}
    for name, value in _each(result, wanted):
        if value is None and question.mode == "vjp":
            continue  # an absent gradient; the judge misses what it needs
        try:
            array = _array(value, to_numpy)
        except Exception as error:
            detail = f"{name}: {_kind(value)} is not an array: {told(error)}"
            return _not_arrays(question, detail)
        if not isinstance(array, np.ndarray):
            return _not_arrays(question, f"{name} is {_kind(array)}, not an array")
        outputs[name] = array
    return Answer(outputs=outputs)


def _strange(question: Question, result: Mapping[str, Any], wanted: tuple[str, ...]) -> str:
    """What is wrong with the names of ``result``; empty if nothing is.

    Gradients of other arguments may be beside those asked for, and other outputs beside all of
    those.
    """
    missing = [name for name in wanted if name not in result]
    strangers = set(result) - set(wanted)
    if question.mode == "vjp":
        strangers -= set(_unfolded(question.arguments))
    if not strangers or (question.mode == "evaluate" and not missing):
        return ""
    names = ", ".join(sorted(map(str, strangers)))
    if question.mode == "evaluate":
        return f"returned {names}, but not {', '.join(missing)}"
    return f"returned names that are not asked for: {names}"


def _array(value: Any, to_numpy: Callable[[Any], Any]) -> Any:
    """What was returned as a NumPy array; whole numbers may come as Python has them."""
    if isinstance(value, np.ndarray):
        return value
    whole = isinstance(value, list | tuple) and all(type(item) is int for item in value)
    if whole or type(value) is int:
        return np.asarray(value, dtype=_whole_dtype(value))
    array = to_numpy(value)
    return np.asarray(array) if isinstance(array, np.generic) else array


def _whole_dtype(value: Any) -> type[np.integer[Any]]:
    """int64, or uint64 for what is beyond it, such as 64 random bits."""
    largest = max(value, default=0) if isinstance(value, list | tuple) else value
    return np.int64 if largest <= np.iinfo(np.int64).max else np.uint64


def _unfolded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments or their gradients by name, the parameters among them by their own names."""
    named: dict[str, Any] = {}
    for name, value in values.items():
        named |= value if isinstance(value, Mapping) else {name: value}
    return named


def _each(result: Mapping[str, Any], wanted: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The results asked for, one by one: many that have one name are ``name.inner`` each."""
    for name in wanted:
        value = result.get(name)
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", item) for inner, item in value.items())
        elif name in result:
            yield name, value


def _not_arrays(question: Question, detail: str) -> Answer:
    return _wrong(question, f"{detail}; return arrays that to_numpy turns into numpy.ndarray")


def _wrong(question: Question, detail: str) -> Answer:
    suffix = "_vjp" if question.mode == "vjp" else ""
    return Answer(status="error", message=f"{question.operation}{suffix}: {detail}")


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
