"""Answer -> verdict, read from top to bottom. Truth and answers are given; nothing is asked here.

A comparison passes only if it is proven close: every test below is written so that a NaN, an
absent output or an unknown bound can only fail or give no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from conformance.frozen import CaseTruth, Proven, dotted
from conformance.judging.relations import Measured, measure
from conformance.model import Answer, Case, Rejection, Relations, Undefined, Verdict
from conformance.model.verdicts import NOT_COUNTED, REFUSED
from conformance.precision import PRECISIONS, Dtype


class Finding(msgspec.Struct, frozen=True):
    """What a comparison found; the fields are those of a Verdict."""

    verdict: Any
    message: str = ""
    kind_right: bool | None = None
    ratio: float | None = None
    output: str | None = None
    index: tuple[int, ...] | None = None
    got: str | None = None
    want: str | None = None
    bound: float | None = None
    ulps: float | None = None
    digits: float | None = None


def verdict(
    case: Case,
    dtype: Dtype,
    truth: CaseTruth | None,
    answers: Mapping[str, Answer],
    twin: Answer | None = None,
) -> Verdict:
    """The verdict of ``case`` in ``dtype``, from the answers to its calls.

    ``truth`` has the proven values (None where the case expects none), ``twin`` the answer to the
    valid case that a rejection or an undefined case stands beside.
    """
    found = _judge(case, dtype, truth, answers, twin)
    if found.verdict == "fail" and case.layout != "contiguous":
        # The same numbers may well have passed in another layout: this is where to look.
        found = msgspec.structs.replace(
            found, message=f"{found.message}; the arguments were {case.layout}"
        )
    return Verdict(
        case=case.id,
        operation=case.operation,
        mode=case.mode,
        dtype=dtype,
        clauses=case.clauses,
        **msgspec.structs.asdict(found),
    )


def _judge(
    case: Case,
    dtype: Dtype,
    truth: CaseTruth | None,
    answers: Mapping[str, Answer],
    twin: Answer | None,
) -> Finding:
    for answer in answers.values():
        if answer.status in {"unsupported", "error", "crash", "timeout"}:
            return Finding(answer.status, answer.message)
    for answer in answers.values():
        if answer.changed:
            return Finding("fail", f"changed its input: {', '.join(answer.changed)}")
    due = case.expectation
    if isinstance(due, Rejection | Undefined):
        return _judge_beside(due, answers[""], twin)
    for name, answer in answers.items():
        if answer.status == "rejected":
            where = f" in call {name}" if name else ""
            # An exception whose own text is broken is a slip of the adapter, unless one is due.
            found = "fail" if answer.legible else "error"
            return Finding(found, f"{REFUSED}{where}: {answer.message}")
    assert truth is not None  # the runner has it for every case with values
    malformed = _check_forms(truth, answers, dtype)
    if malformed is not None:
        return malformed
    if isinstance(due, Relations):
        return _judge_relations(due, dtype, truth, answers)
    return _compare(truth, answers[""], dtype)


def _judge_beside(due: Rejection | Undefined, answer: Answer, twin: Answer | None) -> Finding:
    """A rejection or an undefined output; it counts only if the valid twin was answered.

    An output without a value is not finite anywhere, and has the form that the twin's has.
    """
    if twin is None or twin.status != "outputs":
        if answer.status == "rejected":
            message = f"{NOT_COUNTED}: the valid case {due.beside} was not answered"
            return Finding("fail", message)
    elif isinstance(due, Undefined) and answer.status == "outputs":
        return _judge_undefined(due.output, answer.outputs, twin.outputs)
    if answer.status != "rejected":
        return Finding("fail", f"accepted what must be rejected ({due_kind(due)})")
    if isinstance(due, Undefined):
        return Finding("pass")
    right = None if answer.kind is None else answer.kind == due.kind
    message = "" if right is not False else f"rejected as {answer.kind}, not as {due.kind}"
    return Finding("pass", message, kind_right=right)


def _judge_undefined(name: str, outputs: Mapping[str, Any], twins: Mapping[str, Any]) -> Finding:
    """Nothing finite, in an array like the twin's, or else it says nothing of this output."""
    output, like = outputs.get(name), twins.get(name)
    if output is None:
        return Finding("fail", f"{name} is absent", output=name)
    if like is None or output.shape != like.shape or output.dtype != like.dtype:
        form = "nothing" if like is None else f"{like.dtype} of shape {list(like.shape)}"
        got = f"{output.dtype} of shape {list(output.shape)}"
        return Finding("fail", f"{name} is {got}, beside {form}", output=name)
    if not output.size or bool(np.any(np.isfinite(output))):
        return Finding("fail", f"{name} has no value here, got {_shown(output)}", output=name)
    return Finding("pass")


def due_kind(due: Rejection | Undefined) -> str:
    """The kind of rejection that is due, in words."""
    return due.kind if isinstance(due, Rejection) else f"{due.output} is undefined"


def _check_forms(truth: CaseTruth, answers: Mapping[str, Answer], dtype: Dtype) -> Finding | None:
    """Everything that is due is there and has its form, and nothing else is there."""
    for (call, output), proven in truth.items():
        found = _check_form(answers[call].outputs, call, output, proven, dtype)
        if found is not None:
            return found
    for call, answer in answers.items():
        for output in answer.outputs:
            if (call, output) not in truth:
                name = dotted(call, output)
                return Finding("fail", f"{name} is there and should not be", output=name)
    return None


