"""A reproducer of whole numbers has all their digits, and takes no one beside the right one."""

import subprocess
import sys

import pytest

from conformance.command import reproducer
from conformance.command.showing import heading
from conformance.frozen import thaw
from conformance.model import Call, Case, Values
from conformance.specification import load
from conformance.truth.checking.freeze import freeze_case
from conformance.truth.proof.prove import prove

SPEC = load()
CASE = Case(
    id="a/b",
    title="t",
    operation="splitmix64",
    mode="evaluate",
    clauses=(),
    sources=(),
    calls={"": Call(given={"random_seed": 1234567, "count": 1}, outputs=("values",))},
    expectation=Values(),
    dtypes=("float64",),
    free="because",
)


@pytest.mark.parametrize(("answer", "word"), [(0, "passes"), (1, "fails")])
def test_a_neighbour_in_the_last_bit_fails(monkeypatch, answer, word):
    """The nearest double of 6457827717110365317 is that of its neighbours too."""
    truth = thaw(freeze_case(CASE, prove(CASE, SPEC.operations["splitmix64"])))

    class Frozen:
        def __init__(self, _folder):
            pass

        def of(self, _case):
            return truth

    monkeypatch.setattr(reproducer, "Truth", Frozen)
    text = reproducer.reproducer(CASE, SPEC, "float64")
    assert "def splitmix64(random_seed, count):" in text
    assert "np.array([6457827717110365317], dtype=np.uint64)" in text
    body = f"return {{'values': np.array([{6457827717110365317 + answer}], dtype=np.uint64)}}"
    place = text.index("raise NotImplementedError")
    done = text[:place] + body + text[text.index("\n", place) :]
    told = subprocess.run([sys.executable, "-c", done], capture_output=True, text=True, check=True)
    assert told.stdout == f"values {word}\n"


def test_a_case_says_which_outputs_it_asks_for_and_why_they_are_free():
    """Before what is due."""
    lines = list(heading(CASE, SPEC))
    assert "  asked for values" in lines
    assert "  free, only relations are judged: because" in lines
