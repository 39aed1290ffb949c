"""Parameters are many tensors by name: written out, or drawn from one seed and changed."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal

import jsonschema
import pytest
import referencing
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.errors import SpecificationError
from conformance.layout import SPEC
from conformance.model import ArgumentRule, Tensor
from conformance.specification import load
from conformance.specification.parameters import expanded, parameters
from conformance.specification.tensors import Malformed, fill, is_dyadic, tensor

repeatable = settings(derandomize=True, deadline=None, max_examples=60)

#: A small operation without blocks, and one with.
FLAT = ArgumentRule(
    kind="parameters", shapes={"norm.gamma": "[d]", "norm.beta": "[d]", "map.w_1": "[d, f]"}
)
MODEL = ArgumentRule(
    kind="parameters",
    shapes={
        "token_embedding": "[V, d]",
        "blocks.K.norm.gamma": "[d]",
        "blocks.K.map.w_1": "[d, f]",
        "head": "[d, V]",
    },
)

WHOLE = {"norm.gamma": [1, 2], "norm.beta": [0, 3], "map.w_1": [[1, 2, 3], [4, 5, 6]]}

SIZES = {"d": 2, "f": 3}

KNOWN = "norm.gamma, norm.beta, map.w_1"


def refusal(value, rule=FLAT):
    with pytest.raises(Malformed) as caught:
        parameters(value, rule)
    return str(caught.value), caught.value.path


def drawn(rule=FLAT, **fill_):
    return parameters({"fill": {"seed": 5, "sizes": SIZES} | fill_}, rule).tensors


def drawn_model(blocks, seed=5):
    sizes = {"V": 4, "d": 2} | ({"f": 3} if blocks else {})
    fill_ = {"seed": seed, "sizes": sizes, "blocks": blocks}
    return parameters({"fill": fill_}, MODEL).tensors


# ------------------------------------------------------------------------------------- names


def test_names_of_blocks_are_expanded_where_they_stand_one_block_after_the_other():
    """``blocks.K`` becomes every block in turn, between what stands before and behind it."""
    assert list(expanded(MODEL, 2)) == [
        "token_embedding",
        "blocks.0.norm.gamma",
        "blocks.0.map.w_1",
        "blocks.1.norm.gamma",
        "blocks.1.map.w_1",
        "head",
    ]
    assert list(expanded(MODEL, 0)) == ["token_embedding", "head"]
    assert expanded(MODEL, 11)["blocks.10.map.w_1"] == "[d, f]"


def test_an_operation_without_blocks_has_the_names_it_lists():
    """The number of blocks doesn't matter where none is named."""
    assert expanded(FLAT, 3) == expanded(FLAT, 0) == dict(FLAT.shapes)


# ------------------------------------------------------------------------------- written out


def test_written_parameters_are_the_tensors_that_are_written():
    """Each by its name, in every form that a tensor has."""
    found = parameters({**WHOLE, "norm.beta": {"fill": {"seed": 7, "shape": [2]}}}, FLAT).tensors
    assert found == {
        "norm.gamma": tensor([1, 2]),
        "norm.beta": fill(7, (2,)),
        "map.w_1": tensor([[1, 2, 3], [4, 5, 6]]),
    }


@pytest.mark.parametrize("name", WHOLE)
def test_a_missing_parameter_is_named(name):
    """None may be left out."""
    written = {key: value for key, value in WHOLE.items() if key != name}
    assert refusal(written) == (f"the parameter {name!r} is missing", ())


def test_a_parameter_that_the_operation_does_not_have_is_named():
    """None may be added, and the message has those that there are."""
    assert refusal({**WHOLE, "norm.gama": [1]}) == (
        f"there is no parameter 'norm.gama'; there is {KNOWN}",
        (),
    )
    assert refusal({}) == ("the parameter 'norm.gamma' is missing", ())


def test_written_blocks_are_counted_by_their_names_and_leave_no_gap():
    """Blocks 0 and 1 are two; a block 1 alone lacks the block 0."""
    block = {"norm.gamma": [1], "map.w_1": [[1]]}
    ends = {"token_embedding": [[1]], "head": [[1]]}
    both = {f"blocks.{k}.{name}": value for k in (0, 1) for name, value in block.items()}
    assert list(parameters({**ends, **both}, MODEL).tensors) == [*ends, *both]
    assert list(parameters(ends, MODEL).tensors) == list(ends)
    late = {name: value for name, value in both.items() if name.startswith("blocks.1.")}
    assert refusal({**ends, **late}, MODEL) == (
        "the parameter 'blocks.0.norm.gamma' is missing",
        (),
    )


