"""What can be said of a wrong answer that no known mistake gives, from answer and truth alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from conformance.diagnosis.fitted import fitted_epsilon
from conformance.frozen import CaseTruth, Proven
from conformance.model import Answer, Question
from conformance.precision import PRECISIONS, Dtype

#: Narrower formats than the two that are judged, by their significant bits, and what has them.
_NARROWER = {8: "bfloat16", 11: "TF32 or float16", 24: "float32"}

#: Below this multiple of the bound an error is too small to tell a factor from rounding.
_PLAIN = 64.0

#: The worst error of a narrower format spends about this share of the bound it would have there.
_SPENT = (2.0**-8, 2.0**-2)


def hint(truth: CaseTruth, answer: Answer, dtype: Dtype, question: Question | None = None) -> str:
    """One clause about what is wrong with the outputs of the only call; empty if nothing shows.

    Said of the first output that is wrong and of which anything can be said. With the
    ``question`` it is told which epsilon would have given the answer.
    """
    if any(each.dtype not in (np.dtype(dtype), np.int64) for each in answer.outputs.values()):
        return ""  # the dtype is what is wrong, and has been told
    epsilon = question and fitted_epsilon(truth, answer, question)
    if question and epsilon and not np.isclose(epsilon, question.arguments["eps"], rtol=0.02):
        return f"y is what an epsilon of {epsilon:g} gives"
    for (_, output), right in truth.items():
        got = answer.outputs.get(output)
        if isinstance(got, np.ndarray) and right.dtype != "real" and _counted_short(got, right):
            return f"{output} is what 32 bits hold of the right number"
        if not isinstance(got, np.ndarray) or got.dtype != np.dtype(dtype):
            continue
        wrong = got.shape == right.shape and not _close(got, right, right.bounds[dtype])
        given = wrong and question and _handed_back(got, question)
        if given:
            return f"{output} is {given}, as it was given"
        with np.errstate(all="ignore"):
            for text in _about(right, got.astype(np.float64), dtype):
                if question and question.operation == "train" and "as far off as" in text:
                    continue  # the steps of a training take an error of any kind there
                return f"{output} {text}"
    return ""


def _counted_short(got: np.ndarray, right: Proven) -> bool:
    """Whether whole numbers are wrong, and in their last 32 bits right, where they end."""
    if got.shape != right.shape or got.dtype.kind not in "iu":
        return False
    pairs = [(int(a), int(b)) for a, b in zip(got.flat, right.text.flat, strict=True)]
    short = all(-(2**31) <= a < 2**32 and (a - b) % 2**32 == 0 for a, b in pairs)
    return short and any(a != b for a, b in pairs)


def _handed_back(got: np.ndarray, question: Question) -> str:
    """What of the question an output of several numbers is; empty where it is none of it."""
    given = [("the upstream gradient", array) for array in question.upstream.values()]
    for name, value in question.arguments.items():
        given += value.items() if isinstance(value, Mapping) else [(name, value)]
    for name, array in given:
        if isinstance(array, np.ndarray) and got.size > 1 and np.array_equal(got, array):
            return name
    return ""


def _about(right: Proven, got: np.ndarray, dtype: Dtype) -> Iterator[str]:
    """What can be said of one output, the most telling first."""
    bound = right.bounds[dtype]
    if got.ndim > 1 and got.shape != right.shape:
        if got.shape == (*right.shape[:-2], *right.shape[:-3:-1]) and _close(
            np.swapaxes(got, -1, -2), right, bound
        ):
            yield "has its last two axes exchanged"
        return
    if got.shape != right.shape or not got.size or not np.all(np.isfinite(bound)):
        return
    wrong = ~(np.abs((got - right.high) - right.low) <= bound)
    if not np.any(wrong):
        return
    if not np.all(np.isfinite(got)):
        yield from _about_places(wrong)
        return
    if _close(-got, right, bound):
        yield "has the opposite sign throughout"
    square = got.ndim > 1 and got.shape[-1] == got.shape[-2]
    if square and _close(np.swapaxes(got, -1, -2), right, bound):
        yield "has its last two axes exchanged"
    yield from _about_factor(right, got, bound)
    yield from _about_places(wrong)
    yield from _about_format(right, got, dtype)


def _close(got: np.ndarray, right: Proven, bound: np.ndarray) -> bool:
    return bool(np.all(np.abs((got - right.high) - right.low) <= bound))


def _about_factor(right: Proven, got: np.ndarray, bound: np.ndarray) -> Iterator[str]:
    """A constant factor or a constant difference; it takes two elements to see one."""
    place = np.unravel_index(int(np.argmax(np.abs(right.high))), right.shape)
    if not abs(got[place] - right.high[place]) > _PLAIN * bound[place]:
        return
    if np.sum(right.high != 0) > 1:
        factor = got[place] / right.high[place]
        off = np.abs(got - factor * right.high)
        if _number(factor) not in {"0", "-0", "1"} and np.all(off <= 2 * (1 + abs(factor)) * bound):
            yield f"is {_number(factor)} times what it should be, throughout"
    if got.size > 1:
        difference = got - right.high
        middle = float(np.median(difference))
        if np.all(np.abs(difference - middle) <= 2 * bound):
            yield f"is off by {_number(middle)} throughout"


def _about_places(wrong: np.ndarray) -> Iterator[str]:
    """Positions that are right, or wrong, all by themselves."""
    if wrong.ndim < 2 or wrong.shape[-2] < 2:
        return
    positions = np.asarray(wrong.any(axis=(*range(wrong.ndim - 2), wrong.ndim - 1)))
    for name, place in (("first", 0), ("last", -1)):
        others = np.delete(positions, place)
        if not positions[place] and np.all(others):
            yield f"is right at the {name} position and at no other"
        if positions[place] and not np.any(others):
            yield f"is wrong at the {name} position and at no other"


def _about_format(right: Proven, got: np.ndarray, dtype: Dtype) -> Iterator[str]:
    """Values that a narrower format holds, or an error of the size that it makes."""
    own = PRECISIONS[dtype].digits
    several = got[got != 0].size > 1
    for bits, name in _NARROWER.items():
        if not (bits < own and several):
            continue
        held, due = (np.array_equal(_cut(each, bits), each) for each in (got, right.high))
        if held and not due:  # the right values may have as few digits
            yield f"holds no more digits than {name}"
            return
    error = np.abs((got - right.high) - right.low)
    for bits, name in reversed(_NARROWER.items()):
        if not 8 < bits < own:  # much else is off by as much as eight bits are
            continue
        widened = right.bounds[dtype] * 2.0 ** (own - bits)
        share = float(np.max(np.where(error == 0, 0.0, error / widened)))
        if _SPENT[0] <= share <= _SPENT[1]:
            yield f"is as far off as a computation in {name} would be"
            return


def _cut(values: np.ndarray, bits: int) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits))


def _number(value: float) -> str:
    """A fraction of small numbers where it is one, else six digits."""
    simple = Fraction(value).limit_denominator(64)
    if simple.denominator > 1 and abs(float(simple) - value) <= 1e-6 * abs(value):
        return str(simple)
    return f"{value:.6g}"
