"""``conformance init`` writes an adapter that runs as it is and grows by taking comments away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import conformance
from conformance.command.scaffold import adapter_text, write_adapter
from conformance.command.terminal import workflow_commands
from conformance.errors import UsageError
from conformance.specification import load

OPERATIONS = load().operations


@pytest.mark.parametrize("base", [None, "numpy", "torch", "jax"])
def test_a_written_adapter_is_judged_as_it_is(tmp_path, base):
    """The one operation that is implemented passes; without a base the rest is unsupported."""
    path = tmp_path / "my_backend.py"
    write_adapter(path, OPERATIONS, base)
    (report,) = conformance.run([str(path)], select=["residual/", "gelu/nega"])
    assert report.backend.name == "my_backend"
    by_operation = {
        v.operation: {w.verdict for w in report.verdicts if w.operation == v.operation}
        for v in report.verdicts
    }
    assert by_operation["residual_add"] == {"pass"}
    assert by_operation["gelu"] == ({"unsupported"} if base is None else {"pass"})


def test_every_operation_is_there_with_its_arguments():
    """Each operation of the catalogue has a method with its arguments, and one for its gradient
    if it has any."""
    text = adapter_text(Path("a.py"), OPERATIONS, None)
    for name, operation in OPERATIONS.items():
        assert re.search(rf"^    (# )?def {name}\(\s*(# *)?self", text, re.MULTILINE)
        method = rf"^    (# )?def {name}_vjp\(\s*(# *)?self, upstream"
        gradient = re.search(method, text, re.MULTILINE)
        assert (gradient is not None) == bool(operation.differentiable)
    assert "def train_vjp" not in text


def test_taking_all_comment_signs_away_leaves_python(tmp_path):
    """An adapter without its comment signs is a Python file with every operation."""
    text = adapter_text(tmp_path / "a.py", OPERATIONS, None)
    bare = re.sub(r"^    # ?", "    ", text, flags=re.MULTILINE)
    namespace: dict[str, object] = {}
    exec(compile(bare, "a.py", "exec"), namespace)  # noqa: S102 -- our own text
    backend = namespace["A"]()
    assert set(OPERATIONS) <= set(backend.describe().operations)
    names = {"head": 1, "final_norm.beta": 2}
    trained = backend.train(0, 0, {}, **dict.fromkeys(OPERATIONS["train"].attributes, 0))
    assert trained.keys() == OPERATIONS["train"].outputs.keys()
    assert trained["gradient_norms"] == {"name": ...}
    assert backend.splitmix64(random_seed=1, count=2) is None  # one result is returned as it is
    assert set(backend.decoder_vjp(0, 0, names, heads=1, eps=1)) == set(names)


@pytest.mark.parametrize("operation", ["block", "decoder", "decoder_loss"])
def test_parameters_are_there_with_their_names_and_shapes(operation):
    """An operation on parameters says what the dict holds, each name beside its shape, and that
    gradients come back under the same names."""
    text = adapter_text(Path("a.py"), OPERATIONS, None)
    method = text.partition(f"def {operation}(self")[2].partition(f"def {operation}_vjp(")
    for name, shape in OPERATIONS[operation].arguments["parameters"].shapes.items():
        assert f"{name} {shape}" in method[0]
    assert ("K = 0, 1, …" in method[0]) == (operation != "block")
    assert "name: ... for name in parameters" in method[2].partition("# def ")[0]


def test_what_is_int64_says_so():
    """Tokens and targets, which come in one dtype whatever the run's, are told apart."""
    text = adapter_text(Path("a.py"), OPERATIONS, None)
    assert "tokens int64 [B, T], token_embedding [V, d]" in text
    assert "logits [..., V], targets int64 [...] -> loss []" in text
    assert "-> values uint64 [count]" in text
    assert text.count("in the dtype self.run_dtype") == 2  # initialize, initialize_linear
    assert "-> shapes by name: int64 [rank], count int64 []" in text


def test_no_line_is_wider_than_code_may_be():
    """Without its comment signs, whatever the number of arguments and shapes."""
    lines = adapter_text(Path("a.py"), OPERATIONS, None).splitlines()
    assert max(len(re.sub("^    # ", "    ", line)) for line in lines) <= 100


def test_nothing_is_overwritten(tmp_path):
    """A file that exists, and a name that is no Python file, are refused with what to do."""
    path = tmp_path / "mine.py"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists\n  name a new file"):
        write_adapter(path, OPERATIONS)
    assert path.read_text() == "mine"
    with pytest.raises(UsageError, match="is no Python file"):
        write_adapter(tmp_path / "mine.txt", OPERATIONS)


def test_failures_become_workflow_commands(tmp_path):
    """In GitHub Actions a failure is one ::error line; its text keeps its lines as %0A."""
    path = tmp_path / "wrong.py"
    path.write_text(
        "from conformance.backends.numpy import NumpyBackend\n"
        "class Wrong(NumpyBackend):\n"
        "    def gelu(self, x):\n"
        "        return x * (x > 0)\n"
    )
    (report,) = conformance.run([str(path)], select=["gelu/negative-side"])
    lines = list(workflow_commands(report))
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("::error title=wrong%3A gelu/negative-side::gelu/negative-side")
        assert "%0A" in line
        assert "\n" not in line


def test_every_cause_is_among_the_workflow_commands(tmp_path):
    """GitHub shows ten: the worst of each cause comes before the others of the first."""
    path = tmp_path / "wrong.py"
    path.write_text(
        "from conformance.backends.numpy import NumpyBackend\n"
        "class Wrong(NumpyBackend):\n"
        "    def gelu(self, x):\n"
        "        return x * (x > 0)\n"
        "    def residual_add(self, x, increment):\n"
        "        return x - increment\n"
    )
    (report,) = conformance.run([str(path)], select=["gelu/", "residual/"])
    lines = list(workflow_commands(report))
    assert len(lines) == 10
    assert {line.split("/")[0].rpartition(" ")[2] for line in lines[:2]} == {"gelu", "residual"}


def test_no_word_of_a_method_is_broken():
    """The names of outputs and their shapes stand on one line each."""
    lines = adapter_text(Path("mine.py"), OPERATIONS, None).splitlines()
    assert not [line for line in lines if line.strip(" #").startswith("iven")]
    assert any("as given" in line for line in lines)
