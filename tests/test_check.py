"""``check`` finds every claim that is false and every truth that is stale, and says where."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from conformance.command import entry
from conformance.errors import SpecificationError
from conformance.layout import SPEC
from conformance.specification import load
from conformance.truth.checking.check import check
from conformance.truth.checking.freeze import prove_all, prove_case, write

GIVEN = "  given: {x: [1, 3], gamma: [1, 1], beta: [0, 0], eps: 1e-5}\n"
RIGHT = "[-0.9999950000374996875027344, 0.9999950000374996875027344]"

#: Two calls: of a vector and of another, which differs by a shift or altogether.
SHIFTED = """\
  calls:
    a: {x: [1, 3], gamma: [1, 1], beta: [0, 0], eps: 1e-5}
    b: {like: a, set: {x: [11, 13]}}
"""
OTHER = SHIFTED.replace("[11, 13]", "[1, 1.001]")

LINEAR = "  given: {x: [1, 2], weight: [[1, 0], [2, 1]]}\n"


def relation(text, calls=SHIFTED):
    return f"{calls}  relate:\n  - {{{text}}}\n"


#: What the cases of each operation say, by the last part of their id.
CASES = {
    "layer_norm": {
        "right": f"{GIVEN}  expect: {{y: {RIGHT}}}\n  printed: {{y: [-0.999995, 0.999995]}}\n",
        "wrong-expect": f"{GIVEN}  expect: {{y: {RIGHT.replace('344]', '345]')}}}\n",
        "wrong-printed": f"{GIVEN}  printed: {{y: [-0.999995, 0.999996]}}\n",
        "whole-printed": f"{GIVEN}  printed: {{y: [-1, 1.0]}}\n",
        "excused-printed": f"{GIVEN}  printed: {{y: [-0.999995, 0.999996]}}\n",
        "excused-expect": f"{GIVEN}  expect: {{y: [-0.999995, 0.999996]}}\n",
        "wrong-shape": f"{GIVEN}  expect: {{y: [[-0.999995, 0.999995]]}}\n",
        "changed": GIVEN,
        "retitled": GIVEN,
        "unfrozen": GIVEN,
        "last-digit": GIVEN,
        "wider-bound": GIVEN,
        "narrower-bound": GIVEN,
        "bound-within-a-percent": GIVEN,
        "no-bound": GIVEN,
        "other-dtypes": GIVEN,
        "holds": relation("same: [a.y, b.y]") + "  degenerate: a constant passes\n",
        "not-the-same": relation("same: [a.y, b.y]", OTHER),
        "not-the-same-there": relation("same: [a.y, b.y], where: '[1:]'", OTHER),
        "not-identical": relation("same: [a.y, b.y], identical: true", OTHER),
        "does-not-differ": relation("differ: [a.y, b.y]"),
        "wrong-sum": relation("combination: {a.y: 1, b.y: -1}, equals: 1e-20"),
        "wrong-square": relation("mean_square: a.y, equals: 0.99999000009999900002"),
        "not-less": relation("less: a.y, than: 0.9999950001"),
        "defined": f"{GIVEN}  undefined: y\n  beside: layer-norm/right\n",
        "no-upstream-fits": f"  mode: vjp\n{GIVEN}  upstream: {{y: [1, 2, 3]}}\n",
    },
    "linear": {
        "right": f"{LINEAR}  expect: {{y: [5, 2]}}\n",
        "valid": f"{LINEAR}  reject: weight-rank\n  beside: linear/right\n",
        "rejected": "  given: {x: [1, 2], weight: [1, 2]}\n  reject: weight-rank\n"
        "  beside: linear/right\n",
        "rejected-otherwise": "  given: {x: [1, 2], weight: [1, 2]}\n  reject: input-width\n"
        "  beside: linear/right\n",
        "should-be-rejected": "  given: {x: [1, 2], weight: [1, 2]}\n",
    },
}  # fmt: skip

FACT = "- {{id: fact/{}, operation: layer_norm, title: t, clauses: [LN-SHOWN], {}}}\n"
ARGUMENTS = "given: {x: [1, 3], gamma: [1, 1], beta: [0, 0], eps: 1e-5}"
VARIANCE = "-0.7071050134262236564844194, 0.7071050134262236564844194"
DIFFERENCE = f"mode: vjp, {ARGUMENTS}, upstream: {{y: [1, -0.5]}}, central_difference: "
FACTS = {
    "right": f"{ARGUMENTS}, expect: {{y: {RIGHT}}}",
    "right-by-a-fault": f"fault: sample-variance, {ARGUMENTS}, expect: {{y: [{VARIANCE}]}}",
    "right-difference": DIFFERENCE + "{step: 1e-6, within: 1e-5}",
    "wrong": f"{ARGUMENTS}, expect: {{y: [-0.999995, 0.999994]}}",
    "wrong-by-a-fault": f"fault: eps-outside-root, {ARGUMENTS}, expect: {{y: [{VARIANCE}]}}",
    "wrong-relation": f"{ARGUMENTS}, relate: [{{less: y, than: 0}}]",
    "wrong-difference": DIFFERENCE + "{step: 1e-6, within: 1e-12}",
    "unknown-fault": f"fault: sample-varience, {ARGUMENTS}, expect: {{y: [{VARIANCE}]}}",
    "excused": f"{ARGUMENTS}, printed: {{y: [-0.999995, 0.999994]}}",
    "empty": ARGUMENTS,
}

ERRATUM = """\
errata:
- {id: E-000-01, document: decoder-block, where: w, printed: p, right: r, reason: r, kind: figure,
   cases: [layer-norm/excused-printed, layer-norm/excused-expect, fact/excused]}
