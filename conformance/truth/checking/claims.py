"""Holds what people wrote to the oracle: expected and printed figures, relations.

A figure is a claim to its last digit: a whole number is exact, a decimal may differ by half a unit
of its last digit. A printed figure that does not keep this is a matter for ``errata.yaml``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from conformance.frozen import CaseTruth, Proven, dotted
from conformance.judging.relations import measure
from conformance.model import (
    Case,
    Combination,
    Differ,
    Drawn,
    Greater,
    Less,
    MeanSquare,
    Number,
    Relation,
    Relations,
    Same,
    Tensor,
    Values,
)
from conformance.specification.slices import parse_index
from conformance.truth.arithmetic.balls import ball, precision
from conformance.truth.effects.kills import SEPARATES, as_doubles
from conformance.truth.proof.prove import Proof

#: Marks a problem that an erratum may excuse.
PRINTED = "printed: "


def about_values(case: Case, proof: Proof, truth: CaseTruth) -> list[str]:
    """What is untrue of the figures or relations of ``case``."""
    due = case.expectation
    if isinstance(due, Relations):
        problems = []
        for relation in due.relate:
            try:
                problems += _relation(case, relation, proof, truth)
            except (ArithmeticError, LookupError, ValueError) as error:
                kind = type(relation).__name__.lower()
                problems.append(f"relate: {kind} can't be measured: {error}")
        return problems
    assert isinstance(due, Values)
    return figures(due, truth)


def figures(due: Values, truth: CaseTruth) -> list[str]:
    """What is untrue of the expected and printed figures, given the frozen values alone."""
    problems = []
    for label, claim in (("expect: ", due.expect), (PRINTED, due.printed)):
        for name, tensor in claim.items():
            proven = truth.get(("", name))
            if proven is None:
                problems.append(f"{label}{name} is no result of this case")
            else:
                problems += [label + text for text in _figure(name, tensor, proven)]
    return problems


def _figure(name: str, claimed: Tensor, proven: Proven) -> list[str]:
    if claimed.shape != proven.shape:
        return [f"{name} has shape {list(claimed.shape)}, the oracle {list(proven.shape)}"]
    places = list(np.ndindex(*proven.shape))
    wrong = [
        (index, number, text)
        for index, number, text in zip(places, claimed.data, proven.text.reshape(-1), strict=True)
        if not agrees(number, Decimal(text))
    ]
    return [
        f"{name}{list(index)} is {number}, the oracle says {text}" for index, number, text in wrong
    ]


def agrees(claimed: Number, value: Decimal) -> bool:
    """Whether ``value`` rounds to ``claimed``: to half a unit of the last digit that is written."""
    if isinstance(claimed, int):
        return value == claimed
    exponent = claimed.as_tuple().exponent
    assert isinstance(exponent, int)  # the reader lets no infinity through
    return abs(value - claimed) <= Decimal(5).scaleb(exponent - 1)


def _relation(case: Case, relation: Relation, proof: Proof, truth: CaseTruth) -> list[str]:
    """A relation is proven over balls, or visible by more than twice the bounds."""
    with precision():
        match relation:
            case Same(left=left, right=right, where=where):
                keyed = zip((left, right), where, strict=True)
                sides = [np.asarray(proof.values[key][parse_index(part)]) for key, part in keyed]
                if sides[0].shape != sides[1].shape or not sides[0].size:
                    return [f"relate: same of shapes {[list(side.shape) for side in sides]}"]
                difference = np.asarray(sides[0] - sides[1])
                broken = [item for item in difference.reshape(-1) if not item.contains(0)]
                name = f"{dotted(*left)} = {dotted(*right)}"
            case Combination(terms=terms, equals=equals, where=where):
                index = parse_index(where)
                total = sum(proof.values[c, o][index] * factor for c, o, factor in terms)
                broken = _unequal(np.asarray(total), equals)
                name = " + ".join(f"{factor}*{dotted(c, o)}" for c, o, factor in terms)
            case MeanSquare(term=term, equals=number):
                value = proof.values[term]
                mean = (value * value).sum() / value.size
                broken = [] if _within(mean, number) else [mean]
                name = f"the mean square of {dotted(*term)}"
            case Differ() | Less() | Greater() | Drawn():
                return _visible(case, relation, proof, truth)
    return [f"relate: {name} does not hold: off by {broken[0]}"] if broken else []


def _unequal(total: np.ndarray, equals: Tensor) -> list[Any]:
    numbers = np.empty(len(equals.data), dtype=object)
    numbers[:] = list(equals.data)
    try:
        due = np.broadcast_to(numbers.reshape(equals.shape), total.shape)
    except ValueError:
        return [f"shape {list(equals.shape)} for {list(total.shape)}"]
    return [
        value - ball(number)
        for value, number in zip(total.reshape(-1), due.reshape(-1), strict=True)
        if not _within(value, number)
    ]


def _within(value: Any, number: Number) -> bool:
    difference = value - ball(number)
    if isinstance(number, int):
        return bool(difference.contains(0))
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return bool(abs(difference) <= ball(Decimal(5).scaleb(exponent - 1)))


def _visible(
    case: Case, relation: Differ | Less | Greater | Drawn, proof: Proof, truth: CaseTruth
) -> list[str]:
    outputs = {key: as_doubles(value) for key, value in proof.values.items()}
    problems = []
    for dtype in case.dtypes:
        measured = measure(relation, outputs, truth, dtype)
        if measured.ratio is None or not measured.ratio * SEPARATES < 1:
            problems.append(f"relate: not visible in {dtype}: {measured.message or 'too small'}")
    return problems
