"""The truth of one case: proven values, and the bound of every element in every dtype."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from conformance.model import Case, Operation
from conformance.precision import PRECISIONS, Precision
from conformance.truth.balls import HIGHER_PRECISIONS, PRECISION, Balls, precision, proven
from conformance.truth.bounds import LINEARITY, first_order, largest
from conformance.truth.domains import Doubles
from conformance.truth.evaluate import Impossible, Results, evaluate_case
from conformance.truth.forms import DISTURBED, FORMS
from conformance.truth.reference import Reference
from conformance.truth.reverse import ancestry
from conformance.truth.tape import Node, Tape

#: How many patterns of random signs the linearity guard tries.
_PATTERNS = 6

#: How much smaller the second disturbance is than the first.
_SMALLER = 2.0**-20


@dataclass(frozen=True)
class Proof:
    """By (call, output): balls, and by dtype the bounds, infinite where there is no verdict."""

    values: dict[tuple[str, str], np.ndarray]
    bounds: dict[str, dict[tuple[str, str], np.ndarray]] = field(default_factory=dict)


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
        if all(proven(ball) for value in values.values() for ball in value.reshape(-1)):
            break
    return Proof(values)


def prove(case: Case, operation: Operation) -> Proof:
    """The values and the bounds of ``case``. Raises Rejected where the reference rejects it."""
    proof = prove_values(case, operation)
    output = output_of(operation)
    forms = [evaluate_case(form(), Tape(Doubles()), case, output) for form in FORMS]
    precisions = [PRECISIONS[dtype] for dtype in case.dtypes]
    bounds: dict[str, dict[tuple[str, str], np.ndarray]] = {dtype: {} for dtype in case.dtypes}
    for key in proof.values:
        found = largest([first_order(node, precisions) for node in _distinct(forms, key)])
        for dtype, bound in found.items():
            bounds[dtype][key] = bound
    for target in precisions:
        _refuse_where_not_linear(case, output, proof.values, bounds[target.name], target)
    return Proof(proof.values, bounds)


def _distinct(forms: list[Results], key: tuple[str, str]) -> list[Node]:
    """The nodes of ``key`` whose computations differ: most forms leave most operations alone."""
    kept: dict[tuple[object, ...], Node] = {}
    for form in forms:
        node = form[key]
        kept.setdefault(_shape_of_computation(node), node)
    return list(kept.values())


def _shape_of_computation(node: Node) -> tuple[object, ...]:
    """Two computations of equal shape have equal bounds: the same steps on the same values."""
    return tuple(
        (ancestor.shape, ancestor.steps, ancestor.value.tobytes()) for ancestor in ancestry([node])
    )


def _refuse_where_not_linear(
    case: Case,
    output: str,
    exact: dict[tuple[str, str], np.ndarray],
    bounds: dict[tuple[str, str], np.ndarray],
    target: Precision,
) -> None:
    """Make the bound infinite where errors of the size of u have effects that are not linear."""
    seed = zlib.crc32(case.id.encode())
    for form, pattern in itertools.product(DISTURBED, range(_PATTERNS)):
        large = _disturbed(form, case, output, target, (seed, pattern), 1.0)
        small = _disturbed(form, case, output, target, (seed, pattern), _SMALLER)
        for key, bound in bounds.items():
            with precision():
                balls = (large[key] - exact[key]) - (small[key] - exact[key]) * (1 / _SMALLER)
                deviation = Balls().magnitude(balls)
            bound[~(deviation <= LINEARITY * bound)] = np.inf


def _disturbed(
    form: type[Reference],
    case: Case,
    output: str,
    target: Precision,
    seed: tuple[int, int],
    scale: float,
) -> dict[tuple[str, str], np.ndarray]:
    """The values when every node is off by its allowance, times ``scale``, with random signs."""
    with precision():
        tape = Tape(Balls(), _signs(target, seed, scale))
        try:
            results = evaluate_case(form(), tape, case, output)
        except Impossible as error:  # the reference itself fits, so its disturbance does too
            raise AssertionError(case.id) from error
        return {key: node.value for key, node in results.items()}


def _signs(target: Precision, seed: tuple[int, int], scale: float) -> Callable[[Node], np.ndarray]:
    generator = np.random.default_rng(seed)

    def disturb(node: Node) -> np.ndarray:
        allowance = np.nan_to_num(node.allowance(target)) * scale
        signs = generator.integers(0, 2, node.shape) * 2 - 1
        return Balls().from_floats(signs * allowance)

    return disturb