"""
CLAUSES = ["LN-SHOWN", "LN-UNSHOWN", "LN-POPULATION-VARIANCE"]


def family(operation):
    return operation.replace("_", "-")


def small(root, cases, facts=(), errata="errata: []\n", clauses=("LN-SHOWN",)):
    """A specification of the given cases in the folder ``root``, with the shipped operations."""
    (root / "clauses").mkdir(parents=True)
    shutil.copy(SPEC / "operations.yaml", root)
    listed = "".join(f"- {{id: {name}, text: t, section: s}}\n" for name in clauses)
    (root / "clauses" / "a.yaml").write_text(f"document: a\nclauses:\n{listed}")
    for operation, bodies in cases.items():
        folder = root / "cases" / family(operation)
        folder.mkdir(parents=True)
        heads = (
            f"- id: {folder.name}/{name}\n  title: t\n  clauses: [LN-SHOWN]\n  derived: d\n{body}"
            for name, body in bodies.items()
        )
        (folder / "a.yaml").write_text(f"operation: {operation}\ncases:\n{''.join(heads)}")
    told = "".join(FACT.format(*item) for item in dict(facts).items())
    (root / "facts.yaml").write_text(f"facts:\n{told}" if told else "facts: []\n")
    (root / "errata.yaml").write_text(errata)
    (root / "retired.yaml").write_text("retired: []\n")
    return root


def freeze(root):
    """Write the truth of every case; what proving them gave."""
    proven = list(prove_all(load(root)))
    write(proven, root / "truth")
    return proven


def altered(path, alter):
    """Lets ``alter`` change the cases of a truth file."""
    frozen = json.loads(path.read_text())
    alter(frozen["cases"])
    path.write_text(json.dumps(frozen))


def spoil(cases):
    """What a careless hand could do to frozen truth."""

    def bound(name, factor):
        cases[f"layer-norm/{name}"]["bounds"]["float32"]["y"][1] *= factor

    del cases["layer-norm/unfrozen"]
    digits = cases["layer-norm/last-digit"]["values"]["y"]["data"]
    digits[0] = digits[0][:-1] + str((int(digits[0][-1]) + 1) % 10)
    bound("wider-bound", 1.05)
    bound("narrower-bound", 0.95)
    bound("bound-within-a-percent", 1.005)
    cases["layer-norm/no-bound"]["bounds"]["float64"]["y"][0] = None
    del cases["layer-norm/other-dtypes"]["bounds"]["float32"]
    cases["layer-norm/withdrawn"] = cases["layer-norm/right"]


def lines(specification, **how):
    """Every problem that check finds; what is to be frozen again is so in the same folder."""
    with pytest.raises(SpecificationError) as caught:
        check(specification, **how)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    where = f" --spec {specification.root}`"
    told = [str(problem) for problem in caught.value.problems]
    assert all(where in line for line in told if "conformance freeze" in line)
    return [line.replace(where, "`") for line in told]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """The user's cache is left alone."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conformance.specification.cache.cache_folder", lambda name: folder / name)
        yield folder


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """A specification in which nearly everything is false."""
    root = tmp_path_factory.mktemp("troubled") / "spec"
    small(root, CASES, FACTS, ERRATUM, CLAUSES)
    freeze(root)
    path = root / "cases" / "layer-norm" / "a.yaml"
    text = path.read_text()
    begin = text.index("- id: layer-norm/changed")
    text = text[:begin] + text[begin:].replace("[1, 3]", "[1, 4]", 1)
    begin = text.index("- id: layer-norm/retitled")
    path.write_text(text[:begin] + text[begin:].replace("title: t", "title: another", 1))
    altered(root / "truth" / "layer-norm.json", spoil)
    return load(root)


