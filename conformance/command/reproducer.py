"""A failing case as a file of its own: the numbers, what is right, what is allowed. Needs NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from conformance.errors import UsageError
from conformance.frozen import Proven, Truth
from conformance.model import Case, Layout, Values
from conformance.precision import Dtype
from conformance.questions import question
from conformance.questions.strides import laid_out, of_place
from conformance.specification import Specification


def reproducer(case: Case, specification: Specification, dtype: Dtype) -> str:
    """A Python file that asks one function what the case asks, and compares.

    Raises UsageError for a case that has no values of a single call to compare with.
    """
    if not isinstance(case.expectation, Values):
        raise UsageError(
            f"{case.id} expects no values", "only a case with values can be reproduced"
        )
    if dtype not in case.dtypes:
        raise UsageError(f"{case.id} is not judged in {dtype}", f"name {case.dtypes[0]}")
    return "\n".join(_lines(case, specification, dtype)) + "\n"


def _lines(case: Case, specification: Specification, dtype: Dtype) -> Iterator[str]:
    operation = specification.operations[case.operation]
    asked = question(case, operation, "", dtype, {})
    assert asked is not None  # a single call takes no other's output
    truth = Truth(Path(specification.root) / "truth").of(case)
    name = operation.name if asked.mode == "evaluate" else f"{operation.name}_vjp"
    arguments = ", ".join(asked.arguments)
    leading = "upstream, " if asked.mode == "vjp" else ""
    yield f'"""{case.id} in {dtype}: {case.title}. {operation.summary}."""'
    yield ""
    yield "import numpy as np"
    yield ""
    for place, (argument, value) in enumerate(asked.arguments.items()):
        yield f"{argument} = {_literal(value, asked.layout, place)}"
    for value in asked.upstream.values():
        yield f"upstream = {_literal(value, asked.layout, 1)}"
    yield ""
    yield "# What is right (the nearest double), and the largest error that is allowed."
    yield f"want = {{{_entries({key[1]: _right(proven) for key, proven in truth.items()})}}}"
    yield f"bound = {{{_entries({key[1]: p.bounds[dtype] for key, p in truth.items()})}}}"
    yield ""
    yield ""
    yield f"def {name}({leading}{arguments}):"
    wanted = ", ".join(key[1] for key in truth)
    yield f'    raise NotImplementedError("return a dict of arrays: {wanted}")'
    yield ""
    yield ""
    yield f"got = {name}({leading}{arguments})"
    yield "for key, right in want.items():"
    if any(proven.dtype != "real" for proven in truth.values()):
        yield "    if right.dtype.kind in 'iu':  # whole numbers are right or wrong"
        yield '        print(key, "passes" if np.array_equal(got[key], right) else "fails")'
        yield "        continue"
    yield "    error = np.abs(np.asarray(got[key], dtype=np.float64) - right)"
    yield '    with np.errstate(divide="ignore", invalid="ignore"):  # a bound of 0 allows no error'
    yield "        ratio = np.max(np.where(error == 0, 0, error / bound[key]), initial=0.0)"
    yield '    print(key, "passes" if ratio <= 1 else "fails", "error / bound at most", ratio)'


def _right(proven: Proven) -> np.ndarray:
    """The nearest doubles, or all digits of whole numbers."""
    if proven.dtype == "real":
        return proven.high
    numbers = [int(text) for text in proven.text.reshape(-1)]
    return np.array(numbers, dtype=proven.dtype).reshape(proven.shape)


def _literal(value: Any, layout: Layout = "contiguous", place: int = 0) -> str:
    """NumPy code for ``value``, the argument at ``place``, in memory as the layout says."""
    if isinstance(value, dict):
        entries = (
            f"    {name!r}: {_literal(item, layout, within)},\n"
            for within, (name, item) in enumerate(value.items())
        )
        return f"{{\n{''.join(entries)}}}"
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.size == 0:
        return f"np.zeros({value.shape}, dtype=np.{value.dtype})"
    layout = of_place(layout, place)
    if layout == "padded" and value.ndim:
        buffer = laid_out(value, layout).base
        assert buffer is not None  # it is a part of one
        return f"{_literal(buffer)}[..., 1:-1]"
    if layout == "sliced":
        buffer = laid_out(value, layout).base
        assert buffer is not None  # a slice is one of something
        return f"{_literal(buffer)}[1::2].reshape({value.shape})"
    order = ', order="F"' if layout == "transposed" else ""
    return f"np.array({value.tolist()!r}, dtype=np.{value.dtype}{order})"


def _entries(arrays: dict[str, np.ndarray]) -> str:
    return ", ".join(f"{name!r}: {_literal(array)}" for name, array in arrays.items()).replace(
        "inf", "np.inf"
    )
