"""``conformance explain`` shows how a case comes to its values; its reproducer stands alone."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from itertools import takewhile

import msgspec
import numpy as np
import pytest

from conformance.backends.numpy import NumpyBackend
from conformance.command.explanation import explain
from conformance.command.reproducer import _literal, reproducer
from conformance.command.showing import heading
from conformance.errors import UsageError
from conformance.harness.connection import InProcess
from conformance.model import Call, Values
from conformance.questions import question
from conformance.specification import load
from conformance.specification.parameters import parameters
from conformance.specification.tensors import tensor
from tests import builders

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


def nested():
    """A case of a block of one head and two features that is in no file, and its specification."""
    rule = SPEC.operations["block"].arguments["parameters"]
    given = {
        "x": tensor([[[1, 2], [3, 1]]]),
        "parameters": parameters({"fill": {"seed": 3, "sizes": {"d": 2, "f": 3}}}, rule),
        "heads": 1,
        "eps": Decimal(1),
    }
    calls = {"": Call(given=given, upstream={"y": tensor([[[1, 0], [0, 1]]])}, wrt=("x",))}
    made = builders.case("block", calls=calls, mode="vjp")
    made = msgspec.structs.replace(made, clauses=())
    return made, msgspec.structs.replace(SPEC, cases={made.id: made})


def test_a_nested_rule_says_which_parameters_it_was_given():
    """In a block each linear layer and each norm is told by the parameters that it uses; what a
    rule only hands on is not said twice, and no products are written out."""
    made, specification = nested()
    lines = explain(made.id, specification)
    derived = takewhile(lambda line: "known mistakes" not in line, lines)
    steps = [line.partition(" = ")[0] for line in derived]
    names = [step.strip() for step in steps]
    places = [
        names.index(name)
        for name in (
            "layer norm (attention_norm.gamma, attention_norm.beta)",
            "linear (attention.w_q)",
            "linear (attention.w_k)",
            "linear (attention.w_v)",
            "attention weights",
            "linear (attention.w_o)",
            "layer norm (feed_forward_norm.gamma, feed_forward_norm.beta)",
            "linear (feed_forward.w_1, feed_forward.b_1)",
            "linear (feed_forward.w_2, feed_forward.b_2)",
            "block",
        )
    ]
    assert places == sorted(places)
    assert not any(name.startswith(("position ", "product", "affine", "second")) for name in names)
    indents = [len(step) - len(step.lstrip()) for step in steps]
    assert indents[names.index("block")] < indents[names.index("linear (attention.w_q)")]


def test_parameters_are_shown_by_their_names():
    """What a block is given has a line for each parameter, with its numbers."""
    made, specification = nested()
    lines = list(heading(made, specification))
    gamma = made.calls[""].given["parameters"].tensors["attention_norm.gamma"]
    assert "  parameters" in lines
    assert f"    attention_norm.gamma = [{gamma.data[0]}, {gamma.data[1]}]" in lines
    assert "  heads = 1" in lines


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


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        ("model/initial-seeds", ["free, only relations are judged", "random_seed = 8"]),
        ("linear-construction/no-input-features", ["d_in = 0", "rejected as "]),
        ("resources/flops", ["flops = 646657939968"]),
        ("linear-construction/splitmix-published", ["values = [6457827717110365317, "]),
        (
            "model/registered-424",
            ["shapes.head = [4, 10]", "count = 424", "without shapes.position_embedding"],
        ),
    ],
)
def test_what_is_free_or_takes_no_array_is_explained_too(case, lines):
    """A configuration, a seed, a count: what was asked, and what came of it where it is fixed."""
    shown = text(case, NumpyBackend())
    assert all(line in shown for line in lines), shown
    assert shown.count(": pass") == len(SPEC.cases[case].dtypes)


@pytest.mark.exhaustive
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


def smallest():
    """For each operation and mode that has a case of values, the one with the fewest numbers."""
    found = {}
    for each in SPEC.cases.values():
        if isinstance(each.expectation, Values) and list(each.calls) == [""]:
            size = len(str(each.calls[""]))
            key = each.operation, each.mode
            found[key] = min(found.get(key, (size, each.id)), (size, each.id))
    return sorted(case_id for _, case_id in found.values())


def asked_of(each):
    """The question of the one call of a case."""
    return question(each, SPEC.operations[each.operation], "", "float64", {})


def by_output(result, question):
    """What a method returned, output by output: those that have names of their own apart."""
    if question.mode == "vjp":
        return result
    if not (isinstance(result, dict) and set(result) >= set(question.outputs)):
        (output,) = question.outputs
        result = {output: result}
    found = {}
    for name, value in result.items():
        named = isinstance(value, dict)
        found |= {f"{name}.{key}": item for key, item in value.items()} if named else {name: value}
    return found


@pytest.mark.parametrize("case_id", smallest())
def test_the_reproducer_hands_over_whatever_an_operation_takes(case_id, capsys):
    """Tokens, attributes and parameters by name reach the function that is filled in, and what it
    returns is compared output by output, gradient by gradient."""
    each = SPEC.cases[case_id]
    name = each.operation + ("_vjp" if each.mode == "vjp" else "")
    source = reproducer(each, SPEC, "float64")
    signature = re.search(rf"^def {name}\((.*)\):$", source, re.MULTILINE)[1]
    keywords = SPEC.operations[each.operation].attributes
    passed = ", ".join(f"{a}={a}" if a in keywords else a for a in signature.split(", "))
    backend, question = NumpyBackend(), asked_of(each)
    body = f"return by_output(BACKEND.{name}({passed}))"
    filled, replaced = re.subn(r"raise NotImplementedError\(.*\)", body, source)
    assert replaced == 1
    known = {"BACKEND": backend, "by_output": lambda result: by_output(result, question)}
    exec(compile(filled, "reproduce.py", "exec"), known)  # noqa: S102
    printed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    due = backend.answer(question).outputs
    assert printed
    assert sorted(printed) == sorted([output, "passes"] for output in due)


def test_a_dict_of_parameters_is_a_literal_of_arrays():
    """The text of a dict, of an empty array and of int64 ids gives them back."""
    given = {
        "head": np.array([[0.1, -2.0]], np.float32),
        "tokens": np.array([[3, 0]]),
        "blocks.0.feed_forward.b_1": np.zeros((0, 2)),
    }
    back = eval(_literal(given), {"np": np})  # noqa: S307 -- our own text
    assert list(back) == list(given)
    for name, array in given.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(back[name], array)


def test_a_case_without_values_has_no_reproducer():
    """A relation or rejection can't be reproduced as values, and says so."""
    case = next(case for case in SPEC.cases.values() if len(case.calls) > 1)
    with pytest.raises(UsageError, match="expects no values"):
        reproducer(case, SPEC, "float64")
