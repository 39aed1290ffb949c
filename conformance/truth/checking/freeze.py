"""Proves every case and writes ``spec/truth``: values to 25 digits, bounds, sharpest kills.

The files are machine-made and committed. They are the same on every machine: balls and decimals
are exact, and a bound is rounded up to three digits.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from decimal import ROUND_CEILING, Context, Decimal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from conformance.errors import Rejected
from conformance.frozen import (
    FORMAT,
    FrozenCase,
    FrozenTensor,
    join_key,
    thaw,
)
from conformance.model import Case, Operation, Rejection, Relations, Undefined, Values
from conformance.specification import Specification
from conformance.truth.arithmetic.balls import NotProven, decimal
from conformance.truth.checking import claims, free
from conformance.truth.effects.concerned import concerned
from conformance.truth.effects.kills import Effects, can_tell
from conformance.truth.faults import catalogue
from conformance.truth.proof.evaluate import Impossible
from conformance.truth.proof.prove import Proof, output_of, prove, prove_values

#: How many of the sharpest kills are kept, for each fault and dtype.
KEPT_KILLS = 3

#: What the libraries under NumPy read when they start their threads.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

_UP = Context(prec=3, rounding=ROUND_CEILING)


class ProvenCase:
    """What proving one case gave: its frozen form, the effect of every fault, its problems.

    ``passed_by`` names the trivial faults that the case passes.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.frozen: FrozenCase | None = None
        self.effects: dict[str, dict[str, float]] = {}
        self.passed_by: tuple[str, ...] = ()
        self.problems: list[str] = []


def prove_case(case: Case, operation: Operation) -> ProvenCase:
    """Everything the oracle can say about ``case``; what is untrue of it goes to ``problems``."""
    result = ProvenCase(case)
    proof, truth = Proof({}), {}
    if case.free is not None and isinstance(case.expectation, Relations):
        return _prove_free(result, operation)
    if isinstance(case.expectation, Values | Relations):
        try:
            proof = prove(case, operation)
            result.frozen = freeze_case(case, proof)
        except (Rejected, Impossible, NotProven) as error:
            result.problems.append(f"the reference gives no value: {error}")
            return result
        truth = thaw(result.frozen)
        result.problems += claims.about_values(case, proof, truth)
    else:
        result.problems += _about_rejection(case, operation)
    effects = Effects(case, operation, proof, truth)
    for name, fault in catalogue().items():
        sizes = effects.of(fault) if concerned(name, case) else {}
        if any(sizes.values()):
            result.effects[name] = {str(dtype): size for dtype, size in sizes.items()}
    result.passed_by = effects.passed_by()
    return result


def _prove_free(result: ProvenCase, operation: Operation) -> ProvenCase:
    """Relations alone; tried on the faults of the clauses that the case shows."""
    case, output = result.case, output_of(operation)
    try:
        found = free.results_of(case, output)
    except (Rejected, Impossible) as error:
        result.problems.append(f"the reference gives no value: {error}")
        return result
    result.frozen = free.freeze(case, found)
    truth = thaw(result.frozen)
    result.problems += free.problems(case, truth, found)
    for name, fault in catalogue().items():
        if concerned(name, case):
            sizes = free.effect(case, output, truth, fault)
            if fault.trivial and can_tell(case, truth, fault) and min(sizes.values()) <= 1:
                result.passed_by = (*result.passed_by, name)
            elif any(sizes.values()):
                result.effects[name] = {str(dtype): size for dtype, size in sizes.items()}
    return result


def prove_all(
    specification: Specification,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    families: Collection[str] = (),
) -> Iterator[ProvenCase]:
    """``prove_case`` of every case, in the order of the specification, on all cores.

    With ``families``, of their cases alone.
    """
    cases = [
        case for case in specification.cases.values() if not families or case.family in families
    ]
    work = [(case, specification.operations[case.operation]) for case in cases]
    with _one_thread_each(), ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for done, result in enumerate(pool.map(_prove_pair, work), start=1):
            progress(done, len(cases))
            yield result


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started inside multiply small matrices alone: the cores are taken by each other."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _prove_pair(pair: tuple[Case, Operation]) -> ProvenCase:
    return prove_case(*pair)