def test_a_block_of_a_large_number_is_refused_without_counting_up_to_it():
    """As many blocks as names are looked for at most."""
    far = {"token_embedding": [[1]], "head": [[1]], "blocks.999999999.norm.gamma": [1]}
    message, path = refusal(far, MODEL)
    assert message.startswith("there is no parameter 'blocks.999999999.norm.gamma'; there is ")
    assert len(message) < 1000
    assert path == ()


def test_a_parameter_that_is_no_tensor_is_refused_where_it_breaks():
    """The path leads through the name to the element that doesn't fit."""
    told, path = refusal({**WHOLE, "map.w_1": [[1, 2, 3], [4, 5]]})
    assert told == "ragged: 2 entries, the rows before have 3"
    assert path == ("map.w_1", 1)


@pytest.mark.parametrize("value", [None, 1, "fill", [1, 2], True])
def test_what_is_no_mapping_is_refused(value):
    """Parameters have names."""
    assert refusal(value) == (
        "parameters are {name: tensor, …} or {fill: {seed, sizes, …}, set: …}",
        (),
    )


# ------------------------------------------------------------------------------------- drawn


@repeatable
@given(st.integers(0, 2**64 - 1), st.integers(1, 4), st.integers(1, 4))
def test_parameter_number_i_is_the_fill_of_the_seed_plus_i(seed, d, f):
    """Each has a seed of its own, counted in the order of the names."""
    found = drawn(seed=seed, sizes={"d": d, "f": f})
    assert list(found) == list(FLAT.shapes)
    assert found["norm.gamma"] == fill(seed, (d,), Decimal("0.5"), 1)
    assert found["norm.beta"] == fill(seed + 1, (d,))
    assert found["map.w_1"] == fill(seed + 2, (d, f))


@repeatable
@given(st.integers(0, 3), st.integers(0, 2**32))
def test_the_parameters_of_a_model_are_counted_through_all_blocks(blocks, seed):
    """The head comes after the last block, and its seed with it."""
    found = drawn_model(blocks, seed)
    assert list(found) == list(expanded(MODEL, blocks))
    assert len(found) == 2 + 2 * blocks
    assert found["token_embedding"] == fill(seed, (4, 2))
    assert found["head"] == fill(seed + len(found) - 1, (2, 4))
    for k in range(blocks):
        assert found[f"blocks.{k}.map.w_1"] == fill(seed + 2 + 2 * k, (2, 3))


@repeatable
@given(st.integers(0, 2**64 - 1), st.integers(-8, 3).map(lambda e: Decimal(2.0**e)))
def test_a_drawn_gamma_lies_around_one_and_all_else_around_zero(seed, scale):
    """Within half the scale of 1, never 1 itself; the others within the scale of 0, never 0."""
    for name, found in drawn(seed=seed, scale=scale, sizes={"d": 3, "f": 2}).items():
        centre, spread = (1, scale / 2) if name == "norm.gamma" else (0, scale)
        for number in found.data:
            assert 0 < abs(number - centre) < spread
            assert is_dyadic(number)


def test_a_size_that_no_parameter_has_is_refused():
    """Without blocks the hidden width of a block is nobody's."""
    fill_ = {"seed": 5, "sizes": SIZES | {"V": 4}, "blocks": 0}
    assert refusal({"fill": fill_}, MODEL) == ("sizes gives V, d", ("fill", "sizes"))


def test_blocks_differ_from_each_other():
    """No two blocks are drawn alike, or one in the place of another would not show."""
    found = drawn_model(3)
    assert len({found[f"blocks.{k}.map.w_1"].data for k in range(3)}) == 3


