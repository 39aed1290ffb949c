"""The derivation of a case in named quantities: what each rule of the reference gave, in order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.model import Case, Operation
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.effects.rules import RULES
from conformance.truth.proof.evaluate import evaluate_case
from conformance.truth.proof.prove import output_of
from conformance.truth.reference import Reference


@dataclass
class Step:
    """One rule: its name in words, the values it gave (balls), and the rules that it used.

    ``of`` names the arguments and parameters of the operation that the rule was given under a name
    of its own: the linear layer knows a ``weight``, which may be ``w_q`` or ``head``.
    """

    name: str
    arguments: dict[str, np.ndarray]
    of: tuple[str, ...] = ()
    value: np.ndarray | None = None
    parts: list[Step] = field(default_factory=list)

    def count(self, name: str) -> int:
        """How often the rule ``name`` is in this step, itself included."""
        return (self.name == name) + sum(part.count(name) for part in self.parts)


def derive(case: Case, operation: Operation) -> dict[str, list[Step]]:
    """The steps of every call of ``case``, by the name of the call; gradients' steps come last.

    An output that no step gave by itself, one of several or of whole numbers, is a step after
    them. Raises Rejected and Impossible as the reference does.
    """
    recorder = _recorder(operation.name)
    with precision():
        results = evaluate_case(recorder, Tape(Balls()), case, output_of(operation))
    calls = dict(zip(case.calls, _split_by_call(recorder.steps, operation.name), strict=True))
    given = {id(value) for steps in calls.values() for value in _values(steps)}
    for (call, output), node in results.items():
        if id(node.value) not in given and case.free is None:
            calls[call].append(Step(output, {}, value=node.value))
    return calls


def _values(steps: Iterable[Step]) -> Iterator[np.ndarray]:
    for step in steps:
        if step.value is not None:
            yield step.value
        yield from _values(step.parts)


def worth_showing(step: Step, operations: Iterable[str]) -> Iterator[Step]:
    """``step`` and the rules that it used, without those that hand on what another one gave.

    Of such a chain the operations are kept, or the outermost where there is none.
    """
    chain = [step]
    while chain[-1].parts and chain[-1].parts[-1].value is chain[-1].value is not None:
        chain.append(chain[-1].parts[-1])
    names = {name.replace("_", " ") for name in operations}
    yield from [each for each in chain if each.name in names] or [step]
    for each in chain:
        handed_on = each is not chain[-1]
        for part in each.parts[:-1] if handed_on else each.parts:
            yield from worth_showing(part, operations)


class _Recorder(Reference):
    """The reference, noting each rule as it is used."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._open: list[list[Step]] = [self.steps]
        self._names: dict[int, str] = {}

    def name_arguments(self, given: Mapping[str, Any]) -> None:
        """Take the names that the operation has for its arguments and parameters."""
        self._names = {}
        for name, value in given.items():
            named = value if isinstance(value, Mapping) else {name: value}
            self._names |= {id(node): key for key, node in named.items()}

    def named(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        """What the operation calls the nodes that a rule was given, where the rule does not.

        The first is left out: it is what the rule works on, and seldom an argument.
        """
        nodes = [(name, node) for name, node in given.items() if isinstance(node, Node)][1:]
        found = ((name, self._names.get(id(node), name)) for name, node in nodes)
        return tuple(known for name, known in found if known != name)


def _recorder(operation: str) -> _Recorder:
    members = {
        name: _noting(name, getattr(Reference, name), operation)
        for name in RULES
        if not name.startswith(("check", "deliver"))
    }
    recorder: _Recorder = type("Recorder", (_Recorder,), members)()
    return recorder


def _noting(name: str, rule: Callable[..., Any], operation: str) -> Callable[..., Any]:
    names = list(inspect.signature(rule).parameters)[1:]

    def noted(self: _Recorder, *positional: Any, **named: Any) -> Any:
        given = {**dict(zip(names, positional, strict=False)), **named}
        values = {key: value.value for key, value in given.items() if isinstance(value, Node)}
        if name == operation and len(self._open) == 1:
            self.name_arguments(given)
        step = Step(name.replace("_", " "), values, self.named(given))
        self._open[-1].append(step)
        self._open.append(step.parts)
        try:
            result = rule(self, *positional, **named)
        finally:
            self._open.pop()
        if isinstance(result, Node):
            step.value = result.value
        return result

    return noted


def _split_by_call(steps: list[Step], operation: str) -> list[list[Step]]:
    """The steps of each call: the operation itself, and what its gradients added after it."""
    calls: list[list[Step]] = []
    for step in steps:
        if step.name == operation.replace("_", " "):
            calls.append([])
        if calls:
            calls[-1].append(step)
    return calls
