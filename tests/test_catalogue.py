"""The catalogue and its kill matrix: every known mistake, and the cases that reject it."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from conformance.command import entry
from conformance.errors import Rejected
from conformance.layout import SPEC
from conformance.model import Relations, Values
from conformance.precision import DTYPES
from conformance.specification import load
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape, Whole
from conformance.truth.effects import matrix
from conformance.truth.effects.misread import as_read
from conformance.truth.effects.rules import RULES, recording, replaced
from conformance.truth.faults import catalogue
from conformance.truth.faults.gelu import Relu
from conformance.truth.proof.evaluate import Impossible, evaluate_case
from conformance.truth.reference import Reference
from tests.builders import steps

FAULTS = catalogue()
SPECIFICATION = load()

#: Rows of the digest about weak checks, each proven blind in test_faults.py or
#: test_weak_checks.py, where the rows of mistakes that a weak check misses are cited as well.
WEAK_CHECKS = {"C-09", "C-61", "C-65", "C-72"}

#: Rows that have no fault and no test here, and why.
ELSEWHERE = {
    **dict.fromkeys(("C-16", "C-63"), "random draws, which asking again finds"),
    **dict.fromkeys(("C-26", "C-27", "C-58", "C-59", "C-60"), "how a project tests itself"),
    **dict.fromkeys(("C-47", "C-48"), "what a course's own class returns"),
    **dict.fromkeys(("C-62", "C-82"), "how a project compares"),
    **dict.fromkeys(("C-79", "C-80"), "what only a live object of one language shows"),
}

ROWS = {f"C-{number:02}" for number in range(1, 87)}

#: Mistakes that public implementations made in the linear layer, the layer norm, GELU and the
#: residual addition; the feed-forward, which is made of them, has none of its own.
PUBLIC_BUGS = {
    f"BUG-{part}-{number:02}"
    for part, numbers in {
        "LIN": (1, 2, 3, 4, 6, 8),
        "LN": (1, 2, 3, 4, 5, 6, 8, 9, 11),
        "GELU": (1, 2, 3, 5),
        "RES": (1, 3),
    }.items()
    for number in numbers
}

#: Bugs that cases cite and that have no fault, and why.
WITHOUT_A_FAULT = {
    "BUG-GELU-05": "float16 alone has the function that saturates above one",
    "BUG-OPT-08": "a recipe that leaves parameters out; the documents decay what they are given",
    "BUG-TST-05": "a uniform upstream, which is a weak check",
}


#: All cases but the long trainings, which come to no rule that short ones don't.
QUICK = [case for case in SPECIFICATION.cases.values() if steps(case) < 10]


def command(monkeypatch, capsys, *arguments):
    """Exit code and output of the command."""
    monkeypatch.setattr(sys, "argv", ["conformance", *arguments])
    with pytest.raises(SystemExit) as caught:
        entry.main()
    printed = capsys.readouterr()
    assert printed.err == ""
    return caught.value.code, printed.out


# ------------------------------------------------------------------------------- the catalogue


def test_every_row_of_the_digest_is_at_one_place():
    """A mistake has a fault that cites it, a weak check has a test, the rest is listed here."""
    cited = {row for fault in FAULTS.values() for row in fault.sources if row.startswith("C-")}
    assert cited | WEAK_CHECKS | ELSEWHERE.keys() == ROWS
    assert not cited & WEAK_CHECKS
    assert not cited & ELSEWHERE.keys()
    assert not WEAK_CHECKS & ELSEWHERE.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_the_sources_of_a_fault_are_ids(name):
    """A row of the digest, or of public bug reports with its component; each once, in order."""
    sources = FAULTS[name].sources
    assert all(re.fullmatch(r"C-\d\d|BUG-[A-Z]+-\d\d", row) for row in sources)
    assert len(set(sources)) == len(sources)
    assert [row[0] for row in sources] == sorted((row[0] for row in sources), reverse=True)


def test_every_public_bug_of_a_part_has_a_fault_or_a_reason():
    """A fault cites it, or it stands here why none can."""
    cited = {row for fault in FAULTS.values() for row in fault.sources if row.startswith("BUG-")}
    assert PUBLIC_BUGS - cited == {"BUG-GELU-05"} < WITHOUT_A_FAULT.keys()
    parts = re.compile("BUG-(LIN|LN|GELU|RES)-")
    assert {row for row in cited if parts.match(row)} < PUBLIC_BUGS


def test_a_bug_that_a_case_cites_is_the_mistake_of_a_fault():
    """Few have no fault that cites them, each for a reason that is given."""
    cited = {row for fault in FAULTS.values() for row in fault.sources if row.startswith("BUG-")}
    asked = {row for case in SPECIFICATION.cases.values() for row in case.sources}
    bugs = {row for row in asked if row.startswith("BUG-")}
    assert cited - asked == {"BUG-PAR-06", "BUG-TST-06"}  # of how a model is built and trained
    assert bugs - cited == WITHOUT_A_FAULT.keys()


def test_every_fault_is_rejected_or_carries_the_reason_why_it_can_t_be():
    """In each dtype a frozen kill has D above 2, except where the fault says that none can."""
    for row in matrix.matrix(SPEC).faults:
        fault = FAULTS[row.name]
        assert set(row.killed_by) | set(fault.unseen) == set(DTYPES), row.name
        assert not set(row.killed_by) & set(fault.unseen), row.name
        assert all(size > 2 for _, size in row.killed_by.values())


def test_what_can_t_be_seen_in_float32_are_mistakes_of_float64():
    """Four mistakes turn float64 into float32 somewhere, and one form loses what the bounds allow
    it to lose (see test_faults.py)."""
    unseen = {name: set(fault.unseen) for name, fault in FAULTS.items() if fault.unseen}
    assert unseen.pop("left-tail-lost") == {"float64", "float32"}
    assert set(unseen) == {
        "float32-constants",
        "eps-rounded-to-float32",
        "float32-products",
        "float32-statistics",
    }
    assert all(dtypes == {"float32"} for dtypes in unseen.values())


def test_no_two_faults_coincide_on_every_case():
    """Two faults that give the same everywhere would be one under two names."""
    kills = {
        name: tuple(
            (family, dtype, tuple(by_fault[name][dtype]))
            for family, by_fault in matrix.matrix(SPEC).families.items()
            if name in by_fault
            for dtype in sorted(by_fault[name])
        )
        for name in FAULTS
    }
    alike = [pair for pair in itertools.combinations(FAULTS, 2) if kills[pair[0]] == kills[pair[1]]]
    for left, right in alike:
        one, two = FAULTS[left], FAULTS[right]
        shown = {*one.clauses(), *two.clauses()}
        likely_first = sorted(QUICK, key=lambda case: not shown & set(case.clauses))
        assert any(told_apart(one, two, case) for case in likely_first), (left, right)


def output_name(case):
    """The name of the one output, where there is one."""
    return next(iter(SPECIFICATION.operations[case.operation].outputs))


def forgetful(case):
    """A tape of doubles; of a free case it keeps no history."""
    return Tape(Doubles(), remembers=case.free is None)


def told_apart(left, right, case):
    """Whether two faults give different answers to ``case``, over doubles."""
    given = []
    for fault in (left, right):
        try:
            with np.errstate(all="ignore"):
                asked = as_read(fault, case)
                results = evaluate_case(fault(), forgetful(case), asked, output_name(case))
        except (Rejected, Impossible):
            given.append(None)
        else:
            given.append({place: numbers(node) for place, node in results.items()})
    one, two = given
    if one is None or two is None:
        return one is not two
    return one.keys() != two.keys() or not all(same(one[place], two[place]) for place in one)


def numbers(node):
    """The numbers of a result; whole ones as they are, which doubles need not hold."""
    return node.numbers.astype(object) if isinstance(node, Whole) else node.value


def same(one, two):
    """Whether two results are alike: whole numbers to the last, others but for rounding."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    return (
        np.array_equal(one, two) if one.dtype == object else np.allclose(one, two, equal_nan=True)
    )