def _check_form(
    outputs: Mapping[str, Any], call: str, output: str, proven: Proven, dtype: Dtype
) -> Finding | None:
    """Presence, shape, dtype, then non-finite values: in this order, before any difference."""
    name = dotted(call, output)
    if output not in outputs:
        return Finding("fail", f"{name} is absent", output=name)
    got = outputs[output]
    if got.shape != proven.shape:
        message = f"{name} has shape {list(got.shape)}, not {list(proven.shape)}"
        return Finding("fail", message, output=name)
    wanted = dtype if proven.dtype == "real" else proven.dtype
    if got.dtype != np.dtype(wanted):
        return Finding("fail", f"{name} is {got.dtype}, not {wanted}", output=name)
    finite = np.isfinite(got)
    if finite.all():
        return None
    bad = np.isfinite(proven.bounds[dtype]) & ~finite
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        return Finding(
            "fail",
            f"{name} is not finite",
            ratio=math.inf,
            output=name,
            index=index,
            got=_number(got[index]),
            want=str(proven.text[index]),
            bound=float(proven.bounds[dtype][index]),
        )
    return None


def _compare(truth: CaseTruth, answer: Answer, dtype: Dtype) -> Finding:
    """Every element within its bound; the worst one is reported, pass or fail.

    The elements of all outputs are compared at once: most outputs have few.
    """
    outputs = [(output, answer.outputs[output], proven) for (_, output), proven in truth.items()]
    bound = _joined([proven.bounds[dtype] for *_, proven in outputs])
    with np.errstate(all="ignore"):
        error = _joined([proven.error(got) for _, got, proven in outputs])
        ratio = np.where(error == 0, 0.0, error / bound)
    judged = np.isfinite(bound)
    unknown = int(np.count_nonzero(~judged))
    without = f"{unknown} of {bound.size} without bound"
    if unknown == bound.size:
        return Finding("no-verdict", without) if unknown else Finding("pass", ratio=0.0)
    close = ratio <= 1
    failed = judged & ~close
    place = int(np.where(judged, np.where(np.isnan(ratio), np.inf, ratio), -1.0).argmax())
    ends = np.cumsum([got.size for _, got, _ in outputs])
    which = int(np.searchsorted(ends, place, side="right"))
    output, got, proven = outputs[which]
    index = np.unravel_index(place - int(ends[which]) + got.size, got.shape)
    worst = _at(output, tuple(int(i) for i in index), got, proven, float(error[place]), dtype)
    if failed.any():
        return msgspec.structs.replace(worst, verdict="fail")
    if unknown:
        return msgspec.structs.replace(worst, verdict="no-verdict", message=without)
    return worst


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([part.reshape(-1) for part in parts])


def _at(
    output: str,
    index: tuple[int, ...],
    got: np.ndarray,
    proven: Proven,
    error: float,
    dtype: Dtype,
) -> Finding:
    """The comparison of one element, in every unit the report shows."""
    want = float(proven.high[index])
    bound = float(proven.bounds[dtype][index])
    real = proven.dtype == "real"  # a whole number has neither ulps nor correct digits
    ulp = PRECISIONS[dtype].ulp(want)  # 0 where this process flushes subnormal numbers
    ratio = 0.0 if error == 0 else (error / bound if bound else math.inf)
    return Finding(
        "pass",
        message="" if ratio <= 1 else f"{output} is off by {error:.3g}",
        ratio=ratio,
        output=output,
        index=index,
        got=_number(got[index]),
        want=str(proven.text[index]),
        bound=bound,
        ulps=error / ulp if real and ulp else None,
        digits=_digits(error, want, PRECISIONS[dtype].decimal_digits) if real else None,
    )


def _digits(error: float, want: float, most: float) -> float | None:
    """How many digits are right, of ``most`` that there are; None for a zero, which has none."""
    if not want:
        return None
    return most if error == 0 else max(0.0, min(-math.log10(error / abs(want)), most))


def _judge_relations(
    due: Relations, dtype: Dtype, truth: CaseTruth, answers: Mapping[str, Answer]
) -> Finding:
    """Every relation holds; the first that fails is reported, else the nearest to failing."""
    outputs = {key: answers[key[0]].outputs[key[1]] for key in truth}
    worst: Measured | None = None
    for relation in due.relate:
        measured = measure(relation, outputs, truth, dtype)
        if measured.ratio is None:
            return Finding("no-verdict", measured.message)
        if not measured.ratio <= 1:
            return Finding(
                "fail",
                measured.message,
                ratio=measured.ratio,
                output=measured.output,
                index=measured.index,
                got=measured.got,
                want=measured.want,
                bound=measured.bound,
            )
        if worst is None or worst.ratio is None or measured.ratio > worst.ratio:
            worst = measured
    assert worst is not None  # a case with relations has at least one
    return Finding("pass", ratio=worst.ratio, output=worst.output, index=worst.index)


def _number(value: Any) -> str:
    """The shortest decimal that reads back as ``value`` in its own dtype."""
    text = str(value)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def _shown(output: np.ndarray) -> str:
    flat = [_number(value) for value in output.reshape(-1)[:4]]
    return ", ".join(flat) + (", …" if output.size > len(flat) else "")
