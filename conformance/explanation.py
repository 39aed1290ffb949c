"""``conformance explain``: how a case comes to its values, and what known mistakes would give."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance import judge
from conformance.diagnose import Failure, diagnose
from conformance.errors import Rejected
from conformance.frozen import CaseTruth, Truth, dotted
from conformance.harness.connection import Connection
from conformance.listing import find_case, heading
from conformance.model import (
    Answer,
    Case,
    Operation,
    Question,
    Rejection,
    Relations,
    Undefined,
    Values,
)
from conformance.questions import question
from conformance.report.text import failure_text
from conformance.specification import Specification
from conformance.truth.arithmetic.balls import NotProven, decimal
from conformance.truth.checking.freeze import freeze_case, thaw
from conformance.truth.derivation import Step, derive, worth_showing
from conformance.truth.diagnosis.trials import concerned
from conformance.truth.effects.kills import SEPARATES, Effects
from conformance.truth.effects.misread import as_read
from conformance.truth.faults import Fault, catalogue
from conformance.truth.proof.evaluate import Impossible
from conformance.truth.proof.prove import Proof, prove, prove_values

#: Digits shown of a quantity, and elements shown of a tensor, before the rest is left out.
_DIGITS = 12
_ELEMENTS = 12

#: Where a derivation has more lines, its results are shown alone.
_LINES = 400

#: Outputs shown of what a known mistake would give.
_OUTPUTS = 3

#: Products of a linear layer are written out up to so many outputs, where there are no more than
#: so many layers.
_PRODUCTS = 8
_LAYERS = 2


def explain(
    case_id: str, specification: Specification, backend: Connection | None = None
) -> Iterator[str]:
    """The lines of the explanation; with ``backend`` its answers stand beside.

    Raises UsageError where there is no such case.
    """
    case = find_case(case_id, specification)
    operation = specification.operations[case.operation]
    yield from heading(case, specification)
    if isinstance(case.expectation, Rejection | Undefined):
        yield from _rejection(case, operation)
    else:
        yield from _derivation(case, operation, specification.operations)
    if backend is not None:
        yield from _answers(case, specification, backend)
    yield from _mistakes(case, operation)


# ------------------------------------------------------------------------------- derivation


def _rejection(case: Case, operation: Operation) -> Iterator[str]:
    due = case.expectation
    try:
        prove_values(case, operation)
    except Rejected as rejected:
        yield f"  rejected as {rejected.kind}: {rejected.message}"
    else:
        assert isinstance(due, Undefined)
        yield f"  {due.output} is 0/0 or infinite: it has no value"


def _derivation(
    case: Case, operation: Operation, operations: Mapping[str, Operation]
) -> Iterator[str]:
    for call, steps in derive(case, operation).items():
        if call:
            yield f"  call {call}"
        in_full = sum(step.count("linear") for step in steps) <= _LAYERS
        shown = {id(each) for step in steps for each in worth_showing(step, operations)}
        lines = [line for step in steps for line in _step(step, 1, shown, in_full=in_full)]
        if len(lines) > _LINES:
            results = [line for line in lines if not line.startswith("    ")]
            yield f"  {len(lines) - len(results)} quantities on the way are left out"
            lines = results
        yield from lines
        yield ""


def _step(step: Step, depth: int, shown: Container[int], *, in_full: bool) -> Iterator[str]:
    """A rule after the rules it used: what it gave, and ``in_full`` how sums of products did."""
    for part in step.parts:
        yield from _step(part, depth + 1, shown, in_full=in_full)
    if step.value is None:
        return
    if id(step) in shown:
        of = f" ({', '.join(step.of)})" if step.of else ""
        yield f"{'  ' * depth}{step.name}{of} = {_tensor(step.value)}"
    for line in _products(step) if in_full else ():
        yield f"{'  ' * depth}  {line}"


def _products(step: Step) -> Iterable[str]:
    """The products and sums of the linear layer; each position's part of its gradients."""
    given = step.arguments
    if step.name == "product" and "weight" in given:
        return _sums(given["x"], given["weight"])
    if step.name == "weight gradient":
        x, g = _rows(given["x"]), _rows(given["g"])
        parts = (np.asarray(np.outer(a, b), dtype=object) for a, b in zip(x, g, strict=True))
        return _positions(parts)
    if step.name == "bias gradient":
        return _positions(_rows(given["g"]))
    return ()


def _sums(x: np.ndarray, weight: np.ndarray) -> Iterator[str]:
    rows = _rows(x)
    places = itertools.product(range(len(rows)), range(weight.shape[1]))
    for position, feature in itertools.islice(places, _PRODUCTS):
        factors = zip(rows[position], weight[:, feature], strict=True)
        products = " + ".join(f"({_short(a)})({_short(b)})" for a, b in factors)
        total = sum(a * b for a, b in zip(rows[position], weight[:, feature], strict=True))
        yield f"position {position}, feature {feature}: {products} = {_short(total)}"


def _positions(parts: Iterable[np.ndarray]) -> Iterator[str]:
    for position, part in enumerate(itertools.islice(parts, _PRODUCTS)):
        yield f"position {position} adds {_tensor(part)}"


def _rows(values: np.ndarray) -> np.ndarray:
    return values.reshape((-1, values.shape[-1]))