def test_a_fault_replaces_a_rule_that_some_case_comes_to():
    """A rule that no case reaches would be a mistake that can't be made."""
    reached = set()
    for case in QUICK:
        reference, rules = recording()
        try:
            with np.errstate(all="ignore"):
                evaluate_case(reference, forgetful(case), case, output_name(case))
        except (Rejected, Impossible):
            pass
        reached |= rules
    assert reached == set(RULES)
    assert all(replaced(fault) for fault in FAULTS.values())
    assert not replaced(Reference)


@pytest.mark.parametrize("operation", SPECIFICATION.operations)
@pytest.mark.parametrize("mode", ["evaluate", "vjp"])
def test_a_fault_whose_rules_are_not_reached_changes_no_bit(operation, mode):
    """What is known without evaluating a fault is true: this is why most need no evaluation."""
    cases = [
        case
        for case in SPECIFICATION.cases.values()
        if (case.operation, case.mode) == (operation, mode)
        and isinstance(case.expectation, Values | Relations)
    ]
    if not cases:
        assert not SPECIFICATION.operations[operation].differentiable
        return
    case = min(cases, key=lambda each: (each.free is not None, steps(each)))
    reference, reached = recording()
    right = evaluate_case(reference, forgetful(case), case, output_name(case))
    untouched = [fault for fault in FAULTS.values() if not replaced(fault) & reached]
    for fault in untouched:
        wrong = evaluate_case(fault(), forgetful(case), case, output_name(case))
        assert {place: node.value.tobytes() for place, node in wrong.items()} == {
            place: node.value.tobytes() for place, node in right.items()
        }