@pytest.fixture(scope="module")
def told(troubled):
    return lines(troubled)


@pytest.fixture(scope="module")
def told_quickly(troubled):
    return lines(troubled, quick=True)


def at(specification, name):
    """How a line about the case or fact ``name`` begins."""
    found = specification.cases.get(name) or specification.facts[name].case
    return f"{found.file}:{found.line}: {name}: "


ABOUT_FIGURES = {
    "layer-norm/wrong-expect": (
        "expect: y[1] is 0.9999950000374996875027345, the oracle says 0.9999950000374996875027344"
    ),
    "layer-norm/wrong-printed": (
        "printed: y[1] is 0.999996, the oracle says 0.9999950000374996875027344"
    ),
    "layer-norm/whole-printed": (
        "printed: y[0] is -1, the oracle says -0.9999950000374996875027344"
    ),
    "layer-norm/excused-expect": (
        "expect: y[1] is 0.999996, the oracle says 0.9999950000374996875027344"
    ),
    "layer-norm/wrong-shape": "expect: y has shape [1, 2], the oracle [2]",
}
ABOUT_FRESHNESS = {
    "layer-norm/changed": (
        "what it asks has changed since its truth was frozen: run `conformance freeze`"
    ),
    "layer-norm/unfrozen": "no truth is frozen for this case: run `conformance freeze`",
}
ONLY_PROVEN = {
    "layer-norm/last-digit": "the frozen values are not the oracle's: run `conformance freeze`",
    "layer-norm/wider-bound": (
        "the frozen bounds of y in float32 are not the oracle's: run `conformance freeze`"
    ),
    "layer-norm/narrower-bound": (
        "the frozen bounds of y in float32 are not the oracle's: run `conformance freeze`"
    ),
    "layer-norm/no-bound": (
        "the frozen bounds of y in float64 are not the oracle's: run `conformance freeze`"
    ),
    "layer-norm/not-the-same": "relate: a.y = b.y does not hold: off by ",
    "layer-norm/not-the-same-there": "relate: a.y = b.y does not hold: off by ",
    "layer-norm/not-identical": "relate: a.y = b.y does not hold: off by ",
    "layer-norm/wrong-sum": "relate: 1*a.y + -1*b.y does not hold: off by ",
    "layer-norm/wrong-square": "relate: the mean square of a.y does not hold: off by ",
    "layer-norm/defined": "y has a value: ",
    "layer-norm/no-upstream-fits": "the reference gives no value: ",
    "linear/valid": "the reference does not reject this",
    "linear/rejected-otherwise": "the reference rejects this as weight-rank, not as input-width",
    "linear/should-be-rejected": "the reference gives no value: ",
    "fact/wrong": (
        "expect: y[1] is 0.999994, the oracle says 0.9999950000374996875027344"
    ),
    "fact/wrong-by-a-fault": "expect: y[0] is -0.7071050134262236564844194, the oracle says -0.99",
    "fact/wrong-relation": "relate: not visible in float64: y is not less than 0",
    "fact/wrong-difference": "central difference in x at 0 may be off by ",
    "fact/unknown-fault": "no fault 'sample-varience'",
    "fact/empty": "claims nothing: write expect, printed, relate or central_difference",
}  # fmt: skip
IN_EACH_DTYPE = {
    "layer-norm/does-not-differ": "relate: not visible in float32: a.y does not differ from b.y",
    "layer-norm/not-less": "relate: not visible in float32: a.y is not less than 0.9999950001",
}


