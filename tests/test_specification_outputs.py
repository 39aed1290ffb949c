"""Outputs asked for, whole and named ones, free cases and what is drawn: read as written."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal

import pytest

from conformance.errors import SpecificationError
from conformance.layout import SPEC
from conformance.model import Combination, Drawn, Greater, Less, OutputRule, Same
from conformance.questions import question
from conformance.specification import load
from tests.test_specification import validators

#: By operation, the file in which cases are planted.
FILES = {
    "build": "cases/model/planted.yaml",
    "initialize_linear": "cases/linear-construction/planted.yaml",
    "clip_gradients": "cases/optimiser/planted.yaml",
    "gelu": "cases/gelu/planted.yaml",
}

CONFIG = ("{vocab_size: 11, block_size: 9, d_model: 10, n_heads: 5, n_layers: 1, d_ff: 14, "
          "dropout: 0}")  # fmt: skip

LAYER = "{d_in: 10, d_out: 14, with_bias: true, random_seed: 19}"


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """The user's cache is left alone."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conformance.specification.cache.cache_folder", lambda name: folder / name)
        yield folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A copy of the specification without any case or fact."""
    root = tmp_path_factory.mktemp("empty") / "spec"
    shutil.copytree(SPEC, root, ignore=shutil.ignore_patterns("truth", "schema", "cases"))
    (root / "cases").mkdir()
    (root / "facts.yaml").write_text("facts: []\n")
    (root / "errata.yaml").write_text("errata: []\n")
    return root


@pytest.fixture
def planted(empty, tmp_path):
    """Writes cases of an operation into a copy and loads it."""

    def plant(operation, *bodies, clause="BUILD-COUNT"):
        root = tmp_path / "spec"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(empty, root)
        path = root / FILES[operation]
        path.parent.mkdir(parents=True)
        family = path.parent.name
        text = f"operation: {operation}\ncases:\n"
        for number, body in enumerate(bodies):
            text += f"- id: {family}/planted-{number}\n  title: planted\n  clauses: [{clause}]\n"
            text += f"  derived: to be read\n{body}"
        path.write_text(text)
        return load(root)

    return plant


def told(plant, *arguments):
    """The one problem of what is planted, without the name of the file."""
    with pytest.raises(SpecificationError) as caught:
        plant(*arguments)
    (problem,) = caught.value.problems
    return str(problem).partition(".yaml:")[2]


def only(specification):
    (case,) = specification.cases.values()
    return case


# ------------------------------------------------------------------------------ what is asked for


def test_a_case_may_ask_for_some_outputs(planted):
    """They and no others travel in the question; without a word all of them do."""
    some = only(planted("build", f"  given: {CONFIG}\n  outputs: [count]\n"))
    every = only(planted("build", f"  given: {CONFIG}\n"))
    operation = load().operations["build"]
    assert question(some, operation, "", "float64", {}).outputs == ("count",)
    assert question(every, operation, "", "float64", {}).outputs == ("shapes", "count")


#: What follows the title, and the one line that is due.
REFUSED = {
    "an unknown output": (
        f"  given: {CONFIG}\n  outputs: [size]\n",
        "3: cases[0]: outputs names 'size', which is none",
    ),
    "a figure of an output that is not asked for": (
        f"  given: {CONFIG}\n  outputs: [count]\n  expect: {{shapes.head: [10, 11]}}\n",
        "9: cases[0].expect.shapes.head: no result 'shapes.head'; there is count",
    ),
    "a figure of many at once": (
        f"  given: {CONFIG}\n  expect: {{shapes: [10, 11]}}\n",
        "8: cases[0].expect.shapes: no result 'shapes'; there is shapes.*, count",
    ),
    "free without a relation": (
        f"  given: {CONFIG}\n  free: because\n",
        "3: cases[0]: what is free has no values to compare: write relate",
    ),
    "free with figures": (
        f"  given: {CONFIG}\n  free: because\n  expect: {{count: 5}}\n",
        "3: cases[0]: what is free has no values to compare: write relate",
    ),
    "drawn of nothing": (
        f"  given: {CONFIG}\n  relate:\n  - {{drawn: count}}\n",
        "9: cases[0].relate[0]: needs normal: the deviation, or uniform: the limit",
    ),
    "drawn of two distributions": (
        f"  given: {CONFIG}\n  relate:\n  - {{drawn: count, normal: 1, uniform: 1}}\n",
        "9: cases[0].relate[0]: needs normal: the deviation, or uniform: the limit",
    ),
    "drawn without spread": (
        f"  given: {CONFIG}\n  relate:\n  - {{drawn: count, normal: 0}}\n",
        "9: cases[0].relate[0]: needs normal: the deviation, or uniform: the limit",
    ),
    "greater than no number": (
        f"  given: {CONFIG}\n  relate:\n  - {{greater: count, than: few}}\n",
        "9: cases[0].relate[0]: needs than: a number",
    ),
    "a slice that is none": (
        f"  given: {CONFIG}\n  relate:\n  - {{less: count, than: 1, where: '[last]'}}\n",
        ("9: cases[0].relate[0]: 'last' in '[last]' is neither a whole number nor "
        "start:stop:step"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line"), REFUSED.values(), ids=REFUSED)
def test_a_planted_fault_is_one_line(planted, text, line):
    """Where it is, and what is wrong with it."""
    assert told(planted, "build", text) == line


def test_gradients_have_no_outputs_to_choose(planted):
    """outputs belongs to evaluate; what a gradient is asked of is wrt."""
    text = "  mode: vjp\n  given: {x: [1]}\n  upstream: {y: [1]}\n  outputs: [y]\n"
    assert told(planted, "gelu", text) == "3: cases[0]: outputs names 'y', which is none"


# ---------------------------------------------------------------------------------- many outputs


def test_one_of_many_is_named_by_output_and_name(planted):
    """Figures and relations name it with a dot, behind the call where there are several."""
    case = only(planted("build", f"  given: {CONFIG}\n  expect: {{shapes.head: [10, 11]}}\n"))
    assert list(case.expectation.expect) == ["shapes.head"]
    calls = f"  calls:\n    a: {CONFIG}\n    b: {{like: a, set: {{n_heads: 1}}}}\n"
    case = only(
        planted("build", f"{calls}  relate:\n  - {{same: shapes.blocks.0.attention.w_q}}\n")
    )
    name = "shapes.blocks.0.attention.w_q"
    assert case.expectation.relate == (Same(left=("a", name), right=("b", name)),)


def test_the_rules_of_outputs_are_read():
    """Text alone is the shape of a real output; anything else is said."""
    operations = load().operations
    assert operations["linear"].outputs == {"y": OutputRule(shape="[..., d_out]")}
    train = operations["train"]
    assert train.output("losses") == OutputRule(shape="[steps]")
    assert train.output("gradient_norms.head") == OutputRule(shape="[steps]", named=True)
    assert train.output("gradient_norms") is None
    assert train.output("losses.head") is None
    assert train.output("optimised.head").kind == "whole"
    assert operations["splitmix64"].output("values").dtype == "uint64"
    assert train.differentiable == ()
    assert operations["build"].arguments == {}


def test_parameters_without_names_take_any(planted):
    """Gradients to clip have whatever names they have; a fill of them has nothing to go by."""
    text = "  given: {gradients: {any.name: [[1, 2]], another: 3}, max_norm: 1}\n"
    case = only(planted("clip_gradients", text))
    assert list(case.calls[""].given["gradients"].tensors) == ["any.name", "another"]
    text = "  given: {gradients: {fill: {seed: 1, sizes: {d: 2}}}, max_norm: 1}\n"
    assert told(planted, "clip_gradients", text).startswith("7: cases[0].given.gradients")


# ------------------------------------------------------------------------------------------ free


def test_a_case_is_free_by_itself_or_by_its_operation(planted):
    """The reason is kept either way, and that of the case goes first."""
    relate = "  relate:\n  - {less: count, than: 5000}\n"
    case = only(planted("build", f"  given: {CONFIG}\n  free: for once\n{relate}"))
    assert case.free == "for once"
    assert only(planted("build", f"  given: {CONFIG}\n{relate}")).free is None
    relate = "  relate:\n  - {drawn: weight, uniform: 0.5}\n"
    case = only(planted("initialize_linear", f"  given: {LAYER}\n{relate}"))
    assert case.free == load().operations["initialize_linear"].free
    assert told(planted, "initialize_linear", f"  given: {LAYER}\n") == (
        "3: cases[0]: what is free has no values to compare: write relate"
    )


def test_what_is_drawn_and_what_lies_beyond_is_read(planted):
    """Distribution and size, limit and slice, in exact numbers."""
    text = (
        f"  given: {LAYER}\n  relate:\n  - {{drawn: weight, normal: 0.02}}\n"
        "  - {drawn: weight, uniform: 0.5}\n  - {greater: weight, than: -1}\n"
        "  - {less: bias, than: 1e-3, where: '[:2]'}\n  - {combination: {bias: 1}, equals: 0}\n"
    )
    relations = only(planted("initialize_linear", text)).expectation.relate
    weight, bias = ("", "weight"), ("", "bias")
    assert relations[:4] == (
        Drawn(terms=(weight,), distribution="normal", size=Decimal("0.02")),
        Drawn(terms=(weight,), distribution="uniform", size=Decimal("0.5")),
        Greater(term=weight, than=-1),
        Less(term=bias, than=Decimal("0.001"), where="[:2]"),
    )
    assert isinstance(relations[4], Combination)


def test_draws_of_several_outputs_are_no_copies(planted):
    """Each is named once: an output that is named twice would be a copy of itself."""
    text = f"  given: {LAYER}\n  relate:\n  - {{drawn: [weight, bias], normal: 0.02}}\n"
    (relation,) = only(planted("initialize_linear", text)).expectation.relate
    assert relation.terms == (("", "weight"), ("", "bias"))
    twice = text.replace("[weight, bias]", "[weight, weight]")
    assert "which is a copy of itself" in told(planted, "initialize_linear", twice)
    alone = text.replace("[weight, bias]", "[weight]")
    assert "is no output of this case" in told(planted, "initialize_linear", alone)
    unknown = text.replace("[weight, bias]", "[weight, wieght]")
    assert "'wieght' is no output of this case" in told(planted, "initialize_linear", unknown)


def test_a_rejection_may_stand_beside_one_free_question(planted):
    """Its twin is a single valid question; one of several calls is not."""
    rejected = (
        "  given: {d_in: 0, d_out: 14, with_bias: true, random_seed: 19}\n"
        "  reject: zero-input-width\n  beside: linear-construction/planted-0\n"
    )
    twin = f"  given: {LAYER}\n  relate:\n  - {{drawn: weight, uniform: 0.5}}\n"
    assert len(planted("initialize_linear", twin, rejected).cases) == 2
    calls = f"  calls:\n    a: {LAYER}\n  relate:\n  - {{drawn: a.weight, uniform: 0.5}}\n"
    assert told(planted, "initialize_linear", calls, rejected) == (
        "11: linear-construction/planted-1: 'linear-construction/planted-0' is not a valid "
        "initialize_linear case"
    )


# ---------------------------------------------------------------------------------- JSON Schema


def valid_operation(**changes):
    entry = {
        "summary": "an operation",
        "attributes": {"n": {"kind": "count"}},
        "outputs": {"y": "[]"},
    }
    entry |= changes
    return validators()["operations"].is_valid(
        {"operations": {"made": {key: value for key, value in entry.items() if value is not None}}}
    )


def valid_case(**changes):
    entry = {"id": "model/made", "title": "made", "clauses": ["MADE-UP"], "derived": "for a test",
             "given": {"n": 1}} | changes  # fmt: skip
    return validators()["cases"].is_valid({"operation": "build", "cases": [entry]})


def test_the_schema_knows_the_forms_of_an_output():
    """Text, or kind, shape, dtype and named, each closed; attributes may stand alone."""
    assert valid_operation()
    assert valid_operation(outputs={"y": {"kind": "whole", "dtype": "uint64", "named": True}})
    assert valid_operation(outputs={"y": {"named": True, "shape": "as given"}})
    assert valid_operation(free="the numbers are free")
    assert not valid_operation(outputs={"y": {"kind": "integer"}})
    assert not valid_operation(outputs={"y": {"kind": "whole", "dtype": "int32"}})
    assert not valid_operation(outputs={"y": {"named": True, "spare": 1}})
    assert not valid_operation(outputs={"y": {}})
    assert not valid_operation(outputs={})
    assert not valid_operation(attributes=None)


def test_the_schema_knows_what_is_free_and_drawn():
    """The same forms as the reader takes."""
    drawn = {"drawn": "weight", "normal": 0.02}
    assert valid_case(relate=[drawn], free="drawn", outputs=["weight"])
    assert valid_case(relate=[{"drawn": "weight", "uniform": 0.5}])
    assert valid_case(relate=[{"drawn": ["first.weight", "other.weight"], "uniform": 0.5}])
    assert not valid_case(relate=[{"drawn": ["weight"], "uniform": 0.5}])
    assert valid_case(relate=[{"greater": "y", "than": 1, "where": "[0]"}])
    assert valid_case(relate=[{"less": "y", "than": 1, "where": "[0]"}])
    assert not valid_case(free="without relations")
    assert not valid_case(outputs=[])
    assert not valid_case(relate=[{**drawn, "uniform": 1}])
    assert not valid_case(relate=[{"drawn": "weight"}])
    assert not valid_case(relate=[{**drawn, "normal": 0}])
    assert not valid_case(relate=[{**drawn, "where": "[0]"}])


def test_the_schema_and_the_reader_know_the_same_kinds():
    """Whatever the dataclass of an output allows, the schema does."""
    schema = json.loads((SPEC / "schema" / "operations.json").read_text())
    operation = schema["properties"]["operations"]["additionalProperties"]["properties"]
    (written,) = [form for form in operation["outputs"]["additionalProperties"]["anyOf"]
                  if form["type"] == "object"]  # fmt: skip
    assert set(written["properties"]) == set(OutputRule.__struct_fields__)
    assert set(operation) == {"summary", "arguments", "attributes", "outputs", "uses", "rejects",
                              "free"}  # fmt: skip