@pytest.mark.parametrize(
    ("changed", "message", "path"),
    [
        ({"seed": -1}, "seed is a whole number, not negative", ("seed",)),
        ({"seed": True}, "seed is a whole number, not negative", ("seed",)),
        ({"seed": Decimal("1.5")}, "seed is a whole number, not negative", ("seed",)),
        ({"scale": Decimal("0.1")}, "scale is a binary fraction, so that all is exact", ("scale",)),
        ({"scale": "1"}, "scale is a binary fraction, so that all is exact", ("scale",)),
        ({"offset": 1}, "unknown key 'offset'", ()),
        ({"blocks": 1}, "blocks belongs to the parameters of a model, which need it", ()),
        ({"sizes": {"d": 2}}, "sizes gives d, f", ("sizes",)),
        ({"sizes": {"d": 2, "f": 3, "V": 4}}, "sizes gives d, f", ("sizes",)),
        ({"sizes": [2, 3]}, "sizes gives d, f", ("sizes",)),
        ({"sizes": {"d": 2, "f": -1}}, "f is a whole number, not negative", ("sizes", "f")),
        ({"sizes": {"d": "2", "f": 1}}, "d is a whole number, not negative", ("sizes", "d")),
    ],
)
def test_a_draw_that_is_written_wrongly_is_refused(changed, message, path):
    """Every key of the draw is held to the letter, and the path leads to it."""
    told = refusal({"fill": {"seed": 5, "sizes": SIZES} | changed})
    assert told == (message, ("fill", *path))


@pytest.mark.parametrize("written", [None, 5, [], {"seed": 5}, {"sizes": SIZES}])
def test_a_draw_needs_a_seed_and_sizes(written):
    """Nothing is drawn from a default."""
    assert refusal({"fill": written}) == (
        "a fill of parameters is {seed, sizes} and maybe blocks and scale",
        ("fill",),
    )


def test_a_model_says_how_many_blocks_it_has():
    """A whole number, not negative; without it the names are not known."""
    sizes = SIZES | {"V": 4}
    assert refusal({"fill": {"seed": 5, "sizes": sizes}}, MODEL) == (
        "blocks belongs to the parameters of a model, which need it",
        ("fill",),
    )
    assert refusal({"fill": {"seed": 5, "sizes": sizes, "blocks": -1}}, MODEL) == (
        "blocks is a whole number, not negative",
        ("fill", "blocks"),
    )


def test_a_draw_has_nothing_beside_it_but_set():
    """A parameter is changed under ``set``, not beside the draw."""
    fill_ = {"seed": 5, "sizes": SIZES}
    assert refusal({"fill": fill_, "norm.beta": [1, 2]}) == (
        "unknown key 'norm.beta' beside fill",
        (),
    )


def test_a_draw_may_be_named_in_the_opposite_order():
    """The same parameters with the same numbers; only where a name stands is another place."""
    fill_ = {"seed": 5, "sizes": SIZES}
    turned = parameters({"fill": fill_, "reversed": True}, FLAT).tensors
    assert turned == drawn()
    assert list(turned) == list(reversed(drawn()))
    assert list(parameters({"fill": fill_, "reversed": False}, FLAT).tensors) == list(drawn())
    wrong = ("reversed is true or false", ("reversed",))
    assert refusal({"fill": fill_, "reversed": 1}) == wrong


# --------------------------------------------------------------------------------------- set


def changed(set_):
    return parameters({"fill": {"seed": 5, "sizes": SIZES}, "set": set_}, FLAT).tensors


def test_set_replaces_what_it_names_and_nothing_else():
    """A whole parameter by a number or a tensor of its shape, a slice by what fits it."""
    before = drawn()
    assert changed({}) == before
    zero = changed({"map.w_1": 0})
    assert zero["map.w_1"] == tensor([[0, 0, 0], [0, 0, 0]])
    assert {**zero, "map.w_1": before["map.w_1"]} == before
    assert changed({"norm.beta": [3, 4]})["norm.beta"] == tensor([3, 4])
    numbers = before["map.w_1"].data
    assert changed({"map.w_1[0, :2]": [7, 8]})["map.w_1"].data == (7, 8, *numbers[2:])
    assert changed({"map.w_1[:, -1]": 9})["map.w_1"].data == (*numbers[:2], 9, *numbers[3:5], 9)


def test_set_is_carried_out_in_the_order_written():
    """A slice after the whole stands, and the whole after a slice covers it."""
    assert changed({"norm.beta": 0, "norm.beta[1]": 1})["norm.beta"].data == (0, 1)
    assert changed({"norm.beta[1]": 1, "norm.beta": 0})["norm.beta"].data == (0, 0)


def test_set_of_a_draw_leaves_the_next_draw_alone():
    """A change belongs to the parameters that it is written in."""
    changed({"norm.beta": 0})
    assert drawn()["norm.beta"] == fill(6, (2,))


