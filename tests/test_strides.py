"""How arrays are laid out in memory on their way to a backend, and what careless code reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import conformance
from conformance.backends.numpy import NumpyBackend
from conformance.command.reproducer import reproducer
from conformance.harness.ask import ask
from conformance.model import Question
from conformance.questions import question
from conformance.questions.strides import (
    GAP,
    LAYOUTS,
    laid_out,
    read_from_start,
    read_without_offset,
    read_without_strides,
)
from conformance.report.causes import root_causes
from conformance.specification import load
from conformance.truth.effects.misread import question_as_read
from conformance.truth.faults.memory import StridesIgnored
from conformance.truth.reference import Reference

SPECIFICATION = load()
WRONG = Path(__file__).parent / "adapters" / "wrong" / "memory.py"
SHAPES = [(), (1,), (7,), (0, 3), (2, 3), (2, 3, 5), (3, 1, 2, 4)]
DTYPES = ["float64", "float32", "int64", "bool"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_layout_changes_nothing_but_places_in_memory(layout, shape, dtype):
    """Dtype, shape and elements are those that were given, in memory of its own, to be written."""
    given = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    found = laid_out(given, layout)
    assert (found.dtype, found.shape) == (given.dtype, given.shape)
    assert found.tobytes() == given.tobytes()
    assert not np.shares_memory(found, given)
    assert found.flags.writeable


def test_each_layout_is_what_it_is_called():
    """The strides, in elements, of two rows of three; the slice begins at the second element."""
    given = np.arange(6.0).reshape(2, 3)
    steps = {layout: np.array(laid_out(given, layout).strides) // 8 for layout in LAYOUTS}
    assert {layout: step.tolist() for layout, step in steps.items()} == {
        "contiguous": [3, 1], "transposed": [1, 2], "sliced": [6, 2], "padded": [5, 1],
        "mixed": [3, 1],
    }  # fmt: skip
    assert laid_out(given, "padded").base.tolist() == [[GAP, 0, 1, 2, GAP], [GAP, 3, 4, 5, GAP]]
    buffer = laid_out(given, "sliced").base
    assert buffer.tolist() == [GAP, 0, GAP, 1, GAP, 2, GAP, 3, GAP, 4, GAP, 5, GAP]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_careless_code_reads_what_lies_there(shape):
    """What is said of memory is what memory holds, looked at through the buffer itself."""
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for layout in LAYOUTS:
        view = laid_out(numbers, layout)
        owner = view if view.base is None else view.base
        memory = np.where((held := owner.ravel(order="K")) == GAP, -1, held)
        first = 1 if layout == "sliced" or (layout == "padded" and shape) else 0
        size = numbers.size
        assert read_without_strides(shape, layout).ravel().tolist() == [*memory[first:][:size]]
        assert read_from_start(shape, layout).ravel().tolist() == [*memory[:size]]
        moved = numbers if layout != "sliced" else np.full(shape, -1)
        if layout == "padded" and shape:
            moved = np.where(owner[..., :-2] == GAP, -1, owner[..., :-2])
        assert np.array_equal(read_without_offset(shape, layout), moved)


class Looks(NumpyBackend):
    """Right answers; notes how what it is given lies in memory."""

    def __init__(self):
        self.contiguous = []

    def to_native(self, array):
        self.contiguous.append(array.flags.c_contiguous)
        return array


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_backend_gets_its_arrays_in_the_layout_of_the_question(layout):
    """Arguments and upstream alike, and maps of arrays as well."""
    x = np.arange(6.0).reshape(2, 3)
    backend = Looks()
    asked = Question(
        operation="residual_add", mode="vjp", dtype="float64", layout=layout,
        arguments={"x": x, "increment": x}, upstream={"y": x}, wrt=("x",),
    )  # fmt: skip
    assert ask(backend, asked).status == "outputs"
    expected = [True, False, False] if layout == "mixed" else [layout == "contiguous"] * 3
    assert backend.contiguous == expected


@pytest.mark.parametrize("name", ["CountsOnContiguousArrays", "TakesTheStorage", "LosesTheOffset"])
def test_a_child_lays_its_arrays_out_itself(name):
    """Behind a pipe, where arrays travel as numbers, code that ignores strides fails as well."""
    (report,) = conformance.run(
        [f"{WRONG}:{name}"], select=["*sliced*", "linear/two-tokens"], dtypes=["float64"]
    )
    failed = {verdict.case for verdict in report.verdicts if verdict.verdict == "fail"}
    assert failed == {case for case in SPECIFICATION.cases if "sliced" in case}
    (cause,) = root_causes(report.verdicts).roots
    assert cause.diagnosis.clause == "ARG-LAYOUT"


def test_a_failure_says_how_the_arguments_lay():
    """The same numbers may pass elsewhere: the layout is where to look."""
    (report,) = conformance.run(
        ["fault:strides-ignored"], select=["gelu/transposed-argument", "gelu/rank-three"]
    )
    told = {verdict.case: verdict.message for verdict in report.verdicts}
    assert told["gelu/transposed-argument"].endswith("; the arguments were transposed")
    assert not told["gelu/rank-three"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["strides-ignored", "storage-read-from-start", "offset-ignored"])
def test_a_mistake_of_layout_changes_no_contiguous_question(name, dtype):
    """As a backend it is right wherever memory is the array."""
    laid_out = {case.family for case in SPECIFICATION.cases.values() if case.layout != "contiguous"}
    select = [f"{family}/*" for family in sorted(laid_out)]
    (report,) = conformance.run([f"fault:{name}"], select=select, dtypes=[dtype])
    failed = {verdict.case for verdict in report.verdicts if verdict.verdict == "fail"}
    assert failed
    assert all(SPECIFICATION.cases[case].layout != "contiguous" for case in failed)


def test_a_mistake_of_layout_looks_into_maps_of_arrays():
    """Parameters that come as a map lie in memory as other arguments do."""
    x = np.arange(6.0).reshape(2, 3)
    asked = Question(
        operation="block", mode="evaluate", dtype="float64", layout="transposed",
        arguments={"parameters": {"weight": x}, "heads": 2}, outputs=("y",),
    )  # fmt: skip
    read = question_as_read(StridesIgnored(), asked).arguments
    assert read["heads"] == 2
    assert read["parameters"]["weight"].tolist() == [[0, 3, 1], [4, 2, 5]]
    assert question_as_read(Reference(), asked) is asked


@pytest.mark.parametrize("case", ["linear/transposed-arguments", "layer-norm/gradients-sliced"])
def test_a_reproducer_lays_its_arrays_out(case):
    """The file that reproduces a failure hands over arrays as the kit does."""
    one = SPECIFICATION.cases[case]
    code = reproducer(one, SPECIFICATION, "float64").partition("# What is right")[0]
    code += "\nimport json\nprint(json.dumps({'x': x.tolist(), 'strides': x.strides}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    asked = question(one, SPECIFICATION.operations[one.operation], "", "float64", {})
    x = laid_out(asked.arguments["x"], one.layout)
    assert found == {"x": x.tolist(), "strides": list(x.strides)}