def _tensor(values: np.ndarray) -> str:
    """Values to the digits that matter, nested as their shape."""
    flat = [_short(value) for value in values.reshape(-1)]
    if len(flat) > _ELEMENTS:
        shown = ", ".join(flat[:_ELEMENTS])
        return f"{shown}, … {len(flat)} in all, shape {list(values.shape)}"
    return _nested(flat, values.shape)


def _nested(texts: Sequence[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return texts[0]
    if not texts:
        return f"nothing, shape {list(shape)}"
    step = len(texts) // shape[0]
    parts = [_nested(texts[i : i + step], shape[1:]) for i in range(0, len(texts), step)]
    return f"[{', '.join(parts)}]"


def _short(value: Any) -> str:
    if isinstance(value, int) or value.is_integer():
        return str(value if isinstance(value, int) else value.unique_fmpz())
    try:
        return f"{decimal(value, _DIGITS):.{_DIGITS}g}"
    except NotProven:
        return "no value" if not value.is_finite() else "0 (to all digits)"


# ----------------------------------------------------------------------- beside the backend


def _answers(case: Case, specification: Specification, backend: Connection) -> Iterator[str]:
    operation = specification.operations[case.operation]
    truth: CaseTruth | None = None
    if isinstance(case.expectation, Values | Relations):
        truth = Truth(Path(specification.root) / "truth").of(case)
    for dtype in case.dtypes:
        questions: dict[str, Question] = {}
        answers: dict[str, Answer] = {}
        for call in case.calls:
            asked = question(case, operation, call, dtype, answers)
            if asked is not None:
                questions[call] = asked
                answers[call] = backend.answer(asked)
        yield f"  {backend.name} in {dtype}"
        for call, answer in answers.items():
            if answer.status != "outputs":
                yield f"    {answer.status} {answer.kind or ''} {answer.message}".rstrip()
            for output, value in answer.outputs.items():
                yield f"    {dotted(call, output)} = {_plain(value)}"
        twin = Answer()  # alone, a rejection is shown as if its twin had been answered
        verdict = judge.verdict(case, dtype, truth, answers, twin)
        failure = Failure(verdict, case, truth, questions, answers)
        failures = [failure] * (verdict.verdict == "fail")
        (verdict,) = diagnose(
            failures, [verdict], specification.operations, specification=specification
        )
        yield from (f"    {line}" for line in failure_text(verdict).splitlines())
        yield ""


def _plain(value: np.ndarray) -> str:
    flat = [str(item) for item in value.reshape(-1)[:_ELEMENTS]]
    if value.size > _ELEMENTS:
        return f"{', '.join(flat)}, … {value.size} in all, shape {list(value.shape)}"
    return _nested(flat, value.shape)


# ------------------------------------------------------------------------- known mistakes


def _mistakes(case: Case, operation: Operation) -> Iterator[str]:
    """What every fault that this case separates would give, the most visible first."""
    proof, truth = Proof({}), {}
    if isinstance(case.expectation, Values | Relations):
        proof = prove(case, operation)
        truth = thaw(freeze_case(case, proof))
    found = []
    effects = Effects(case, operation, proof, truth)
    for name, fault in catalogue().items():
        sizes = effects.of(fault) if concerned(name, case) else {}
        if any(size > SEPARATES for size in sizes.values()):
            found.append((max(sizes.values()), fault, sizes))
    if not found:
        yield "  no known mistake shows in this case"
        return
    yield "  what known mistakes would give (error as a multiple of the bound)"
    for _, fault, sizes in sorted(found, key=lambda each: -each[0]):
        shown = ", ".join(f"{dtype} {_multiple(size)}" for dtype, size in sizes.items())
        yield f"    {fault.name()}: {fault.says()}"
        yield f"      {shown}; {_wrong_values(case, operation, fault, proof)}"


def _multiple(size: float) -> str:
    return "beyond any bound" if size >= 1e299 else f"{size:.3g}"


def _wrong_values(case: Case, operation: Operation, fault: type[Fault], right: Proof) -> str:
    """The outputs that the fault changes, adds or leaves out."""
    if fault.native:
        return "a mistake of rounding: each implementation gives other values"
    try:
        asked = as_read(fault, case)
        values: Mapping[tuple[str, str], np.ndarray] = prove_values(
            asked, operation, fault()
        ).values
    except Rejected as rejected:
        return f"rejects it as {rejected.kind}"
    except Impossible:
        return "raises, for its shapes don't fit"
    changed = [
        f"{dotted(*key)} = {_tensor(value)}"
        for key, value in values.items()
        if key not in right.values or not _alike(value, right.values[key])
    ]
    missing = [f"without {dotted(*key)}" for key in right.values if key not in values]
    shown = changed + missing
    if len(shown) > _OUTPUTS:
        shown[_OUTPUTS:] = [f"{len(shown) - _OUTPUTS} outputs more"]
    return "; ".join(shown) or "gives nothing"


def _alike(value: np.ndarray, right: np.ndarray) -> bool:
    """Whether two tensors of balls may be the same numbers."""
    if value.shape != right.shape:
        return False
    pairs = zip(value.reshape(-1), right.reshape(-1), strict=True)
    return all(one.overlaps(other) for one, other in pairs)
