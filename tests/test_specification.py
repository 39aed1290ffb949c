"""The specification loads, and every fault planted in a copy of it is one readable line."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal

import jsonschema
import msgspec
import pytest
import referencing

from conformance.errors import SpecificationError
from conformance.layout import SPEC
from conformance.model import Case, Rejection, Relations, Tensor, Undefined, Values
from conformance.specification import Specification, load
from conformance.specification.cache import digest
from conformance.specification.documents import CaseEntry
from conformance.specification.files import load_specification
from conformance.specification.reader import Document

#: Where faults are planted: a file of its own, so that lines and positions are known.
FILE = "cases/gelu/planted.yaml"

HEAD = """\
operation: gelu
cases:
- id: gelu/planted
  title: planted
  clauses: [GELU-EXACT]
  derived: to be refused
"""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """The user's cache is left alone."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conformance.specification.cache.cache_folder", lambda name: folder / name)
        yield folder


@pytest.fixture(scope="module")
def specification():
    return load()


@pytest.fixture(scope="module")
def lean(tmp_path_factory):
    """A copy of the specification without the cases of the other families, quick to load."""
    root = tmp_path_factory.mktemp("lean") / "spec"
    shutil.copytree(SPEC, root, ignore=shutil.ignore_patterns("truth", "schema"))
    for family in (root / "cases").iterdir():
        if family.name != "gelu":
            shutil.rmtree(family)
    (root / "facts.yaml").write_text("facts: []\n")
    (root / "errata.yaml").write_text("errata: []\n")
    return root


@pytest.fixture
def copy(lean, tmp_path):
    return shutil.copytree(lean, tmp_path / "spec")


