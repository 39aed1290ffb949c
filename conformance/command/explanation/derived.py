"""How a case comes to its values: every rule that it used, in named quantities."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping

import numpy as np

from conformance.command.explanation.tensors import number_text, proven_text
from conformance.model import Case, Operation
from conformance.truth.derivation import Step, derive, worth_showing

#: Where a derivation has more lines, its results are shown alone.
_LINES = 400

#: Products of a linear layer are written out up to so many outputs, where there are no more than
#: so many layers.
_PRODUCTS = 8
_LAYERS = 2


def derivation(
    case: Case, operation: Operation, operations: Mapping[str, Operation]
) -> Iterator[str]:
    """The lines of the derivation, call by call."""
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
        yield f"{'  ' * depth}{step.name}{of} = {proven_text(step.value)}"
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
        products = " + ".join(f"({number_text(a)})({number_text(b)})" for a, b in factors)
        total = sum(a * b for a, b in zip(rows[position], weight[:, feature], strict=True))
        yield f"position {position}, feature {feature}: {products} = {number_text(total)}"


def _positions(parts: Iterable[np.ndarray]) -> Iterator[str]:
    for position, part in enumerate(itertools.islice(parts, _PRODUCTS)):
        yield f"position {position} adds {proven_text(part)}"


def _rows(values: np.ndarray) -> np.ndarray:
    return values.reshape((-1, values.shape[-1]))
