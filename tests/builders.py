"""Small cases, truths and answers, built by hand for tests of judge, relations and diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np

from conformance.frozen import FrozenTensor, Proven, thaw_output
from conformance.model import Answer, Call, Case, Expectation, Operation, Values
from conformance.specification import load
from conformance.specification.tensors import tensor

OPERATIONS: dict[str, Operation] = load().operations


def case(
    operation: str = "gelu",
    *,
    expectation: Expectation | None = None,
    calls: Mapping[str, Call] | None = None,
    mode: str = "evaluate",
) -> Case:
    """A case of ``operation`` that expects values, of a single call with nothing given."""
    return Case(
        id="family/made-for-a-test",
        title="made for a test",
        operation=operation,
        mode=mode,
        clauses=("SOME-CLAUSE",),
        sources=(),
        calls=dict(calls) if calls else {"": Call(given={})},
        expectation=expectation or Values(),
        dtypes=("float64", "float32"),
    )


def call(upstream: object = None, wrt: Sequence[str] = (), **given: object) -> Call:
    """A call with exact numbers; a Decimal is an attribute."""
    exact = {
        name: value if isinstance(value, Decimal) else tensor(value)
        for name, value in given.items()
    }
    seeds = {} if upstream is None else {"y": tensor(upstream)}
    return Call(given=exact, upstream=seeds, wrt=tuple(wrt))


def proven(
    values: Sequence[str], bound: float | Sequence[float | None] | None, shape=None
) -> Proven:
    """Proven values with the same bound for both dtypes; a bound of None is no verdict."""
    shape = (len(values),) if shape is None else shape
    bounds = tuple(bound) if isinstance(bound, Sequence) else (bound,) * len(values)
    frozen = FrozenTensor(tuple(shape), tuple(values))
    return thaw_output(frozen, {"float64": bounds, "float32": bounds})


def answer(*values: float, dtype: str = "float64", output: str = "y", **more: object) -> Answer:
    """An answer of one output of rank 1."""
    return Answer(outputs={output: np.array(values, dtype=dtype)}, **more)


def steps(case: Case) -> int:
    """How many steps a training takes, 0 where the case has none."""
    counts = (call.given.get("steps", 0) for call in case.calls.values())
    return max(count for count in counts if isinstance(count, int))
