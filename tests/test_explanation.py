"""``conformance explain`` shows how a case comes to its values; its reproducer stands alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from conformance.backends.numpy import NumpyBackend
from conformance.errors import UsageError
from conformance.explanation import explain
from conformance.harness.connection import InProcess
from conformance.reproducer import reproducer
from conformance.specification import load

SPEC = load()


class SampleVariance(NumpyBackend):
    """Divides by d - 1, written without a look at the fault."""

    name = "sample"

    def layer_norm(self, x, gamma, beta, *, eps):
        centred = x - x.mean(axis=-1, keepdims=True)
        total = (centred * centred).sum(axis=-1, keepdims=True)
        return gamma * centred / np.sqrt(total / max(1, x.shape[-1] - 1) + eps) + beta


def text(case, backend=None):
    connection = None if backend is None else InProcess(backend)
    return "\n".join(explain(case, SPEC, connection))


def test_layer_norm_is_derived_in_its_named_quantities():
    """Mean, centred values, variance, root and standardised values of (1, 3) are shown in order."""
    shown = text("layer-norm/two-features")
    places = [
        shown.index(line)
        for line in (
            "mean = [2]",
            "centre = [-1, 1]",
            "variance = [1]",
            "root = [1.00000499999]",
            "standardise = [-0.999995000037, 0.999995000037]",
            "layer norm = [-0.999995000037, 0.999995000037]",
        )
    ]
    assert places == sorted(places)


def test_linear_shows_every_product_and_every_positions_part_of_the_gradients():
    """For the linear layer: each product and sum, and what each position adds to a gradient."""
    shown = text("linear/two-tokens-gradients")
    assert "position 0, feature 0: (1)(1) + (2)(2) = 5" in shown
    assert "weight gradient = [[0.5, -2, -2], [3.5, 6, 1]]" in shown
    assert "position 1 adds [[-0.5, -2, -1], [1.5, 6, 3]]" in shown
    assert "bias gradient = [1.5, 2, 0]" in shown


def test_each_known_mistake_that_shows_is_listed_with_what_it_gives():
    """A mistake that the case separates is named with its size and its wrong value."""
    shown = text("layer-norm/two-features")
    assert "sample-variance: The variance was divided by d - 1" in shown
    assert "y = [-0.707105013426, 0.707105013426]" in shown
    assert "tanh-gelu" not in shown


def test_an_answer_stands_beside_with_its_verdict_and_diagnosis():
    """With a backend, its answer, the verdict and the mistake that gives it are shown."""
    shown = text("layer-norm/seventeen-features", SampleVariance())
    assert "sample in float64" in shown
    assert ": fail" in shown
    assert "sample-variance" in shown.partition("sample in float64")[2]
    assert ": pass" in text("layer-norm/two-features", NumpyBackend())


@pytest.mark.parametrize(
    ("case", "line"),
    [
        ("linear/weight-of-rank-one", "rejected as weight-rank: the weight has rank 1, not 2"),
        ("layer-norm/no-eps-constant", "y is 0/0 or infinite: it has no value"),
    ],
)
def test_what_has_no_value_is_explained_too(case, line):
    """A rejection shows its kind, an undefined case says that there is no value."""
    assert line in text(case)


def test_every_case_can_be_explained():
    """No case of the specification is beyond explanation (one of each operation, mode and kind)."""
    seen = set()
    for case in SPEC.cases.values():
        kind = (case.operation, case.mode, type(case.expectation))
        if kind not in seen:
            seen.add(kind)
            assert case.id in text(case.id)


def test_an_unknown_case_is_a_users_mistake():
    """An id that is not there is refused with near ones."""
    with pytest.raises(UsageError, match=r"no case 'layer-norm/two-featurs'\n  near ids: layer-"):
        text("layer-norm/two-featurs")


@pytest.mark.parametrize(
    ("case", "body", "passes"),
    [
        ("gelu/pair", "return {'y': x * np.array([erfc(-v / 2**0.5) / 2 for v in x])}", True),
        ("gelu/pair", "return {'y': np.maximum(x, 0)}", False),
    ],
)
def test_the_reproducer_is_a_file_that_needs_only_numpy(tmp_path, case, body, passes):
    """With an implementation filled in, the printed file says passes or fails by itself."""
    source = reproducer(SPEC.cases[case], SPEC, "float64")
    lines = source.splitlines()
    start = lines.index('    raise NotImplementedError("return a dict of arrays: y")')
    lines[start] = f"    {body}"
    path = tmp_path / "reproduce.py"
    path.write_text("from math import erfc\n" + "\n".join(lines))
    command = [sys.executable, "-I", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.startswith(f"y {'passes' if passes else 'fails'} error / bound at most")
    assert "conformance" not in source


def test_a_case_without_values_has_no_reproducer():
    """A relation or rejection can't be reproduced as values, and says so."""
    case = next(case for case in SPEC.cases.values() if len(case.calls) > 1)
    with pytest.raises(UsageError, match="expects no values"):
        reproducer(case, SPEC, "float64")