@pytest.mark.parametrize(
    ("target", "value", "message"),
    [
        ("norm.gama", 1, "there is no parameter 'norm.gama'"),
        ("norm", 1, "there is no parameter 'norm'"),
        ("map.w_1", [1, 2], "shape [2] where the slice has [2, 3]"),
        ("map.w_1[0]", [1, 2], "shape [2] where the slice has [3]"),
        ("map.w_1[2]", 1, "index 2 on an axis of 2"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_where_it_stands(target, value, message):
    """An unknown name, a wrong shape and a place that isn't there."""
    with pytest.raises(Malformed) as caught:
        changed({"norm.beta": 0, target: value})
    assert str(caught.value) == message
    assert caught.value.path == ("set", target)


def test_a_change_that_is_no_change_is_refused_where_it_stands():
    """``set`` is a mapping of targets to tensors."""
    told, path = refusal({"fill": {"seed": 5, "sizes": SIZES}, "set": [1]})
    assert (told, path) == ("set is {name[slice]: value, …}", ("set",))
    with pytest.raises(Malformed) as caught:
        changed({"norm.beta": ["1", 2]})
    assert caught.value.path == ("set", "norm.beta", 0)
    with pytest.raises(Malformed) as caught:
        changed({"norm.beta[1:2:0]": 1})
    assert "has a step of 0" in str(caught.value)
    assert caught.value.path == ("set", "norm.beta[1:2:0]")


def test_drawn_parameters_are_real():
    """They are given in the dtype of the run."""
    assert {type(item) for item in drawn().values()} == {Tensor}
    assert {item.dtype for item in drawn().values()} == {"real"}


# ---------------------------------------------------------------------------- in a case

HEAD = """\
operation: block
cases:
- id: block/planted
  title: planted
  clauses: [BLOCK-SHAPE]
  derived: planted here
"""

FIRST = """\
      x: [[[1, 2]]]
      parameters: {fill: {seed: 5, sizes: {d: 2, f: 3}}}
      heads: 1
      eps: 1
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The specification without cases, facts and errata."""
    root = tmp_path_factory.mktemp("specification") / "spec"
    shutil.copytree(SPEC, root, ignore=shutil.ignore_patterns("truth", "schema", "cases"))
    (root / "cases" / "block").mkdir(parents=True)
    (root / "facts.yaml").write_text("facts: []\n")
    (root / "errata.yaml").write_text("errata: []\n")
    with pytest.MonkeyPatch.context() as patch:
        folder = root.parent / "cache"
        patch.setattr("conformance.specification.cache.cache_folder", lambda name: folder / name)
        yield root


def planted(root, text):
    """The case that ``text`` completes, or the lines that tell what is wrong with it."""
    (root / "cases" / "block" / "planted.yaml").write_text(HEAD + text)
    try:
        return load(root).cases["block/planted"]
    except SpecificationError as error:
        return [str(problem).removeprefix("spec/cases/block/planted.yaml:")
                for problem in error.problems]  # fmt: skip


def calls(changes, *, mode=""):
    """A case of two calls, the second with ``changes``."""
    return (
        f"{mode}  calls:\n    a:\n{FIRST}    b: {{like: a, set: {{{changes}}}}}\n"
        "  relate:\n  - {same: [a.y, b.y]}\n"
    )


def test_a_call_changes_a_parameter_by_its_argument_and_name(root):
    """Whole or in part; the call that it is like keeps its own."""
    case = planted(root, calls('parameters.attention.w_o: 0, "parameters.feed_forward.b_1[1:]": 7'))
    before, after = (case.calls[name].given["parameters"].tensors for name in "ab")
    assert after["attention.w_o"] == tensor([[0, 0], [0, 0]])
    assert after["feed_forward.b_1"].data == (before["feed_forward.b_1"].data[0], 7, 7)
    same = set(before) - {"attention.w_o", "feed_forward.b_1"}
    assert all(before[name] == after[name] for name in same)
    assert 0 not in before["attention.w_o"].data


def test_gradients_are_asked_for_by_the_names_of_the_parameters(root):
    """All of them where nothing is said, in the order of the operation."""
    given_ = f"  given:\n{FIRST}".replace("      ", "    ")
    vjp = "  mode: vjp\n  upstream: {y: [[[1, 2]]]}\n"
    names = tuple(load(root).operations["block"].arguments["parameters"].shapes)
    assert planted(root, vjp + given_).calls[""].wrt == ("x", *names)
    some = "  wrt: [attention.w_q, x]\n"
    assert planted(root, vjp + given_ + some).calls[""].wrt == ("attention.w_q", "x")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            calls("parameters.attention.w_x: 0"),
            ("13: cases[0].calls.b.set.parameters.attention.w_x: "
            "call 'a' is not given 'attention.w_x'"),
        ),
        (
            calls("attention.w_o: 0"),
            "13: cases[0].calls.b.set.attention.w_o: call 'a' is not given 'attention.w_o'",
        ),
        (
            calls('"parameters.attention.w_o[0]": [1, 2, 3]'),
            ("13: cases[0].calls.b.set.parameters.attention.w_o[0]: "
            "shape [3] where the slice has [2]"),
        ),
        (
            f"  given:\n{FIRST}".replace("      ", "    ").replace("f: 3", "g: 3"),
            "9: cases[0].given.parameters.fill.sizes: sizes gives d, f",
        ),
        (
            "  given: {x: [[[1]]], parameters: {attention.w_q: [[1]]}, heads: 1, eps: 1}\n",
            "7: cases[0].given.parameters: the parameter 'attention_norm.gamma' is missing",
        ),
        (
            "  given: {x: [[[1]]], heads: 1, eps: 1}\n",
            "7: cases[0].given: block needs 'parameters'",
        ),
        (
            "  mode: vjp\n  upstream: {y: [[[1, 2]]]}\n  wrt: [parameters]\n  given:\n"
            + FIRST.replace("      ", "    "),
            "3: cases[0]: wrt names 'parameters', which has no gradient",
        ),
        (
            "  mode: vjp\n  upstream: {y: [[[1, 2]]]}\n  wrt: [attention.w_q]\n  given:\n"
            + FIRST.replace("      ", "    ").replace("f: 3", "g: 3"),
            "12: cases[0].given.parameters.fill.sizes: sizes gives d, f",
        ),
        (
            f"  given:\n{FIRST}".replace("      ", "    ")
            .replace("f: 3}}", "f: 3}}, set: {feed_forward.b_1: 1e300}"),
            ("9: cases[0].given.parameters.feed_forward.b_1: "
            "1E+300 is outside float32: name the dtypes of this case"),
        ),
    ],
)  # fmt: skip
def test_a_fault_in_the_parameters_of_a_case_is_one_line(root, text, line):
    """With the place of the fault, and what is wrong there."""
    assert planted(root, text) == [line]


