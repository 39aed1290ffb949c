"""The truth of one case: proven values, and the bound of every element in every dtype."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from conformance.model import Case, Operation
from conformance.precision import PRECISIONS, Precision
from conformance.truth.arithmetic.balls import (
    HIGHER_PRECISIONS,
    PRECISION,
    Balls,
    precision,
    proven,
)
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.nodes import Node
from conformance.truth.arithmetic.reverse import ancestry
from conformance.truth.arithmetic.tape import Tape, Whole
from conformance.truth.proof.bounds import LINEARITY, largest, together
from conformance.truth.proof.evaluate import Impossible, Results, evaluate_case
from conformance.truth.proof.forms import DISTURBED, FORMS
from conformance.truth.reference import Reference

#: ``real``, or the dtype of whole numbers.
ResultDtype: TypeAlias = Literal["real", "int64", "uint64"]

#: How many patterns of random signs the linearity guard tries, and how many where a computation
#: has more than ``_LONG`` steps: there one pattern already has more signs than six of the others.
_PATTERNS, _FEWER, _LONG = 6, 1, 4000

#: How much smaller the second disturbance is than the first.
_SMALLER = 2.0**-20


@dataclass(frozen=True)
class Proof:
    """By (call, output): balls, and by dtype the bounds, infinite where there is no verdict.

    ``whole`` has the dtypes of the outputs that are whole numbers, whose bounds are zero.
    """

    values: dict[tuple[str, str], np.ndarray]
    bounds: dict[str, dict[tuple[str, str], np.ndarray]] = field(default_factory=dict)
    whole: dict[tuple[str, str], ResultDtype] = field(default_factory=dict)


def output_of(operation: Operation) -> str:
    """The name of the one differentiable output."""
    return next(iter(operation.outputs))


def prove_values(case: Case, operation: Operation, reference: Reference | None = None) -> Proof:
    """The values of ``case`` as balls, by the reference or by the given fault.

    Raises Rejected and Impossible as the evaluation does.
    """
    for bits in (PRECISION, *HIGHER_PRECISIONS):
        with precision(bits):
            tape, output = Tape(Balls()), output_of(operation)
            results = evaluate_case(reference or Reference(), tape, case, output)
            values = {key: node.value for key, node in results.items()}
            whole: dict[tuple[str, str], ResultDtype] = {
                key: dtype for key, node in results.items() if (dtype := dtype_of(node)) != "real"
            }
        if all(proven(ball) for value in values.values() for ball in value.reshape(-1)):
            break
    return Proof(values, whole=whole)


def dtype_of(node: Node) -> ResultDtype:
    """``real``, or the dtype of whole numbers."""
    if not isinstance(node, Whole):
        return "real"
    return "uint64" if node.numbers.dtype == np.uint64 else "int64"


def prove(case: Case, operation: Operation) -> Proof:
    """The values and the bounds of ``case``. Raises Rejected where the reference rejects it."""
    proof = prove_values(case, operation)
    output = output_of(operation)
    forms = [evaluate_case(form(), Tape(Doubles()), case, output) for form in FORMS]
    precisions = [PRECISIONS[dtype] for dtype in case.dtypes]
    bounds: dict[str, dict[tuple[str, str], np.ndarray]] = {dtype: {} for dtype in case.dtypes}
    found = [together(list(form.values()), precisions) for form in _distinct(forms)]
    for key, *alternatives in zip(proof.values, *found, strict=True):
        for dtype, bound in largest(alternatives).items():
            bounds[dtype][key] = np.zeros(bound.shape) if key in proof.whole else bound
    for target in precisions:
        patterns = _FEWER if len(ancestry(forms[0].values())) > _LONG else _PATTERNS
        _refuse_where_not_linear(case, output, proof, bounds[target.name], target, patterns)
    return Proof(proof.values, bounds, proof.whole)


def _distinct(forms: list[Results]) -> list[Results]:
    """The forms whose computations differ: most forms leave most operations alone.

    Two computations of equal shape have equal bounds: the same steps on the same values.
    """
    kept: dict[tuple[object, ...], Results] = {}
    for form in forms:
        steps = tuple(
            (ancestor.shape, ancestor.steps, ancestor.value.tobytes())
            for ancestor in ancestry(form.values())
        )
        kept.setdefault(steps, form)
    return list(kept.values())


def _refuse_where_not_linear(
    case: Case,
    output: str,
    proof: Proof,
    bounds: dict[tuple[str, str], np.ndarray],
    target: Precision,
    patterns: int,
) -> None:
    """Make the bound infinite where errors of the size of u have effects that are not linear.

    That is everywhere, where such errors make the computation go another way, to clip or not.
    """
    crc = zlib.crc32(case.id.encode())
    errors = {form: _allowed_errors(form, case, output, target) for form in DISTURBED}
    for form, pattern in itertools.product(DISTURBED, range(patterns)):
        large, small = (
            _disturbed(form, case, output, _Signs(errors[form], (crc, pattern), scale))
            for scale in (1.0, _SMALLER)
        )
        for key, bound in bounds.items():
            if key in proof.whole:
                continue
            if large is None or small is None:
                bound[...] = np.inf
                continue
            exact = proof.values[key]
            with precision():
                balls = (large[key] - exact) - (small[key] - exact) * (1 / _SMALLER)
                deviation = Balls().magnitude(balls)
            bound[~(deviation <= LINEARITY * bound)] = np.inf


def _allowed_errors(
    form: type[Reference], case: Case, output: str, target: Precision
) -> list[np.ndarray]:
    """What each step of ``form`` may add, in the order in which the steps are taken."""
    allowed: list[np.ndarray] = []

    def note(node: Node) -> np.ndarray:
        allowance = node.allowance(target)
        allowed.append(np.where(np.isfinite(allowance), allowance, 0.0))
        return np.zeros(node.shape)

    with np.errstate(all="ignore"):
        evaluate_case(form(), Tape(Doubles(), note), case, output)
    return allowed


def _disturbed(
    form: type[Reference], case: Case, output: str, disturb: Callable[[Node], np.ndarray]
) -> dict[tuple[str, str], np.ndarray] | None:
    """The values as balls when every step is off by what ``disturb`` says.

    None where the computation goes another way then.
    """
    with precision():
        try:
            results = evaluate_case(form(), Tape(Balls(), disturb), case, output)
        except Impossible:
            return None
        return {key: node.value for key, node in results.items()}


class _Signs:
    """Each step is off by its allowed error, times ``scale``, with signs drawn from ``seed``."""

    def __init__(self, allowed: list[np.ndarray], seed: tuple[int, int], scale: float) -> None:
        self._errors = iter(allowed)
        self._scale = scale
        self._generator = np.random.default_rng(seed)

    def __call__(self, node: Node) -> np.ndarray:
        error = next(self._errors, None)
        if error is None or error.shape != node.shape:
            raise Impossible("another step than without errors")
        signs = self._generator.integers(0, 2, node.shape) * 2 - 1
        return Balls().from_floats(signs * (error * self._scale))