@pytest.mark.parametrize(("name", "message"), (ABOUT_FIGURES | ABOUT_FRESHNESS).items())
def test_a_wrong_figure_or_a_stale_truth_is_found_with_and_without_the_oracle(
    troubled, told, told_quickly, name, message
):
    """Figures and freshness need the frozen truth alone, so that ``--quick`` sees them too."""
    assert at(troubled, name) + message in told
    assert at(troubled, name) + message in told_quickly


@pytest.mark.parametrize(("name", "message"), (ONLY_PROVEN | IN_EACH_DTYPE).items())
def test_whatever_else_is_untrue_is_found_by_the_oracle(
    troubled, told, told_quickly, name, message
):
    """Altered truth, relations that do not hold, rejections and facts: the oracle decides."""
    begins = at(troubled, name) + message
    assert [line for line in told if line.startswith(begins)]
    assert not [line for line in told_quickly if line.startswith(begins)]


def test_nothing_that_holds_is_reported(troubled, told, told_quickly):
    """Right claims, an excused figure, a new title and a bound within one percent are in order."""
    names = [*troubled.cases, *troubled.facts]
    at_fault = {name for name in names if any(line.startswith(at(troubled, name)) for line in told)}
    assert set(names) - at_fault == {
        "layer-norm/right", "layer-norm/excused-printed", "layer-norm/retitled",
        "layer-norm/bound-within-a-percent", "layer-norm/holds", "linear/right", "linear/rejected",
        "fact/right", "fact/right-by-a-fault", "fact/right-difference", "fact/excused",
    }  # fmt: skip
    quickly = {
        name for name in names if any(line.startswith(at(troubled, name)) for line in told_quickly)
    }
    assert quickly == {*ABOUT_FIGURES, *ABOUT_FRESHNESS, "layer-norm/other-dtypes",
                       "layer-norm/no-upstream-fits", "linear/should-be-rejected"}  # fmt: skip


def test_bounds_of_other_dtypes_than_the_case_are_found(troubled, told, told_quickly):
    """A run would find no bound, so even ``--quick`` looks whether there is one."""
    begins = at(troubled, "layer-norm/other-dtypes")
    assert begins + "the frozen bounds are of other dtypes: run `conformance freeze`" in told
    assert [line for line in told_quickly if line.startswith(begins)]


def test_truth_without_a_case_is_found(told, told_quickly):
    """What is frozen is exactly what the cases ask."""
    line = (
        "spec/truth/layer-norm.json: layer-norm/withdrawn: "
        "has frozen truth but no case with values: run `conformance freeze`"
    )
    assert line in told
    assert line in told_quickly


def test_a_clause_that_nothing_shows_is_found(told, told_quickly):
    """A requirement without a case or fact is no requirement; one that has either is in order."""
    for found in (told, told_quickly):
        about = [line for line in found if "no case or fact shows this clause" in line]
        assert sorted(line.split(": ")[1] for line in about) == [
            "LN-POPULATION-VARIANCE",
            "LN-UNSHOWN",
        ]
        assert all(line.startswith("spec/clauses/a.yaml") for line in about)


def test_a_fault_that_no_case_separates_is_found(told):
    """Every known mistake is rejected by a case in each dtype, and breaks a clause."""
    assert "faults: bias-gradient-averaged: no case separates it in float32" in told
    assert "faults: bias-gradient-averaged: no case separates it in float64" in told
    assert "faults: bias-gradient-averaged: breaks 'LIN-GRAD-SUM', which is no clause" in told
    assert not any("sample-variance" in line for line in told if line.startswith("faults"))


