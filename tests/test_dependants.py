"""What came to no numbers follows from an operation below it that came to none in the same way."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import conformance
from conformance import Adapter
from conformance.backends.numpy import NumpyBackend
from conformance.errors import UsageError
from conformance.harness.load import load as load_backend
from conformance.judging.dependants import with_reasons
from conformance.report.causes import root_causes
from conformance.report.text import cause_lines
from conformance.running.options import Options
from conformance.specification import load
from tests import running
from tests.reports.conftest import bare, failing, passing, report

OPERATIONS = load().operations
REFUSED = "rejected valid arguments: no kernel"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    running.own_cache(monkeypatch, tmp_path_factory)


def broken(operation, verdict="crash", message="exited with code 1", **changes):
    return bare(f"{operation}/one", verdict, message, operation=operation, **changes)


@pytest.mark.parametrize(
    ("below", "above", "because"),
    [
        (broken("softmax"), broken("causal_attention"), "softmax"),
        (broken("softmax"), broken("block"), "softmax"),
        (broken("softmax", "timeout"), broken("decoder", "timeout"), "softmax"),
        (broken("embed", "error", "NameError"), broken("decoder", "error", "NameError"), "embed"),
        (broken("layer_norm", "fail", REFUSED), broken("block", "fail", REFUSED), "layer_norm"),
        # another way to end, another dtype, an operation that is not below, a failure in numbers
        (broken("softmax", "timeout"), broken("causal_attention"), None),
        (broken("softmax", dtype="float32"), broken("causal_attention"), None),
        (broken("gelu"), broken("causal_attention"), None),
        (broken("softmax", "fail", "accepted what must be rejected (rank)"),
         broken("block", "fail", REFUSED), None),
        (failing("softmax/one", operation="softmax"), broken("causal_attention"), None),
        (passing("softmax/one", operation="softmax"), broken("causal_attention"), None),
    ],
)  # fmt: skip
def test_what_breaks_is_because_of_the_deepest_that_breaks_so(below, above, because):
    """A crash of a crash, a timeout of a timeout, an error of an error, a refusal of a refusal."""
    for given in ((below, above), (above, below)):
        found = {each.operation: each.because for each in with_reasons(given, OPERATIONS)}
        assert found == {below.operation: None, above.operation: because}


def test_the_deepest_is_told_first():
    """However few its crashes are beside those of what is built on it."""
    verdicts = [*[broken("causal_attention")] * 9, broken("softmax"), *[broken("block")] * 5]
    verdicts = with_reasons(verdicts, OPERATIONS)
    (cause,) = root_causes(verdicts).roots
    assert {each.operation for each in cause.failures} == {"softmax"}
    lines = cause_lines(report(*verdicts))
    assert lines[1].startswith("1. softmax crash: 1 of 15 failures")
    assert "dependants: causal_attention 9, block 5; mend softmax first" in lines


class NoKernel(Adapter):
    """A softmax without a kernel for rows of two, and an attention that is made with it."""

    def softmax(self, x):
        if x.shape[-1] == 2:
            raise TypeError("no kernel for rows of two")
        powers = np.exp(x - x.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        self.softmax(np.zeros((2, 2), x.dtype))
        return x


def test_a_run_says_so():
    """The verdicts of a run have it, those that need no diagnosis too."""
    select = ["softmax/quarters", "attention/five-positions"]
    (found,) = conformance.run([NoKernel()], select=select)
    above = [each for each in found.verdicts if each.operation == "causal_attention"]
    refused = [each for each in above if each.message.startswith("rejected valid arguments")]
    assert {each.because for each in refused} == {"softmax"}


def test_an_object_is_called_as_its_own_class_calls_it():
    """A name that is inherited is another's: beside that other, both can be told apart."""

    class Mine(NumpyBackend):
        pass

    class Named(NumpyBackend):
        name = "my own"

    own = Mine()
    own.name = "this one"
    names = ["numpy", "Mine", "my own", "this one"]
    reports = conformance.run(
        ["numpy", Mine(), Named(), own], select=["gelu/pair"], options=Options(in_process=True)
    )
    assert [each.backend.name for each in reports] == names


def test_a_module_of_the_current_folder_is_found(tmp_path, monkeypatch):
    """Where Python itself does not look there, as for an installed command; and last of all."""
    (tmp_path / "found_here.py").write_text(
        "from conformance.backends.numpy import NumpyBackend\nclass Mine(NumpyBackend): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != ""])
    assert load_backend("found_here:Mine").name == "found_here"
    assert sys.path[-1] == str(tmp_path)


@pytest.mark.parametrize(
    ("backends", "dtypes", "told"),
    [
        ([3], ("float64",), "3 is no backend"),
        (["numpy"], ("float16",), "there is no dtype 'float16'"),
        (["numpy"], (), "there are no dtypes"),
    ],
)
def test_what_no_run_can_be_made_with_is_refused(backends, dtypes, told):
    """From Python as from the command line."""
    with pytest.raises(UsageError, match=told):
        conformance.run(backends, select=["gelu/pair"], dtypes=dtypes)


def test_what_was_not_asked_answers_for_nothing(tmp_path):
    """Without a gradient, an operation that crashes has no gradient that was picked."""
    path = tmp_path / "dies.py"
    path.write_text(
        "import os, conformance\n"
        "class Dies(conformance.Adapter):\n"
        "    def gelu(self, x):\n"
        "        os._exit(1)\n"
    )
    (found,) = conformance.run([str(path)], select=["gelu"])
    assert found.totals["fail"] == 0
    assert {each.verdict for each in found.verdicts if each.mode == "evaluate"} == {"crash"}
    assert found.totals["unsupported"] > 0


def test_patience_is_carried_on(tmp_path, monkeypatch):
    """What ended an operation in the earlier run has ended it in the one that goes on."""
    monkeypatch.setenv("ASKED", os.devnull)
    command = [running.vice("exits_at_once")]
    select = ["gelu/"]
    (whole,) = conformance.run(command, select=select, out=tmp_path)
    running.cut(tmp_path / "exits_at_once.json", 8)
    (resumed,) = conformance.run(command, select=select, out=tmp_path, options=Options(resume=True))
    assert resumed == whole
