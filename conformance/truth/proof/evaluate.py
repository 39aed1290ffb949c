"""Asks the reference, or a fault, what a case or a question asks of a backend."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from conformance.model import Case, FromOutput, Mode, Parameters, Question, Tensor
from conformance.questions import array
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.reverse import adjoints
from conformance.truth.arithmetic.tape import Tape, Whole
from conformance.truth.reference import Reference

#: Results by call and output name; for ``vjp`` the output is the argument differentiated.
Results: TypeAlias = dict[tuple[str, str], Node]

#: The output name that every operation of one output uses when the reference is called.
Outputs: TypeAlias = dict[str, Node]


#: Dtypes of arguments that are no numbers to calculate with.
_WHOLE = ("int64", "int32", "bool")


class Impossible(Exception):
    """The rule done wrong can't be carried out here (shapes that don't fit)."""


def evaluate_case(reference: Reference, tape: Tape, case: Case, output: str) -> Results:
    """Every result of every call of ``case``; ``output`` names the operation's output.

    Raises Rejected as the reference does, and Impossible.
    """
    results: Results = {}
    for name, call in case.calls.items():
        arguments = {key: _exact(tape, value, results) for key, value in call.given.items()}
        upstream = {key: tape.leaf(value) for key, value in call.upstream.items()}
        found = evaluate(
            reference, tape, case.operation, case.mode, arguments, upstream, call.wrt, output
        )
        results.update(
            {(name, key): node for key, node in found.items() if _asked(key, call.outputs)}
        )
    return results


def evaluate_question(reference: Reference, tape: Tape, question: Question) -> Outputs:
    """The results that ``question`` asks for, from the very numbers it carries.

    Raises Rejected as the reference does, and Impossible.
    """
    arguments = {key: _given(tape, value) for key, value in question.arguments.items()}
    upstream = {key: tape.floats(value) for key, value in question.upstream.items()}
    output = next(iter(question.outputs or question.upstream))
    found = evaluate(
        reference,
        tape,
        question.operation,
        question.mode,
        arguments,
        upstream,
        question.wrt,
        output,
    )
    return {key: node for key, node in found.items() if _asked(key, question.outputs)}


def evaluate(
    reference: Reference,
    tape: Tape,
    operation: str,
    mode: Mode,
    arguments: Mapping[str, Any],
    upstream: Mapping[str, Node],
    wrt: tuple[str, ...],
    output: str,
) -> Outputs:
    """The outputs of an operation, or its gradients; an absent gradient has no entry."""
    try:
        y = getattr(reference, operation)(**arguments)
        if mode == "evaluate":
            results = _results(tape, y if isinstance(y, Mapping) else {output: y})
            return reference.deliver(results, arguments)
        seed = upstream[output]
        if seed.shape != y.shape:
            raise Impossible(f"an output of shape {y.shape} for an upstream of {seed.shape}")
        found = adjoints(y, seed)
        named = by_name(arguments)
        due = {name: found[id(named[name])] for name in wrt if id(named[name]) in found}
        return reference.deliver(due, arguments)
    except (ValueError, IndexError) as error:
        raise Impossible(str(error)) from None


def _results(tape: Tape, returned: Mapping[str, Any]) -> Outputs:
    """Every result as a node: what has names of its own as ``name.inner``."""
    found: Outputs = {}
    for name, value in returned.items():
        if isinstance(value, Mapping):
            inner = _results(tape, value)
            found |= {f"{name}.{key}": node for key, node in inner.items()}
        elif isinstance(value, Node):
            found[name] = value
        else:
            numbers = np.asarray(value)
            whole = numbers.dtype.kind in "iu"
            found[name] = Whole(tape, numbers) if whole else tape.floats(numbers)
    return found


def _asked(name: str, outputs: tuple[str, ...]) -> bool:
    return not outputs or name in outputs or name.partition(".")[0] in outputs


def by_name(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument by its name, and every parameter by its own."""
    named: dict[str, Any] = {}
    for name, value in arguments.items():
        named |= value if isinstance(value, Mapping) else {name: value}
    return named


def _exact(tape: Tape, value: Any, results: Results) -> Any:
    if isinstance(value, Tensor):
        return array(value, "float64") if value.dtype in _WHOLE else tape.leaf(value)
    if isinstance(value, Parameters):
        return {name: tape.leaf(item) for name, item in value.tensors.items()}
    if isinstance(value, FromOutput):
        return results[value.call, value.output]
    if isinstance(value, Decimal):
        return tape.leaf(Tensor(shape=(), data=(value,)))
    return value


def _given(tape: Tape, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tape.floats(value) if value.dtype.kind == "f" else value
    if isinstance(value, dict):
        return {name: _given(tape, item) for name, item in value.items()}
    if isinstance(value, float):
        return tape.floats(np.array(value))
    return value