def problems(root, files):
    """What is wrong with the copy ``root`` once ``files`` are written into it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpecificationError) as caught:
        load(root)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [str(problem) for problem in caught.value.problems]


def replaced(text, old, new):
    assert old in text
    return text.replace(old, new)


# -------------------------------------------------------------------------- the shipped folder


def test_the_shipped_specification_loads(specification):
    """Cases of every kind and family are there, each under its own id and in its own folder."""
    assert {case.family for case in specification.cases.values()} == {
        path.name for path in (SPEC / "cases").iterdir()
    }
    assert {type(case.expectation) for case in specification.cases.values()} == {
        Values, Rejection, Undefined, Relations,
    }  # fmt: skip
    assert all(key == case.id for key, case in specification.cases.items())
    assert specification.facts
    assert specification.errata
    assert {case.operation for case in specification.cases.values()} == set(
        specification.operations
    )


def test_every_case_knows_where_it_is_written(specification):
    """File and line of a case lead to its id."""
    lines = {}
    for case in specification.cases.values():
        if case.file not in lines:
            lines[case.file] = (SPEC.parent / case.file).read_text(encoding="utf-8").split("\n")
        assert lines[case.file][case.line - 1] == f"- id: {case.id}"


def test_a_case_is_from_the_documents_or_says_why_it_is_there(specification):
    """No case is without a source or a reason, and every one shows a clause."""
    for case in specification.cases.values():
        assert case.derived or any(source[:2] in {"B-", "D-", "DV"} for source in case.sources)
        assert set(case.clauses) <= set(specification.clauses)


def test_cases_are_selected_by_glob_or_by_part(specification):
    """A pattern with a wildcard matches the whole id, any other a part of it; none means all."""

    def ids(*patterns):
        return [case.id for case in specification.select(patterns)]

    assert ids() == list(specification.cases)
    assert ids("gelu/pair") == ["gelu/pair"]
    assert "feed-forward/sublayer-two-features" in ids("two-features")
    assert set(ids("gelu/*")) == {name for name in specification.cases if name[:5] == "gelu/"}
    assert ids("*-features", "gelu/pair").count("layer-norm/two-features") == 1
    assert ids("gelu/pai", "gelu/p?ir") == ["gelu/pair"]
    assert ids("elu/*") == []
    assert ids("GELU/PAIR") == []


# ---------------------------------------------------------------------- what is read is kept


def test_what_is_kept_is_what_was_read(lean, cache):
    """The second reading gives the very same nouns, exact numbers and their types included."""
    first = load(lean)
    kept = set(cache.rglob("*.msgpack"))
    assert kept
    assert load(lean) == first == Specification(root=str(lean), **load_specification(lean))
    assert set(cache.rglob("*.msgpack")) == kept
    numbers = [number for case in load(lean).cases.values() for call in case.calls.values()
               for value in call.given.values() if isinstance(value, Tensor)
               for number in value.data]  # fmt: skip
    assert {type(number) for number in numbers} == {int, Decimal}


def test_what_is_kept_of_a_case_is_what_its_numbers_give(lean, cache):
    """Doubles and digests come from the cache, those of a changed case from its own numbers."""
    load(lean)
    for case in load(lean).cases.values():
        plain = msgspec.msgpack.decode(msgspec.msgpack.encode(case), type=Case)
        assert case.__dict__["question_digest"] == plain.question_digest
        for kept, tensor in zip(case.tensors(), plain.tensors(), strict=True):
            assert kept.doubles == tensor.doubles
            assert memoryview(kept.doubles).cast("d").tolist() == [float(n) for n in tensor.data]
            twice = msgspec.structs.replace(kept, data=tuple(2 * number for number in kept.data))
            assert memoryview(twice.doubles).cast("d").tolist() == [2 * float(n) for n in kept.data]
        other = msgspec.structs.replace(case, dtypes=("float16",))
        assert other.question_digest != case.question_digest


def test_the_outlines_of_what_is_kept_are_those_of_what_was_read(specification, cache):
    """A list shows the same of a case, whether or not the whole of it was decoded."""
    read = msgspec.structs.replace(specification, cases=dict(specification.cases))
    kept = load(SPEC)
    ids = kept.ids(["gelu/", "softmax/*"])
    assert kept.outlines(ids) == read.outlines(ids)
    assert {each.expectation.type for each in kept.outlines(kept.ids())} == {
        "Values", "Rejection", "Undefined", "Relations",
    }  # fmt: skip


def test_the_specification_of_the_kit_can_be_kept(specification, cache):
    """A single number that can't be encoded (a whole one beyond 64 bits) has it all read again by
    every command; such a number is written with an exponent.
    """
    assert list(cache.rglob(f"{digest(SPEC)}.msgpack"))


def test_any_change_is_read(copy):
    """A number, a new file, a renamed one and another folder: nothing stale is ever taken."""
    before = load(copy)
    path = copy / "cases" / "gelu" / "values.yaml"
    path.write_text(replaced(path.read_text(), "0.9999950000374996875]}", "0.75]}"))
    assert load(copy).cases != before.cases
    (copy / FILE).write_text(f"{HEAD}  given: {{x: [1]}}\n")
    assert "gelu/planted" in load(copy).cases
    (copy / FILE).rename(copy / "cases" / "gelu" / "renamed.yaml")
    assert load(copy).cases["gelu/planted"].file == "spec/cases/gelu/renamed.yaml"
    moved = copy.rename(copy.with_name("other"))
    assert load(moved).cases["gelu/planted"].file == "other/cases/gelu/renamed.yaml"
    assert load(moved).root == str(moved)
    (moved / "cases" / "more").mkdir()
    (moved / "cases" / "gelu").rename(moved / "cases" / "more" / "gelu")
    with pytest.raises(SpecificationError):
        load(moved)


def test_a_cache_that_can_t_be_used_costs_only_the_reading(lean, cache, tmp_path, monkeypatch):
    """Rubbish in the cache, or a file where its folder should be, is no error."""
    first = load(lean)
    for path in cache.rglob("*.msgpack"):
        path.write_bytes(b"rubbish")
    assert load(lean) == first
    for path in cache.rglob("*.msgpack"):  # written again, and one byte in its middle lost
        kept = bytearray(path.read_bytes())
        kept[len(kept) // 2] ^= 1
        path.write_bytes(kept)
    assert load(lean) == first
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setattr(
        "conformance.specification.cache.cache_folder", lambda name: tmp_path / "taken" / name
    )
    assert load(lean) == first


def test_a_number_of_any_size_can_be_kept(copy):
    """float32 holds whole numbers that no 64-bit integer does."""
    (copy / FILE).write_text(f"{HEAD}  given: {{x: [10000000000000000000000]}}\n")
    for _ in range(2):
        assert load(copy).cases["gelu/planted"].calls[""].given["x"].data == (10**22,)


# --------------------------------------------------------------------------------- JSON Schema


def validators():
    contents = {path.stem: json.loads(path.read_text()) for path in (SPEC / "schema").glob("*")}
    resources = [referencing.Resource.from_contents(schema) for schema in contents.values()]
    registry = referencing.Registry().with_resources(
        [(resource.id(), resource) for resource in resources]
    )
    return {
        name: jsonschema.Draft202012Validator(schema, registry=registry)
        for name, schema in contents.items()
    }


def with_floats(value):
    """``value`` as a reader of YAML without exact numbers has it."""
    if isinstance(value, dict):
        return {key: with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_floats(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value


def documents():
    """Every shipped YAML file, with the name of its schema."""
    for path in sorted(SPEC.rglob("*.yaml")):
        relative = path.relative_to(SPEC)
        yield pytest.param(relative.parts[0].removesuffix(".yaml"), path, id=relative.as_posix())


@pytest.mark.parametrize(("name", "path"), list(documents()))
def test_the_schema_accepts_what_is_shipped_and_refuses_a_wrong_key(name, path):
    """Other tools may rely on the schema: closed at the top and in every entry of a list."""
    validator = validators()[name]
    validator.check_schema(validator.schema)
    written = with_floats(Document.read(path, path.name).data)
    assert [error.message for error in validator.iter_errors(written)] == []
    assert not validator.is_valid({**written, "spare": 1})
    ((key, entries),) = [item for item in written.items() if isinstance(item[1], (list, dict))]
    for place in entries if isinstance(entries, dict) else range(len(entries)):
        alone = {**entries[place], "spare": 1}
        inner = {place: alone} if isinstance(entries, dict) else [alone]
        assert not validator.is_valid({**written, key: inner})


def test_the_schema_and_the_reader_know_the_same_keys():
    """A key that one of them allows, the other allows too."""
    schema = json.loads((SPEC / "schema" / "cases.json").read_text())
    properties = schema["properties"]["cases"]["items"]["properties"]
    assert set(properties) == set(CaseEntry.__struct_fields__)


# ------------------------------------------------------------------------------ planted faults

KEYS = ", ".join(CaseEntry.__struct_fields__)

CALLS = "  calls:\n    a: {x: [1, 2]}\n"

#: What follows HEAD, and the one line that is due, without the name of the file.
PLANTED = {
    "a wrong key": (
        "  gven: {x: [1]}\n",
        f"7: cases[0].gven: unknown key 'gven'; known: {KEYS}",
    ),
    "a value of another kind": (
        "  given: {x: [1]}\n  note: 5\n",
        "8: cases[0].note: expected text or nothing, not a whole number",
    ),
    "an unknown dtype": (
        "  given: {x: [1]}\n  dtypes: [float16]\n",
        "8: cases[0].dtypes[0]: Invalid enum value 'float16'",
    ),
    "a duplicate key": (
        "  given: {x: [1]}\n  given: {x: [2]}\n",
        "8: duplicate key 'given'",
    ),
    "a tab": (
        "\tgiven: {x: [1]}\n",
        "7: while scanning a plain scalar: found a tab character that violates indentation",
    ),
    "a tag that would run code": (
        "  given: {x: !!python/object/apply:os.getcwd []}\n",
        ("7: the tag tag:yaml.org,2002:python/object/apply:os.getcwd is not allowed: "
        "write plain YAML"),
    ),
    "an unknown argument": (
        "  given: {x: [1], z: [1]}\n",
        "7: cases[0].given.z: gelu has no argument 'z'; it has x",
    ),
    "a missing argument": ("  given: {}\n", "7: cases[0].given: gelu needs 'x'"),
    "no question": (
        "  note: nothing is asked\n",
        "3: cases[0]: write either given (one call) or calls (several)",
    ),
    "two questions": (
        "  given: {x: [1]}\n  calls: {a: {x: [1]}}\n",
        "3: cases[0]: write either given (one call) or calls (several)",
    ),
    "an unknown output": (
        "  given: {x: [1]}\n  expect: {z: [1]}\n",
        "8: cases[0].expect.z: no result 'z'; there is y",
    ),
    "a ragged figure": (
        "  given: {x: [1]}\n  printed: {y: [[1], 2]}\n",
        "8: cases[0].printed.y[1]: ragged: a number where the rows before have a list",
    ),
    "a gradient without upstream": (
        "  mode: vjp\n  given: {x: [1]}\n",
        "3: cases[0]: mode vjp needs upstream for y",
    ),
    "a gradient of nothing": (
        "  mode: vjp\n  given: {x: [1]}\n  upstream: {y: [1]}\n  wrt: [z]\n",
        "3: cases[0]: wrt names 'z', which has no gradient",
    ),
    "an upstream without gradient": (
        "  given: {x: [1]}\n  upstream: {y: [1]}\n",
        "3: cases[0]: upstream and wrt belong to mode: vjp",
    ),
    "two things due": (
        "  given: {x: [1]}\n  expect: {y: [1]}\n  relate:\n  - {less: y, than: 1}\n",
        "3: cases[0]: a case has one of expect/printed, reject, undefined, relate",
    ),
    "a rejection that is not of the operation": (
        "  given: {x: [1]}\n  reject: weight-rank\n  beside: gelu/pair\n",
        "8: cases[0].reject: gelu rejects nothing",
    ),
    "no twin": (
        "  given: {x: [1]}\n  undefined: y\n",
        "3: cases[0]: needs beside: the id of a valid case like it",
    ),
    "an unknown twin": (
        "  given: {x: [1]}\n  undefined: y\n  beside: gelu/pear\n",
        "3: gelu/planted: no case 'gelu/pear' to stand beside",
    ),
    "a twin without values": (
        "  given: {x: [1]}\n  undefined: y\n  beside: gelu/odd-part\n",
        "3: gelu/planted: 'gelu/odd-part' is not a valid gelu case",
    ),
    "a twin where values are due": (
        "  given: {x: [1]}\n  beside: gelu/pair\n",
        "8: cases[0].beside: belongs to reject and undefined",
    ),
    "an unknown undefined output": (
        "  given: {x: [1]}\n  undefined: z\n  beside: gelu/pair\n",
        "8: cases[0].undefined: no output 'z'",
    ),
    "several calls and no relation": (
        CALLS + "    b: {x: [2]}\n",
        "3: cases[0]: several calls need relate",
    ),
    "an unknown relation": (
        CALLS + "  relate:\n  - {equal: a.y}\n",
        ("10: cases[0].relate[0]: a relation is one of same, differ, combination, mean_square, "
        "less, greater, drawn"),
    ),
    "a relation of an unknown output": (
        CALLS + "  relate:\n  - {less: b.y, than: 1}\n",
        "10: cases[0].relate[0]: 'b.y' is no output of this case; there is a.y",
    ),
    "a relation with a wrong key": (
        CALLS + "  relate:\n  - {less: a.y, than: 1, identical: true}\n",
        "10: cases[0].relate[0].identical: unknown key 'identical'",
    ),
    "a factor that is no whole number": (
        CALLS + "  relate:\n  - {combination: {a.y: 0.5}, equals: 0}\n",
        "10: cases[0].relate[0].combination.a.y: the factor of a.y is a whole number",
    ),
    "a where that is no slice": (
        CALLS + "    b: {x: [2, 3]}\n  relate:\n  - {same: y, where: '[first]'}\n",
        ("11: cases[0].relate[0]: 'first' in '[first]' is neither a whole number nor "
        "start:stop:step"),
    ),
    "a slice that does not fit": (
        CALLS + "    b: {like: a, set: {'x[:1]': [1, 2]}}\n  relate:\n  - {same: y}\n",
        "9: cases[0].calls.b.set.x[:1]: shape [2] where the slice has [1]",
    ),
    "a slice of what is not given": (
        CALLS + "    b: {like: a, set: {'z[:1]': [1]}}\n  relate:\n  - {same: y}\n",
        "9: cases[0].calls.b.set.z[:1]: call 'a' is not given 'z'",
    ),
    "an output of a later call": (
        "  calls:\n    a: {x: {from: b.y}}\n    b: {x: [1]}\n  relate:\n  - {same: y}\n",
        "8: cases[0].calls.a.x.from: 'b.y' is not call.output of an earlier call",
    ),
    "a where of three sides": (
        CALLS + "    b: {x: [2, 3]}\n  relate:\n  - {same: y, where: ['[0]', '[0]', '[1]']}\n",
        "11: cases[0].relate[0].where: where is a slice, or two: one for each side",
    ),
    "a gradient at an output": (
        CALLS + "    b: {x: {from: a.y}}\n  mode: vjp\n  upstream: {y: [1, 1]}\n"
        "  relate:\n  - {differ: [a.x, b.x]}\n",
        "9: cases[0].calls.b.x.from: a gradient is asked of written arguments, not of outputs",
    ),
    "a source of no list": (
        "  given: {x: [1]}\n  sources: [X-000-01]\n",
        "8: cases[0].sources: 'X-000-01' is no source id, such as B-000-01",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_one_line_that_says_where_and_what(copy, text, line):
    """File, line, the path inside the document, and what is wrong with it; nothing else."""
    assert problems(copy, {FILE: HEAD + text}) == [f"spec/{FILE}:{line}"]


#: Faults whose line and path are due, however the rest is worded.
LOCATED = {
    "an alias": ("  given: {x: &one [1]}\n  expect: {y: *one}\n", "8: "),
    "1e400": ("  given: {x: [1, 1e400]}\n", "7: cases[0].given.x: 1E+400 is outside "),
    "1e9999999": ("  given: {x: [1, 1e9999999]}\n", "7: cases[0].given.x: "),
    "1e-9999999": ("  given: {x: [1, 1e-9999999]}\n", "7: cases[0].given.x: "),
    "1e99999999999999999999": ("  given: {x: [1, 1e99999999999999999999]}\n", "7: "),
    "ten thousand digits": (f"  given: {{x: [1, {'9' * 10_000}]}}\n", "7: "),
    "a figure beyond all measure": (
        "  given: {x: [1]}\n  expect: {y: [1e9999999]}\n", "8: cases[0].expect.y",
    ),
    "a fill beyond all measure": (
        "  given: {x: {fill: {seed: 1, shape: [2], scale: 1e9999999}}}\n", "7: cases[0].given.x",
    ),
    "a ragged list": (
        "  given:\n    x:\n    - [1, 2]\n    - [3]\n",
        "10: cases[0].given.x[1]: ragged: 1 entries, the rows before have 2",
    ),
    "an empty list": ("  given: {x: []}\n", "7: cases[0].given.x: an empty list has no shape"),
    "text for a number": (
        "  given: {x: [1, 1_000]}\n",
        "7: cases[0].given.x[1]: expected a number, got str '1_000'",
    ),
    "a fraction in whole numbers": (
        "  given: {x: {dtype: int64, shape: [1], data: [1.5]}}\n", "7: cases[0].given.x",
    ),
    "a list nested too deep": (f"  given: {{x: {'[' * 400}1{']' * 400}}}\n", "1: nested too "),
    "a step of zero": (
        CALLS + "    b: {like: a, set: {'x[::0]': 1}}\n  relate:\n  - {differ: y}\n",
        "9: cases[0].calls.b.set.x[::0]: ",
    ),
    "a where of step zero": (
        CALLS + "    b: {x: [2, 3]}\n  relate:\n  - {differ: y, where: '[::0]'}\n",
        "11: cases[0].relate[0]",
    ),
    "a slice of an output": (
        CALLS + "    b: {x: {from: a.y}}\n    c: {like: b, set: {'x[0]': 1}}\n"
        "  relate:\n  - {differ: [a.y, c.y]}\n",
        "10: cases[0].calls.c.set.x[0]: ",
    ),
    "like what is no name": (
        CALLS + "    b: {like: [a], set: {x: [2, 3]}}\n  relate:\n  - {less: a.y, than: 3}\n",
        "9: cases[0].calls.b.like: ",
    ),
    "like a later call": (
        ("  calls:\n    b: {like: a, set: {x: [2]}}\n    a: {x: [1]}\n"
        "  relate:\n  - {less: a.y, than: 3}\n"),
        "8: cases[0].calls.b.like: 'a' is not an earlier call",
    ),
    "a changed call with arguments": (
        CALLS + "    b: {like: a, x: [3, 4]}\n  relate:\n  - {less: a.y, than: 3}\n",
        "9: cases[0].calls.b: a changed call has only like: <call> and set: ",
    ),
    "a call that is no mapping": (
        "  calls: {a: {x: [1]}, b: 5}\n  relate:\n  - {less: a.y, than: 3}\n",
        "7: cases[0].calls.b: expected a mapping, not a whole number",
    ),
    "one named call and no relation": ("  calls: {a: {x: [1]}}\n", "3: cases[0]"),
    "figures of a named call": ("  calls: {a: {x: [1]}}\n  expect: {y: [1]}\n", "3: cases[0]"),
    "an undefined output of named calls": (
        "  calls: {a: {x: [1]}}\n  undefined: y\n  beside: gelu/pair\n", "3: cases[0]",
    ),
    "no dtype at all": ("  given: {x: [1]}\n  dtypes: []\n", "8: cases[0].dtypes"),
    "a dtype twice": ("  given: {x: [1]}\n  dtypes: [float32, float32]\n", "8: cases[0].dtypes"),
    "a combination of nothing": (
        CALLS + "  relate:\n  - {combination: {}, equals: 0}\n", "10: cases[0].relate[0]",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "begins"), LOCATED.values(), ids=LOCATED)
def test_a_planted_fault_is_one_line_that_says_where(copy, text, begins):
    """One line, and only one, whatever else follows from the fault."""
    (told,) = problems(copy, {FILE: HEAD + text})
    assert told.startswith(f"spec/{FILE}:{begins}")
    assert told.isprintable()


def test_a_number_outside_one_dtype_names_it(copy):
    """float64 holds 1e39 and float32 does not; a case that names float64 alone may have it."""
    text = f"{HEAD}  given: {{x: [1e39]}}\n"
    assert problems(copy, {FILE: text}) == [
        f"spec/{FILE}:7: cases[0].given.x: 1E+39 is outside float32: name the dtypes of this case"
    ]
    (copy / FILE).write_text(f"{text}  dtypes: [float64]\n")
    assert "gelu/planted" in load(copy).cases


#: Other faults of a case's head, or of the other files.
ELSEWHERE = {
    "a duplicate id": (
        {FILE: replaced(HEAD, "gelu/planted", "gelu/pair") + "  given: {x: [1]}\n"},
        "gelu/pair' is used twice",
    ),
    "a duplicate id in one file": (
        {FILE: f"{HEAD}  given: {{x: [1]}}\n{HEAD[HEAD.index('- id'):]}  given: {{x: [2]}}\n"},
        f"spec/{FILE}:8: cases[1].id: 'gelu/planted' is used twice",
    ),
    "an id in the wrong folder": (
        {FILE: replaced(HEAD, "gelu/planted", "linear/planted") + "  given: {x: [1]}\n"},
        f"spec/{FILE}:3: cases[0].id: lies in the folder 'gelu'",
    ),
    "an id of another form": (
        {FILE: replaced(HEAD, "gelu/planted", "gelu/Planted_1") + "  given: {x: [1]}\n"},
        (f"spec/{FILE}:3: cases[0].id: 'gelu/Planted_1' is not of the form "
        "family/words-with-dashes"),
    ),
    "a retired id": (
        {
            FILE: f"{HEAD}  given: {{x: [1]}}\n",
            "retired.yaml": "retired:\n- {id: gelu/planted, reason: it was wrong}\n",
        },
        f"spec/{FILE}:3: cases[0].id: 'gelu/planted' is retired and is never used again",
    ),
    "an unknown clause": (
        {FILE: replaced(HEAD, "GELU-EXACT", "GELU-EXCAT") + "  given: {x: [1]}\n"},
        f"spec/{FILE}:3: gelu/planted: no clause 'GELU-EXCAT' under clauses/",
    ),
    "no clause": (
        {FILE: replaced(HEAD, "GELU-EXACT", "") + "  given: {x: [1]}\n"},
        f"spec/{FILE}:5: cases[0].clauses: a case shows at least one clause",
    ),
    "an unknown operation": (
        {FILE: replaced(HEAD, "operation: gelu", "operation: glue") + "  given: {x: [1]}\n"},
        f"spec/{FILE}:1: operation: no operation 'glue' in operations.yaml",
    ),
    "no list of cases": (
        {FILE: "operation: gelu\n"},
        f"spec/{FILE}:1: missing required field `cases`",
    ),
    "an empty file": ({FILE: ""}, f"spec/{FILE}:1: expected a mapping, not nothing"),
    "an entry that is empty": (
        {FILE: "operation: gelu\ncases:\n-\n"},
        f"spec/{FILE}:3: cases[0]: expected a mapping, not nothing",
    ),
    "other bytes than UTF-8": (
        {FILE: b"operation: gelu # \xe9\n"},
        f"spec/{FILE}: not UTF-8 text: invalid continuation byte at byte 18",
    ),
    "an erratum for an unknown case": (
        {
            "errata.yaml": "errata:\n- {id: E-000-01, document: d, where: w, printed: p, right: r, "
            "reason: r, kind: figure,\n   cases: [gelu/pear]}\n"
        },
        "spec/errata.yaml:3: errata[0].cases: no case or fact 'gelu/pear'",
    ),
    "an erratum of an unknown kind": (
        {
            "errata.yaml": "errata:\n- {id: E-000-01, document: d, where: w, printed: p, right: r, "
            "reason: r,\n   kind: typo}\n"
        },
        "spec/errata.yaml:3: errata[0].kind: Invalid enum value 'typo'",
    ),
    "a fact of an unknown operation": (
        {"facts.yaml": "facts:\n- {id: fact/a, operation: glue, title: t, clauses: [A-B]}\n"},
        "spec/facts.yaml:2: facts[0].operation: no operation 'glue'",
    ),
    "a fact with a wrong key": (
        {"facts.yaml": "facts:\n- {id: fact/a, operation: gelu, titel: t, clauses: []}\n"},
        "spec/facts.yaml:2: facts[0].titel: unknown key 'titel'; known: ",
    ),
    "a difference without mode": (
        {
            "facts.yaml": "facts:\n- {id: fact/a, operation: gelu, title: t, clauses: [GELU-EXACT],"
            " given: {x: [1]},\n   central_difference: {step: 1e-6, within: 1e-5}}\n"
        },
        ("spec/facts.yaml:3: facts[0].central_difference: needs a step, a limit within, and "
        "mode: vjp"),
    ),
    "a retired fact": (
        {
            "facts.yaml": "facts:\n- {id: fact/a, operation: gelu, title: t, "
            "clauses: [GELU-EXACT], given: {x: [1]}, expect: {y: [1]}}\n",
            "retired.yaml": "retired:\n- {id: fact/a, reason: it was wrong}\n",
        },
        "spec/facts.yaml:2: facts[0].id: 'fact/a' is retired and is never used again",
    ),
    "a clause with a wrong key": (
        {"clauses/linear-layer.yaml": "document: linear-layer\nclauses:\n"
         "- {id: LIN-A, text: t, section: s,\n   decison: d}\n"},
        "spec/clauses/linear-layer.yaml:4: clauses[0].decison: unknown key 'decison'; known: ",
    ),
    "a clause twice": (
        {"clauses/linear-layer.yaml": "document: linear-layer\nclauses:\n"
         "- {id: LIN-A, text: t, section: s}\n- {id: LIN-A, text: t, section: s}\n"},
        "spec/clauses/linear-layer.yaml:4: clauses[1].id: 'LIN-A' is used twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "line"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_fault_of_any_file_is_one_line(copy, files, line):
    """Ids, clauses, facts, errata and withdrawn ids are held to each other."""
    (told,) = problems(copy, files)
    assert line in told
    assert told.startswith("spec/")
    assert told.isprintable()


@pytest.mark.parametrize("name", ["operations.yaml", "facts.yaml", "errata.yaml", "retired.yaml"])
def test_a_missing_file_is_named(copy, name):
    """Every file of the top folder must be there."""
    (copy / name).unlink()
    assert f"spec/{name}: can't be read: No such file or directory" in problems(copy, {})


@pytest.mark.parametrize(
    "name", ["cases/gelu/a.yml", "cases/a.yaml", "cases/gelu/more/a.yaml", "clauses/a.yml"]
)
def test_a_file_that_would_never_be_read_is_named(copy, name):
    """A case in a file of another ending or another depth is not passed over in silence."""
    (told,) = problems(copy, {name: f"{HEAD}  given: {{x: [1]}}\n"})
    assert told.startswith(f"spec/{name}: ")


def test_a_mistake_in_the_operations_is_not_lost_among_its_consequences(copy):
    """Where operations.yaml is at fault, its line is told and no case is blamed for it."""
    text = (copy / "operations.yaml").read_text()
    text = replaced(text, 'kind: real, shape: "[..., d_in]"', 'kind: reel, shape: ""')
    line = text[: text.index("kind: reel")].count("\n") + 1
    (told,) = problems(copy, {"operations.yaml": text})
    assert told.startswith(f"spec/operations.yaml:{line}: operations.linear.arguments.x.kind: ")


def test_an_operation_is_composed_of_others_that_exist_and_not_of_itself(copy):
    """``uses`` names operations, and never leads back to where it started."""
    text = (copy / "operations.yaml").read_text()
    (told,) = problems(
        copy, {"operations.yaml": replaced(text, "[linear, gelu]", "[linear, glue]")}
    )
    assert told.endswith(": operations.feed_forward.uses: no operation 'glue'")
    looped = replaced(text, "[linear, gelu]", "[linear, feed_forward_sublayer]")
    (told, *_) = problems(copy, {"operations.yaml": looped})
    assert "operations.feed_forward.uses" in told


def test_every_fault_of_every_file_is_told_at_once(tmp_path):
    """Five faults in a copy of the whole specification give five lines; none hides another."""
    root = shutil.copytree(SPEC, tmp_path / "spec")
    head = HEAD.replace("gelu/planted", "{}")
    planted = {
        "cases/gelu/a.yaml": head.format("gelu/a") + "  gven: {x: [1]}\n",
        "cases/gelu/b.yaml": head.format("gelu/b") + "  given: {x: [1]}\n  given: {x: [2]}\n",
        "cases/gelu/c.yaml": head.format("gelu/c") + "  given: {x: [1], z: [1]}\n"
        + head.format("gelu/d")[len("operation: gelu\ncases:\n") :] + "  given: {}\n",
        "cases/linear/e.yaml": replaced(head.format("linear/e"), "n: gelu", "n: linear")
        + "  given: {x: [1, 2], weight: [1, 2]}\n  reject: weight-rank\n  beside: linear/pear\n",
    }  # fmt: skip
    assert problems(root, planted) == [
        f"spec/cases/gelu/a.yaml:7: cases[0].gven: unknown key 'gven'; known: {KEYS}",
        "spec/cases/gelu/b.yaml:8: duplicate key 'given'",
        "spec/cases/gelu/c.yaml:7: cases[0].given.z: gelu has no argument 'z'; it has x",
        "spec/cases/gelu/c.yaml:12: cases[1].given: gelu needs 'x'",
        "spec/cases/linear/e.yaml:3: linear/e: no case 'linear/pear' to stand beside",
    ]


def test_messages_name_the_folder_that_was_read(tmp_path):
    """Another folder than the shipped one is called by its own name."""
    root = tmp_path / "mine"
    root.mkdir()
    assert problems(root, {})[0].startswith("mine/errata.yaml: can't be read")