def test_kills_that_are_not_those_of_the_faults_are_found(tmp_path, monkeypatch):
    """The frozen kills are proven too: their size to one percent, and that their case exists."""
    root = small(tmp_path / "spec", {"layer_norm": {"right": GIVEN}})
    proven = freeze(root)
    monkeypatch.setattr("conformance.truth.checking.freeze.prove_all", lambda *_: iter(proven))
    path = root / "truth" / "layer-norm.json"
    whole = json.loads(path.read_text())

    def told():
        about_other_things = ("faults: ", "spec/clauses/")
        return [line for line in lines(load(root)) if not line.startswith(about_other_things)]

    line = (
        "spec/truth/layer-norm.json: kills: the frozen kills are not those of the faults: "
        "run `conformance freeze`"
    )
    assert told() == []
    for spoil_kills in (
        lambda kills: kills["sample-variance"]["float32"][0].__setitem__(1, 1.0),
        lambda kills: kills["sample-variance"]["float32"].pop(),
        lambda kills: kills["sample-variance"].pop("float64"),
        lambda kills: kills.pop("sample-variance"),
        lambda kills: kills["sample-variance"]["float32"][0].__setitem__(0, "layer-norm/gone"),
    ):
        kills = json.loads(json.dumps(whole["kills"]))
        spoil_kills(kills)
        path.write_text(json.dumps({**whole, "kills": kills}))
        assert told() == [line]


# ------------------------------------------------------------ claims that can't even be measured

WIDE = "{x: [1, 3, 2], gamma: [1, 1, 1], beta: [0, 0, 0], eps: 1e-5}"

UNMEASURABLE = {
    "outside": relation("same: [a.y, b.y], where: '[:, 5]'"),
    "beyond": relation("differ: [a.y, b.y], where: '[7]'", OTHER),
    "nothing-selected": relation("same: [a.y, b.y], where: '[5:]'", OTHER),
    "equals-of-another-shape": relation("combination: {a.y: 1, b.y: -1}, equals: [0, 0, 0]"),
    "equals-beyond-all-measure": relation("mean_square: a.y, equals: 1e4000"),
    "sum-of-two-shapes": f"{SHIFTED}    d: {WIDE}\n"
    "  relate:\n  - {combination: {a.y: 1, d.y: 1}, equals: 0}\n",
    "same-of-two-shapes": f"{SHIFTED}    d: {WIDE}\n  relate:\n  - {{same: [a.y, d.y]}}\n",
    "differ-of-two-shapes": f"{SHIFTED}    d: {WIDE}\n  relate:\n  - {{differ: [a.y, d.y]}}\n",
}


@pytest.mark.parametrize(("name", "body"), UNMEASURABLE.items(), ids=UNMEASURABLE)
def test_a_relation_that_can_t_be_measured_is_a_problem_of_its_case(tmp_path, name, body):
    """A slice or a number that fits no output is told like any other claim, beside the others."""
    cases = {"layer_norm": {name: body, "wrong-expect": CASES["layer_norm"]["wrong-expect"]}}
    root = small(tmp_path / "spec", cases)
    specification = load(root)
    operation = specification.operations["layer_norm"]
    for case in specification.cases.values():
        result = prove_case(case, operation)
        assert len(result.problems) >= 1
        assert all(problem.isprintable() for problem in result.problems)


def test_a_truth_file_that_can_t_be_read_hides_nothing(tmp_path):
    """One family that is unreadable is one line; those of the others are checked all the same."""
    root = small(
        tmp_path / "spec",
        {
            "layer_norm": {"wrong-expect": CASES["layer_norm"]["wrong-expect"]},
            "linear": {"right": CASES["linear"]["right"]},
        },
    )
    freeze(root)
    (root / "truth" / "linear.json").write_text("{")
    found = lines(load(root), quick=True)
    assert any(line.startswith("spec/truth/linear.json: can't be read as ") for line in found)
    assert any("layer-norm/wrong-expect: expect: " in line for line in found)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """One case, frozen as it should be."""
    root = small(tmp_path_factory.mktemp("plain") / "spec", {"layer_norm": {"right": GIVEN}})
    freeze(root)
    return root


