"""Cases whose values are free: only relations are due, and nothing is allowed beside them.

Which numbers an honest initialisation draws is its own affair, and after a hundred steps of
training no bound of first order says anything. The reference is one honest implementation among
others here, evaluated over doubles; that its relations hold shows that they can be kept.
"""

from __future__ import annotations

import numpy as np

from conformance.errors import Rejected
from conformance.frozen import CaseTruth, FrozenCase, FrozenTensor, join_key
from conformance.judging.relations import measure
from conformance.model import Case, Relations
from conformance.precision import Dtype
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.effects.visibility import BEYOND, in_relations
from conformance.truth.proof.evaluate import Impossible, Results, evaluate_case
from conformance.truth.proof.prove import dtype_of
from conformance.truth.reference import Reference


def results_of(case: Case, output: str, reference: Reference | None = None) -> Results:
    """The results of ``case`` over doubles, by the reference or by the given fault.

    ``output`` names the output of an operation that has one. Raises Rejected and Impossible as
    the evaluation does.
    """
    with np.errstate(all="ignore"):
        tape = Tape(Doubles(), remembers=False)
        return evaluate_case(reference or Reference(), tape, case, output)


def freeze(case: Case, results: Results) -> FrozenCase:
    """The shapes and kinds of the results, without values."""
    values = {
        join_key(*key): FrozenTensor(node.shape, (), dtype_of(node))
        for key, node in results.items()
    }
    return FrozenCase(case.question_digest, values, {dtype: {} for dtype in case.dtypes})


def problems(case: Case, truth: CaseTruth, results: Results) -> list[str]:
    """The relations that the reference itself does not keep."""
    due = case.expectation
    assert isinstance(due, Relations)  # the reader takes nothing else for a free case
    outputs = {key: node.value for key, node in results.items()}
    found = []
    for relation in due.relate:
        kind = type(relation).__name__.lower()
        try:
            measured = measure(relation, outputs, truth, case.dtypes[0])
        except (ArithmeticError, LookupError, ValueError) as error:
            found.append(f"relate: {kind} can't be measured: {error}")
            continue
        if measured.ratio is None or not measured.ratio <= 1:
            found.append(f"relate: {kind} does not hold of the reference: {measured.message}")
    return found


def effect(case: Case, output: str, truth: CaseTruth, fault: type[Reference]) -> dict[Dtype, float]:
    """D of ``fault``: how far it is from keeping the relations; at most 1 where it keeps them."""
    due = case.expectation
    assert isinstance(due, Relations)
    try:
        results = results_of(case, output, fault())
    except (Rejected, Impossible):
        return dict.fromkeys(case.dtypes, BEYOND)
    if results.keys() != truth.keys():
        return dict.fromkeys(case.dtypes, BEYOND)
    outputs = {key: node.value for key, node in results.items()}
    return {dtype: in_relations(due, truth, outputs, dtype) for dtype in case.dtypes}