def kills(results: list[ProvenCase]) -> dict[str, dict[str, dict[str, list[tuple[str, float]]]]]:
    """Family -> fault -> dtype -> the sharpest cases with their D, rounded to three digits."""
    found: dict[str, dict[str, dict[str, list[tuple[str, float]]]]] = {}
    for result in results:
        for fault, effects in result.effects.items():
            by_dtype = found.setdefault(result.case.family, {}).setdefault(fault, {})
            for dtype, size in effects.items():
                if size > 1:
                    pair = (result.case.id, float(f"{size:.3g}"))
                    by_dtype.setdefault(dtype, []).append(pair)
    for family in found.values():
        for by_dtype in family.values():
            for dtype, pairs in by_dtype.items():
                by_dtype[dtype] = sorted(pairs, key=lambda p: (-p[1], p[0]))[:KEPT_KILLS]
    return found


def write(results: list[ProvenCase], folder: Path, *, some: bool = False) -> list[Path]:
    """Write the family files under ``folder``, a case a line; the paths that were written.

    A file of a family that has no case any more is removed, unless only ``some`` were proven.
    """
    folder.mkdir(parents=True, exist_ok=True)
    families: dict[str, dict[str, Any]] = {}
    for result in results:
        cases = families.setdefault(result.case.family, {})
        if result.frozen is not None:
            cases[result.case.id] = _plain(result.frozen)
    sharpest = kills(results)
    paths = []
    for family, cases in families.items():
        path = folder / f"{family}.json"
        path.write_text(_render(cases, sharpest.get(family, {})), encoding="utf-8")
        paths.append(path)
    for path in folder.glob("*.json"):
        if path not in paths and not some:
            path.unlink()
    return paths


def round_up(bound: float) -> float | None:
    """The next number of three digits that is not smaller; None for no verdict."""
    if not math.isfinite(bound):
        return None
    return float(_UP.create_decimal(Decimal(bound)))


def freeze_case(case: Case, proof: Proof) -> FrozenCase:
    """The proof as it is committed. Raises NotProven where 25 digits are not proven."""
    values = {
        join_key(*key): FrozenTensor(
            value.shape, tuple(map(_text, value.reshape(-1))), proof.whole.get(key, "real")
        )
        for key, value in proof.values.items()
    }
    bounds = {
        dtype: {
            join_key(*key): tuple(round_up(float(b)) for b in np.ravel(bound))
            for key, bound in by_key.items()
        }
        for dtype, by_key in proof.bounds.items()
    }
    return FrozenCase(case.question_digest, values, bounds)


def _text(value: Any) -> str:
    number = decimal(value)
    plain = -7 <= number.adjusted() <= 20 or number == 0
    return f"{number:f}" if plain else str(number).replace("E+", "e").replace("E", "e")


def _about_rejection(case: Case, operation: Operation) -> list[str]:
    """Whether the reference rejects, as the case says, or has no value there."""
    due = case.expectation
    assert isinstance(due, Rejection | Undefined)
    try:
        values = prove_values(case, operation).values
    except Rejected as rejected:
        if isinstance(due, Rejection) and rejected.kind != due.kind:
            return [f"the reference rejects this as {rejected.kind}, not as {due.kind}"]
        return []
    except Impossible as impossible:
        return [f"the reference can't be evaluated: {impossible}"]
    if isinstance(due, Rejection):
        return ["the reference does not reject this"]
    defined = [ball for ball in values["", due.output].reshape(-1) if ball.is_finite()]
    return [f"{due.output} has a value: {defined[0]}"] if defined else []


def _plain(frozen: FrozenCase) -> dict[str, Any]:
    return {
        "digest": frozen.digest,
        "values": {
            key: {
                "shape": list(value.shape),
                "data": list(value.data),
                **({} if value.dtype == "real" else {"dtype": value.dtype}),
            }
            for key, value in frozen.values.items()
        },
        "bounds": {
            dtype: {key: list(row) for key, row in rows.items()}
            for dtype, rows in frozen.bounds.items()
        },
    }


def _render(cases: dict[str, Any], sharpest: dict[str, Any]) -> str:
    """JSON with a line for each case and each fault, so that a change shows as what it is."""

    def lines(entries: dict[str, Any]) -> str:
        rows = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in entries.items())
        return "{\n" + ",\n".join(rows) + "\n }" if entries else "{}"

    body = f' "format": {json.dumps(FORMAT)},\n "cases": {lines(cases)},\n'
    return "{\n" + body + f' "kills": {lines(dict(sorted(sharpest.items())))}\n}}\n'
