"""Proves the facts: what the documents state about the mathematics alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from conformance.errors import Rejected
from conformance.frozen import thaw
from conformance.model import Call, Case, Fact, Number, Operation, Relations, Tensor, Values
from conformance.precision import PRECISIONS
from conformance.truth.arithmetic.balls import Balls, NotProven, ball, precision
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.checking import claims
from conformance.truth.checking.freeze import freeze_case
from conformance.truth.faults import catalogue
from conformance.truth.proof.bounds import first_order
from conformance.truth.proof.evaluate import Impossible, evaluate_case
from conformance.truth.proof.prove import Proof, output_of, prove, prove_values
from conformance.truth.reference import Reference


def about_fact(fact: Fact, operation: Operation) -> list[str]:
    """What is untrue of ``fact``; nothing where it is proven."""
    case = fact.case
    if fact.fault is not None and fact.fault not in catalogue():
        return [f"no fault {fact.fault!r}"]
    try:
        proof = prove(case, operation)
        if fact.fault is not None:
            proof = Proof(
                prove_values(case, operation, catalogue()[fact.fault]()).values, proof.bounds
            )
        truth = thaw(freeze_case(case, proof))
    except (Rejected, Impossible, NotProven) as error:
        return [f"can't be evaluated: {error}"]
    problems = claims.about_values(case, proof, truth)
    claimed = isinstance(case.expectation, Values) and (
        case.expectation.expect or case.expectation.printed
    )
    if fact.central_difference is not None:
        problems += _about_differences(fact, operation, proof)
    elif not claimed and not isinstance(case.expectation, Relations):
        problems.append("claims nothing: write expect, printed, relate or central_difference")
    return problems


def _about_differences(fact: Fact, operation: Operation, proof: Proof) -> list[str]:
    """Whether (f(x + h) - f(x - h)) / 2h lies within the limit of the gradient, for every element.

    f is <upstream, y>. Its truncation is computed over balls; its rounding is at most the bounds
    of both evaluations, weighted with the upstream, divided by 2h.
    """
    claim = fact.central_difference
    assert claim is not None
    call = fact.case.calls[""]
    problems = []
    for name in call.wrt:
        tensor = call.given[name]
        assert isinstance(tensor, Tensor)  # what has a gradient is a tensor
        gradient = proof.values["", name].reshape(-1)
        for position in range(len(tensor.data)):
            above, rounding_above = _response(fact, operation, name, position, claim.step)
            below, rounding_below = _response(fact, operation, name, position, -claim.step)
            with precision():
                quotient = (above - below) / (2 * ball(claim.step))
                truncation = float(Balls().magnitude(np.array(quotient - gradient[position])))
            error = truncation + (rounding_above + rounding_below) / (2 * float(claim.step))
            if not error <= float(claim.within):
                problems.append(
                    f"central difference in {name} at {position} may be off by {error:.3g}, "
                    f"not within {claim.within}"
                )
    return problems


def _response(
    fact: Fact, operation: Operation, name: str, position: int, step: Decimal
) -> tuple[Any, float]:
    """<upstream, y> with one element moved by ``step``: its ball, and the bound of its rounding."""
    assert fact.central_difference is not None
    dtype = fact.central_difference.dtype
    moved = _evaluated(fact.case, name, position, step)
    upstream = next(iter(fact.case.calls[""].upstream.values()))
    output = output_of(operation)
    with precision():
        exact = evaluate_case(Reference(), Tape(Balls()), moved, output)["", output]
        total = sum(
            ball(weight) * value
            for weight, value in zip(upstream.data, exact.value.reshape(-1), strict=True)
        )
    node = evaluate_case(Reference(), Tape(Doubles()), moved, output)["", output]
    bound = first_order(node, [PRECISIONS[dtype]])[dtype].reshape(-1)
    weights = np.array([abs(float(weight)) for weight in upstream.data])
    return total, float(np.sum(weights * bound))


def _evaluated(case: Case, name: str, position: int, step: Number) -> Case:
    """The values of the same arguments, one element moved."""
    call = case.calls[""]
    tensor = call.given[name]
    assert isinstance(tensor, Tensor)  # what has a gradient is a tensor
    data = list(tensor.data)
    data[position] = Decimal(data[position]) + step
    moved = Tensor(shape=tensor.shape, data=tuple(data), dtype=tensor.dtype)
    new = Call(given={**call.given, name: moved})
    return msgspec.structs.replace(case, mode="evaluate", calls={"": new})