# --------------------------------------------------------------------------- the kill matrix


def test_the_matrix_shows_each_fault_with_its_sharpest_case(monkeypatch, capsys):
    """A row a fault: the clause, D in each family and dtype, and the case that shows it best."""
    code, out = command(monkeypatch, capsys, "faults")
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines()[2:]}
    assert set(rows) == set(FAULTS)
    assert "GELU-EXACT" in rows["tanh-gelu"]
    assert rows["tanh-gelu"].split()[-1].startswith("gelu/")
    assert "float32-constants can't be seen in float32: every constant" in out


def test_the_matrix_is_read_by_programs(monkeypatch, capsys):
    """``--json`` has each fault's sentence, its mend, and by dtype the case and its D."""
    code, out = command(monkeypatch, capsys, "faults", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)["faults"]}
    assert set(rows) == set(FAULTS)
    for name, row in rows.items():
        fault = FAULTS[name]
        assert (row["breaks"], row["says"]) == (fault.breaks, fault.says())
        assert row["mend"] == fault.mend
        assert tuple(row["sources"]) == fault.sources
        for case, size in row["killed_by"].values():
            assert case in SPECIFICATION.cases
            assert size > 2


def test_no_fault_is_missed(monkeypatch, capsys):
    """``--missed`` names none and exits with 0: the specification is sharp."""
    told = "every fault is rejected, in every dtype that can show it.\n"
    assert command(monkeypatch, capsys, "faults", "--missed") == (0, told)


class Overlooked(Relu):
    """Something was done wrong that no case looks at."""

    breaks = "GELU-EXACT"
    mend = "Nobody knows."


class Excused(Overlooked):
    """Something was done wrong that no case can show."""

    unseen = dict.fromkeys(DTYPES, "it is not there")


def test_a_missed_fault_is_told_unless_it_carries_its_reason(monkeypatch, capsys):
    """A fault without a kill is named with the dtype, and the exit code is 1."""
    more = {"overlooked": Overlooked, "excused": Excused}
    monkeypatch.setattr(matrix, "catalogue", lambda: {**FAULTS, **more})
    code, out = command(monkeypatch, capsys, "faults", "--missed")
    assert code == 1
    assert out.splitlines() == [f"overlooked: no case rejects it in {dtype}" for dtype in DTYPES]
    code, out = command(monkeypatch, capsys, "faults", "--missed", "--json")
    assert code == 1
    assert [row["name"] for row in json.loads(out)["faults"]] == ["overlooked"]


def test_a_kill_that_is_not_sharp_enough_is_none(monkeypatch, capsys, tmp_path):
    """D must exceed 2: between 1 and 2 an honest answer could lie within both bounds."""
    root = shutil.copytree(SPEC, tmp_path / "spec")
    for path in (root / "truth").glob("*.json"):
        frozen = json.loads(path.read_text())
        if frozen["kills"].pop("float32-constants", None) and path.stem == "gelu":
            frozen["kills"]["float32-constants"] = {"float64": [["gelu/pair", 1.9]]}
        path.write_text(json.dumps(frozen))
    code, out = command(monkeypatch, capsys, "faults", "--missed", "--spec", str(root))
    assert (code, out) == (1, "float32-constants: no case rejects it in float64\n")


def test_the_matrix_needs_no_oracle():
    """The frozen kills are enough: python-flint stays unloaded."""
    code = (
        "import sys; from conformance.layout import SPEC; "
        "from conformance.truth.effects import matrix; "
        "list(matrix.lines(matrix.matrix(SPEC))); sys.exit('flint' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_table_without_any_truth_says_that_everything_is_missed(tmp_path):
    """Without frozen kills no fault counts as rejected, but one that is unseen is not missed."""
    (tmp_path / "truth").mkdir()
    found = matrix.matrix(tmp_path)
    visible = {name for name, fault in FAULTS.items() if set(fault.unseen) != set(DTYPES)}
    assert {row.name for row, _ in matrix.missed(found)} == visible
    assert sum(line.endswith("none") for line in matrix.lines(found)) == len(FAULTS)
