"""Verdicts and reports written by hand, and strategies that make any: no judge is involved."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st

from conformance.model import VERDICTS, Description, Diagnosis, Report, Verdict
from conformance.report.text import counts

SAMPLE = Diagnosis(
    fault="sample-variance",
    says="The variance was divided by d - 1.",
    mend="Divide by d.",
    clause="LN-POPULATION-VARIANCE",
)
OUTSIDE = Diagnosis(
    fault="eps-outside", says="Epsilon was added to the root.", mend="Add it.", clause="LN-EPS"
)
HOSTILE = "a|b <i> `c` ```\n<b>&amp; **x** [y](z)\n\x1b[31m\x00\u202e # \ufffe\ud800"


def passing(case="layer-norm/affine", **changes):
    fields = {
        "operation": "layer_norm", "mode": "evaluate", "dtype": "float64", "verdict": "pass",
        "ratio": 0.125, "output": "y", "index": (0, 1), "got": "0.5", "want": "0.5",
        "bound": 4e-16, "clauses": ("LN-AFFINE",),
    }  # fmt: skip
    return Verdict(case=case, **{**fields, **changes})


def failing(case="layer-norm/two-features", **changes):
    fields = {
        "verdict": "fail", "message": "y is off by 0.29", "ratio": 6.6e13, "got": "0.7071",
        "want": "0.99999500003749968750", "bound": 4.44e-15, "ulps": 2.6e15, "digits": 0.53,
        "clauses": ("LN-MEAN", "LN-POPULATION-VARIANCE"),
    }  # fmt: skip
    return passing(case, **{**fields, **changes})


def bare(case, verdict, message, **changes):
    """A verdict for which no element was measured."""
    blank = dict.fromkeys(("ratio", "output", "index", "got", "want", "bound"))
    return passing(case, **{"verdict": verdict, "message": message, **blank, **changes})


def report(*verdicts, name="mine", **changes):
    fields = {
        "kit": {"version": "0.1.0", "digest": "kit-digest"},
        "specification": {"digest": "spec-digest"},
        "backend": Description(name=name, versions={"numpy": "2.4.6"}),
        "environment": {"machine": "a-machine", "python": "3.11.7"},
        "dtypes": ("float64", "float32"),
        "planned": len(verdicts),
        "run": len(verdicts),
        "totals": counts(verdicts),
        "verdicts": verdicts,
    }
    return Report(**{**fields, **changes})


def mixed(name="mine"):
    """Every kind of verdict at once, messages hostile wherever a backend is quoted."""
    linear = {"operation": "linear"}
    return report(
        passing(),
        passing("layer-norm/rank", dtype="float32", ratio=0.34),
        failing(diagnosis=(SAMPLE,)),
        failing("block/all", operation="block", because="layer_norm", diagnosis=(SAMPLE,)),
        failing("block/more", operation="block", because="layer_norm", ratio=7e13),
        failing("gelu/far", operation="gelu", ratio=math.inf, got="NaN", message=HOSTILE),
        bare("linear/valid", "fail", f"rejected valid arguments: {HOSTILE}", **linear),
        bare("linear/rank", "pass", "rejected as a, not as b", kind_right=False, **linear),
        bare("linear/wide", "pass", "", kind_right=True, **linear),
        bare("linear/tall", "pass", "", kind_right=True, **linear),
        bare("linear/crash", "crash", "signal 11", **linear),
        bare("linear/slow", "timeout", "10 s", **linear),
        bare("linear/error", "error", HOSTILE, **linear),
        bare("gelu/none", "unsupported", HOSTILE, operation="gelu"),
        bare("gelu/wild", "no-verdict", "2 of 2 without bound", operation="gelu", ratio=0.0),
        name=name,
        planned=20,
    )


@pytest.fixture(scope="session")
def make():
    """What the tests are written with: verdicts, reports, two diagnoses, a hostile message."""
    return SimpleNamespace(
        passing=passing,
        failing=failing,
        bare=bare,
        report=report,
        mixed=mixed,
        SAMPLE=SAMPLE,
        OUTSIDE=OUTSIDE,
        HOSTILE=HOSTILE,
    )


letters = st.sampled_from("|`<>*_[]()\\\n\r&;~#!-=+:/@a0 \t") | st.characters(codec="utf-8")
words = st.text(letters, max_size=8)
names = st.lists(words, max_size=3).map(tuple)
mappings = st.dictionaries(words, words, max_size=3)
floats = st.none() | st.floats()
diagnoses = st.builds(Diagnosis, fault=words, says=words, mend=words, clause=words)
verdicts = st.builds(
    Verdict, case=words, operation=st.sampled_from(["linear", "block"]),
    mode=st.sampled_from(["evaluate", "vjp"]), dtype=st.sampled_from(["float64", "float32"]),
    verdict=st.sampled_from(VERDICTS), message=st.text(letters, max_size=40),
    kind_right=st.none() | st.booleans(),
    ratio=floats, output=st.none() | words, got=st.none() | words, want=st.none() | words,
    index=st.none() | st.lists(st.integers(0, 9), max_size=3).map(tuple),
    bound=floats, ulps=floats, digits=floats, clauses=names, because=st.none() | words,
    diagnosis=st.none() | st.lists(diagnoses, max_size=2).map(tuple),
)  # fmt: skip
descriptions = st.builds(Description, name=words, language=words, versions=mappings, dtypes=names)
reports = st.builds(
    Report, format=st.just("conformance-report/1"), kit=mappings, specification=mappings,
    backend=descriptions, environment=mappings, selection=names, dtypes=names,
    planned=st.integers(0, 99), run=st.integers(0, 99),
    totals=st.dictionaries(words, st.integers(), max_size=3),
    verdicts=st.lists(verdicts, max_size=4).map(tuple),
)  # fmt: skip


@pytest.fixture(scope="session")
def strategies():
    """Any report, and any list of verdicts, whatever its texts and numbers."""
    return SimpleNamespace(reports=reports, verdicts=verdicts)