# --------------------------------------------------------------------------------- JSON Schema


@pytest.fixture(scope="module")
def schema():
    """Whether the published schema takes a value as parameters."""
    common = json.loads((SPEC / "schema" / "common.json").read_text(encoding="utf-8"))
    registry = referencing.Registry().with_resource(
        common["$id"], referencing.Resource.from_contents(common)
    )
    reference = {"$ref": f"{common['$id']}#/$defs/parameters"}
    return jsonschema.Draft202012Validator(reference, registry=registry).is_valid


FILL = {"seed": 5, "sizes": SIZES}


@pytest.mark.parametrize(
    "value",
    [
        WHOLE,
        {"norm.gamma": 1},
        {"norm.gamma": {"shape": [0], "data": []}},
        {"norm.gamma": {"fill": {"seed": 1, "shape": [2]}}},
        {"fill": FILL},
        {"fill": {**FILL, "blocks": 2, "scale": 0.5}},
        {"fill": FILL, "reversed": True},
        {"fill": FILL, "set": {"attention.w_o": 0, "blocks.0.map.w_1[0, :2]": [1, 2]}},
    ],
)
def test_the_schema_takes_parameters_in_both_forms(schema, value):
    """Written out, or drawn and changed."""
    assert schema(value)


@pytest.mark.parametrize(
    "value",
    [
        {},
        5,
        [1, 2],
        {"norm.gamma": "1"},
        {"norm.gamma": {"shape": [1]}},
        {"fill": {"seed": 5}},
        {"fill": {"sizes": SIZES}},
        {"fill": {**FILL, "offset": 1}},
        {"fill": {**FILL, "seed": -1}},
        {"fill": {**FILL, "sizes": {"d": 1.5}}},
        {"fill": {**FILL, "sizes": {}}},
        {"fill": {**FILL, "blocks": "2"}},
        {"fill": FILL, "norm.beta": [1, 2]},
        {"fill": FILL, "set": {"norm.beta(0)": 1}},
        {"fill": FILL, "set": {"norm.beta": "1"}},
        {"set": {"norm.beta": 1}, "norm.gamma": [1]},
    ],
)
def test_the_schema_refuses_what_is_neither_form(schema, value):
    """Closed like the rest, so that a slip in another tool's reader shows."""
    assert not schema(value)
