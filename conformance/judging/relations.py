"""Measures a relation between outputs: how far it is from failing, as a share of what is allowed.

Differences are computed so that their own rounding does not matter: a single difference of two
doubles is rounded once, relative to itself; sums are exact (``math.fsum``, ``Fraction``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from conformance.frozen import CaseTruth, dotted
from conformance.judging import statistics
from conformance.model import (
    Combination,
    Differ,
    Drawn,
    Greater,
    Less,
    MeanSquare,
    Relation,
    Same,
)
from conformance.precision import Dtype
from conformance.specification.slices import parse_index

Outputs = Mapping[tuple[str, str], Any]


class Measured(msgspec.Struct, frozen=True):
    """``ratio`` at most 1: the relation holds; None: a bound is infinite, so nothing is known."""

    ratio: float | None
    message: str = ""
    output: str | None = None
    index: tuple[int, ...] | None = None
    got: str | None = None
    want: str | None = None
    bound: float | None = None


def measure(relation: Relation, outputs: Outputs, truth: CaseTruth, dtype: Dtype) -> Measured:
    """How far ``relation`` is from failing on ``outputs``, arrays of the right shapes and finite
    wherever a bound is.
    """
    match relation:
        case Same() if relation.identical:
            return _identical(relation, outputs)
        case Same():
            return _same(relation, outputs, truth, dtype)
        case Differ():
            return _differ(relation, outputs, truth, dtype)
        case Combination():
            return _combination(relation, outputs, truth, dtype)
        case MeanSquare():
            return _mean_square(relation, outputs, truth, dtype)
        case Less() | Greater():
            return _beyond(relation, outputs, truth, dtype)
        case Drawn():
            return _drawn(relation, outputs)


def _identical(relation: Same, outputs: Outputs) -> Measured:
    left, right = (np.asarray(part) for part in _where(relation, outputs))
    name = dotted(*relation.left)
    if left.tobytes() == right.tobytes():
        return Measured(0.0, output=name)
    unlike = np.argwhere(~(left == right))
    index = tuple(int(i) for i in unlike[0]) if len(unlike) else None
    message = f"{name} and {dotted(*relation.right)} are not identical"
    return Measured(math.inf, message, name, index, *_pair(left, right, index), bound=0.0)


def _same(relation: Same, outputs: Outputs, truth: CaseTruth, dtype: Dtype) -> Measured:
    left, right, allowed = _sides(relation, outputs, truth, dtype)
    name = dotted(*relation.left)
    if not left.size:
        return Measured(0.0, output=name)
    if not np.all(np.isfinite(allowed)):
        return _unknown(allowed)
    with np.errstate(all="ignore"):
        error = np.abs(left - right)
        ratio = np.where(error == 0, 0.0, error / allowed)
    index = _worst(ratio)
    value = float(ratio[index])
    other = dotted(*relation.right)
    message = f"{name} and {other} differ by {error[index]:.3g}" if not value <= 1 else ""
    pair = _pair(left, right, index)
    return Measured(value, message, name, index, *pair, bound=float(allowed[index]))


def _differ(relation: Differ, outputs: Outputs, truth: CaseTruth, dtype: Dtype) -> Measured:
    left, right, allowed = _sides(relation, outputs, truth, dtype)
    name = dotted(*relation.left)
    if not np.all(np.isfinite(allowed)):
        return _unknown(allowed)
    with np.errstate(all="ignore"):
        ratio = np.where(left == right, np.inf, allowed / np.abs(left - right))
    if not ratio.size:
        return Measured(math.inf, f"{name} is empty, so nothing differs", name)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmin(ratio)), ratio.shape))
    value = float(ratio[index])
    message = f"{name} does not differ from {dotted(*relation.right)}" if not value <= 1 else ""
    pair = _pair(left, right, index)
    return Measured(value, message, name, index, *pair, bound=float(allowed[index]))


def _combination(
    relation: Combination, outputs: Outputs, truth: CaseTruth, dtype: Dtype
) -> Measured:
    where = parse_index(relation.where)
    parts = [
        (np.asarray(outputs[call, output][where], dtype=np.float64), factor)
        for call, output, factor in relation.terms
    ]
    allowed = sum(
        abs(factor) * np.asarray(truth[call, output].bounds[dtype][where])
        for call, output, factor in relation.terms
    )
    allowed = np.asarray(allowed)
    shape = allowed.shape
    if not np.all(np.isfinite(allowed)):
        return _unknown(allowed)
    equals = np.empty(len(relation.equals.data), dtype=object)
    equals[:] = [Fraction(number) for number in relation.equals.data]
    due = np.broadcast_to(equals.reshape(relation.equals.shape), shape)
    name = " + ".join(f"{f}*{dotted(c, o)}" for c, o, f in relation.terms)
    worst = Measured(0.0, output=name)
    for index in np.ndindex(*shape):
        total = sum(Fraction(float(part[index])) * factor for part, factor in parts)
        error = abs(total - due[index])
        bound = float(allowed[index])
        ratio = 0.0 if error == 0 else (float(error) / bound if bound else math.inf)
        if worst.index is None or worst.ratio is None or ratio > worst.ratio:
            message = f"{name} is off by {float(error):.3g}" if not ratio <= 1 else ""
            want = str(float(due[index]))
            worst = Measured(ratio, message, name, index, str(float(total)), want, bound)
    return worst


def _mean_square(
    relation: MeanSquare, outputs: Outputs, truth: CaseTruth, dtype: Dtype
) -> Measured:
    proven, got = truth[relation.term], outputs[relation.term]
    bound = proven.bounds[dtype]
    if not np.all(np.isfinite(bound)):
        return _unknown(bound)
    # (y + e)^2 - y^2 = 2 y e + e^2, element by element
    allowed = float(np.mean(2 * np.abs(proven.high) * bound + bound * bound))
    mean = sum(Fraction(float(value)) ** 2 for value in got.reshape(-1)) / got.size
    error = float(abs(mean - Fraction(Decimal(relation.equals))))
    name = f"mean square of {dotted(*relation.term)}"
    ratio = 0.0 if error == 0 else (error / allowed if allowed else math.inf)
    message = f"the {name} is off by {error:.3g}" if not ratio <= 1 else ""
    return Measured(ratio, message, name, None, str(float(mean)), str(relation.equals), allowed)


def _beyond(relation: Less | Greater, outputs: Outputs, truth: CaseTruth, dtype: Dtype) -> Measured:
    where = parse_index(relation.where)
    got = np.asarray(outputs[relation.term][where])
    bound = np.asarray(truth[relation.term].bounds[dtype][where])
    name, limit = dotted(*relation.term), float(relation.than)
    if not got.size:
        return Measured(math.inf, f"{name} is empty, so nothing is beyond", name)
    if not np.all(np.isfinite(bound)):
        return _unknown(bound)
    side, sign = ("less", "<") if isinstance(relation, Less) else ("greater", ">")
    with np.errstate(all="ignore"):
        difference = limit - got.astype(np.float64)
        room = difference if side == "less" else -difference
        ratio = np.where(room > 0, bound / room, np.inf)
    index = _worst(ratio)
    value = float(ratio[index])
    message = f"{name} is not {side} than {relation.than}" if not value <= 1 else ""
    want = f"{sign} {relation.than}"
    return Measured(value, message, name, index, str(got[index]), want, float(bound[index]))


def _drawn(relation: Drawn, outputs: Outputs) -> Measured:
    """The statistic that is nearest to its limit, or furthest beyond."""
    name = dotted(*relation.terms[0])
    if len(relation.terms) > 1:
        name += f" and {len(relation.terms) - 1} more"
    sample = statistics.sample(outputs, relation)
    worst = max(statistics.of(sample, relation), key=lambda statistic: statistic.ratio)
    due = f"{relation.distribution}({relation.size})"
    message = f"the {worst.name} of {name} is not that of {due}" if not worst.ratio <= 1 else ""
    return Measured(
        worst.ratio, message, name, None, f"{worst.got:.6g}", f"{worst.want:.6g}", worst.allowed
    )


def _sides(
    relation: Same | Differ, outputs: Outputs, truth: CaseTruth, dtype: Dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both outputs as doubles and the sum of their bounds, where the relation looks."""
    left, right = (np.asarray(part, dtype=np.float64) for part in _where(relation, outputs))
    keys = (relation.left, relation.right)
    bounds = _where(relation, {key: truth[key].bounds[dtype] for key in keys})
    return left, right, np.asarray(bounds[0] + bounds[1])


def _where(relation: Same | Differ, arrays: Outputs) -> tuple[Any, Any]:
    """The parts of both sides that the relation compares."""
    left, right = (parse_index(side) for side in relation.where)
    return arrays[relation.left][left], arrays[relation.right][right]


def _unknown(allowed: np.ndarray) -> Measured:
    count = int(np.sum(~np.isfinite(allowed)))
    return Measured(None, f"{count} of {allowed.size} without bound")


def _worst(ratio: np.ndarray) -> tuple[int, ...]:
    certain = np.where(np.isnan(ratio), np.inf, ratio)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(certain)), ratio.shape))


def _pair(
    left: np.ndarray, right: np.ndarray, index: tuple[int, ...] | None
) -> tuple[str | None, str | None]:
    return (None, None) if index is None else (str(left[index]), str(right[index]))