@pytest.mark.parametrize(
    "alter",
    [
        lambda case: case["values"]["y"]["data"].__setitem__(0, "zero"),
        lambda case: case["values"]["y"]["data"].append("1"),
        lambda case: case["values"]["y"].__setitem__("shape", [3]),
        lambda case: case["bounds"]["float32"]["y"].append(1.0),
        lambda case: case["bounds"]["float32"].pop("y"),
    ],
)
def test_truth_that_does_not_fit_together_is_one_line(plain, tmp_path, alter):
    """A truth file is data from outside: what no freeze could have written is a problem of it."""
    root = shutil.copytree(plain, tmp_path / "spec")
    altered(root / "truth" / "layer-norm.json", lambda cases: alter(cases["layer-norm/right"]))
    (found,) = lines(load(root), quick=True)
    assert "layer-norm/right" in found
    assert found.isprintable()


# -------------------------------------------------------------------------- the command itself


def run(monkeypatch, *arguments):
    """The exit code of the command."""
    monkeypatch.setattr(sys, "argv", ["conformance", *arguments])
    with pytest.raises(SystemExit) as caught:
        entry.main()
    return caught.value.code


def test_the_shipped_specification_is_as_true_as_it_was_frozen(monkeypatch, capsys):
    """``check --quick`` says how much holds, and exits with 0."""
    assert run(monkeypatch, "check", "--quick") == 0
    printed = capsys.readouterr()
    specification = load()
    assert printed.out == (
        f"{len(specification.cases)} cases, {len(specification.facts)} facts and "
        f"{len(specification.clauses)} clauses hold to the frozen truth.\n"
    )
    assert printed.err == ""


def test_a_proven_specification_exits_with_0_and_a_spoiled_one_with_2(
    monkeypatch, capsys, tmp_path
):
    """Frozen and proven with the oracle on all cores; then a digit of its truth is altered."""
    root = small(tmp_path / "spec", {"layer_norm": {"right": CASES["layer_norm"]["right"]}})
    monkeypatch.setattr("conformance.truth.faults.catalogue", dict)  # one case can't separate all
    assert run(monkeypatch, "freeze", "--spec", str(root)) == 0
    assert run(monkeypatch, "check", "--spec", str(root)) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.splitlines() == [
        f"wrote {root}/truth/layer-norm.json",
        "`conformance check` says whether it all holds.",
        "1 cases, 0 facts and 1 clauses are proven.",
    ]
    path = root / "truth" / "layer-norm.json"
    path.write_text(path.read_text().replace("027344", "027345"))
    assert run(monkeypatch, "check", "--spec", str(root)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "layer-norm/right: the frozen values are not the oracle's" in printed.err
    assert "Traceback" not in printed.err


def test_every_problem_is_a_line_on_standard_error(monkeypatch, capsys, troubled, told_quickly):
    """What does not hold is told in full, without a traceback, and exits with 2."""
    assert run(monkeypatch, "check", "--quick", "--spec", troubled.root) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    told = printed.err.replace(f" --spec {troubled.root}`", "`").splitlines()
    assert told == ([f"conformance: {told_quickly[0]}", *told_quickly[1:]])


def test_a_freeze_tells_what_is_untrue(monkeypatch, capsys, tmp_path):
    """The truth is the oracle's, and is written; the figure that differs is named, with code 2."""
    cases = {name: CASES["layer_norm"][name] for name in ("right", "wrong-expect")}
    root = small(tmp_path / "spec", {"layer_norm": cases})
    monkeypatch.setattr("conformance.truth.faults.catalogue", dict)
    assert run(monkeypatch, "freeze", "--spec", str(root)) == 2
    printed = capsys.readouterr()
    assert printed.out == f"wrote {root}/truth/layer-norm.json\n"
    assert "layer-norm/wrong-expect" in printed.err
    assert "layer-norm/right" not in printed.err
