"""What a report names: the mistake that was made, whoever wrote it, and no other."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections import Counter
from importlib import util
from pathlib import Path

import msgspec
import numpy as np
import pytest

import conformance
from conformance.backends.numpy import NumpyBackend
from conformance.diagnosis import diagnose as diagnosing
from conformance.diagnosis import signature
from conformance.diagnosis.candidates import Candidate
from conformance.diagnosis.choose import choose
from conformance.diagnosis.evidence import LIKELY, Evidence, deepest_first, group
from conformance.diagnosis.explain import Explainer
from conformance.diagnosis.fitted import fitted_epsilon
from conformance.diagnosis.hints import hint
from conformance.diagnosis.trials import affordable
from conformance.diagnosis.variants import variants
from conformance.frozen import Truth
from conformance.frozen.files import FrozenTensor
from conformance.frozen.proven import thaw_output
from conformance.layout import SPEC
from conformance.model import Answer, Diagnosis, Question, Verdict
from conformance.precision import DTYPES
from conformance.questions import question
from conformance.report.causes import root_causes
from conformance.report.text import summary_lines
from conformance.specification import load
from conformance.truth.faults import catalogue
from tests.builders import OPERATIONS, proven

SPECIFICATION = load()
FAULTS = catalogue()
WRONG = Path(__file__).parent / "adapters" / "wrong"

#: A case of each operation, so that a run can tell whether a mistake is made there as well.
EVERYWHERE = (
    "gelu/pair",
    "gelu/gradients-shoulders",
    "linear/two-tokens",
    "linear/two-tokens-gradients",
    "layer-norm/two-features",
    "layer-norm/affine",
    "residual/two-positions",
)

#: Values, gradients, relations, extremes and refusals of attention: it has many cases, and each is
#: held against the whole catalogue.
ATTENTION = (
    "attention/five-positions",
    "attention/gradients-three-heads",
    "attention/later-positions",
    "attention/sequences-apart",
    "attention/own-score-*",
    "attention/later-score-far-above",
    "attention/three-heads-of-four-features",
    "attention/one-sequence-alone",
    "attention/sublayer-five-positions",
)

#: The same of the block, with what it is made of.
BLOCK = (
    "block/five-positions",
    "block/attention-increment",
    "block/zero-branches",
    "block/gradients-three-heads",
    "block/gradients-parameters",
    "block/later-positions",
    "attention/sublayer-five-positions",
    "attention/gradients-three-heads",
    "residual/gradients-*",
    "feed-forward/positions-apart",
)

#: What the adapters of each file are judged on, beyond a case of each operation.
SELECT = {
    "linear": ("linear/*",),
    "memory": ("*transposed*", "*sliced*"),
    "layer_norm": ("layer-norm/*",),
    "gelu": ("gelu/*",),
    "feed_forward": ("feed-forward/*", "residual/gradients-*"),
    "residual": ("residual/*", "feed-forward/sublayer-*"),
    "rounding": ("linear/*", "layer-norm/*", "residual/*", "feed-forward/*"),
    "trivial": ("gelu/*", "layer-norm/*"),
    "embedding": ("embedding/*",),
    "decoder": (
        "decoder/two-blocks",
        "decoder/three-blocks",
        "decoder/full-length",
        "decoder/right-padding",
        "decoder/batch",
        "decoder/gradients-of-one-token",
        "loss/targets-outside",
        "loss/gradients-of-every-parameter",
    ),
    "loss": tuple(
        each.id
        for each in SPECIFICATION.cases.values()
        if each.family == "loss" and each.operation == "cross_entropy"
    ),
    "softmax": ("softmax/*", *ATTENTION),
    "attention": ("softmax/rank-three", *ATTENTION),
    "attention_gradients": ("softmax/gradients-rank-three", *ATTENTION),
    "attention_sublayer": (
        "attention/sublayer-*",
        "attention/gradients-three-heads",
        "residual/gradients-*",
    ),
    "block": BLOCK,
    "optimiser": ("optimiser/*",),
    "training": ("training/one-step", "training/two-steps", "optimiser/clipping-above"),
    "model": ("model/*", "resources/ledger-*", "resources/longer-context"),
    "resources": ("resources/*", "model/registered-*"),
    "construction": (
        "linear-construction/limit-*",
        "linear-construction/no-*",
        "linear-construction/splitmix-*",
        "model/initial-*",
    ),
    "construction_seeds": (
        "linear-construction/seed-19",
        "linear-construction/without-bias",
        "model/initial-seeds",
        "model/initial-seed-zero",
    ),
}


def modules():
    """The files of wrong adapters, each as a module."""
    for path in sorted(WRONG.glob("*.py")):
        name = f"wrong_{path.stem}"
        spec = util.spec_from_file_location(name, path)
        sys.modules[name] = util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
        yield path.stem, sys.modules[name]


#: Of each file so many adapters are judged in every run of the tests, and the others where
#: `pytest -m exhaustive` asks for all of them.
AT_ONCE = 3


def adapters():
    """Every wrong adapter with the file it is in."""
    for stem, module in modules():
        found = [
            member
            for member in vars(module).values()
            if isinstance(member, type) and "fault" in vars(member)
        ]
        for position, member in enumerate(found):
            few = position % max(1, len(found) // AT_ONCE) == 0
            marks = () if few else (pytest.mark.exhaustive,)
            yield pytest.param(stem, member, id=f"{stem}-{member.__name__}", marks=marks)


#: What explains every failure of an adapter as well: the cases it is judged on tell the two apart
#: in none of them, and the summary lists both.
COINCIDING = {
    "NormalisesOneBranchAlone": ("norm-forgotten",),
    "LearnsWithTheHeadAlone": ("absent-gradients-as-zeros",),
}

ADAPTERS = list(adapters())
WRONG_ADAPTERS = {item.values[1].__name__: item.values for item in ADAPTERS}


def judged(backend, *select, dtypes=("float64",)):
    """The report on a backend, in this process."""
    backend.name = type(backend).__name__
    (report,) = conformance.run([backend], select=select, dtypes=dtypes)
    return report


def failures(report):
    return [verdict for verdict in report.verdicts if verdict.verdict == "fail"]


def names(verdict):
    return [each.fault for each in verdict.diagnosis or ()]


# --------------------------------------------------------------------- every mistake, by its name


@pytest.mark.parametrize(("stem", "adapter"), ADAPTERS)
def test_a_mistake_is_named_whoever_made_it(stem, adapter):
    """The kit names the mistake first, in the summary and in at least 95 % of the verdicts."""
    dtypes = ("float64", "float32") if stem == "rounding" else ("float64",)
    report = judged(adapter(), *SELECT[stem], *EVERYWHERE, dtypes=dtypes)
    failed = failures(report)
    assert failed
    assert not [verdict for verdict in report.verdicts if verdict.verdict == "error"]
    first = root_causes(report.verdicts).roots[0]
    assert first.diagnosis.fault == adapter.fault
    beside = COINCIDING.get(adapter.__name__, ())
    assert tuple(each.fault for each in first.coinciding) == beside
    named = sum(names(verdict)[:1] == [adapter.fault] for verdict in failed)
    assert named >= 0.95 * len(failed)


def test_a_mean_over_no_positions_is_no_second_mistake():
    """An average that is NaN where there is nothing, and one that is zero, have one root cause."""
    _, adapter = WRONG_ADAPTERS["TakesTheMeanOfTheUpstream"]
    report = judged(adapter(), "linear/*gradients*", "feed-forward/*gradients*")
    empty = [v for v in failures(report) if v.message == "bias is not finite"]
    assert {v.case for v in empty} == {
        "linear/gradients-no-positions", "linear/gradients-no-positions-rank-three",
    }  # fmt: skip
    (cause,) = root_causes(report.verdicts).roots
    assert cause.diagnosis.fault == "bias-gradient-averaged"
    assert set(empty) <= set(cause.failures)


class WiresItsOwnEpsilon(NumpyBackend):
    """A constant that nobody else has."""

    def layer_norm(self, x, gamma, beta, *, eps):
        return super().layer_norm(x, gamma, beta, eps=3e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_epsilon_that_is_no_known_one_is_told(dtype):
    """No fault has this constant; the message says which it is, at the head of the summary."""
    report = judged(WiresItsOwnEpsilon(), "layer-norm/*", dtypes=(dtype,))
    first = root_causes(report.verdicts).roots[0]
    assert first.diagnosis is None
    assert len(first.failures) > len(failures(report)) / 2
    assert first.worst.message.endswith(
        "\nno known mistake, but y is what an epsilon of 3e-05 gives"
    )
    told = [v.message.split("\n")[-1] for v in failures(report)]
    assert not [text for text in told if "epsilon" in text and "3e-05" not in text]


def answered(epsilon, case="layer-norm/small-variance", noise=0.0, dtype="float64"):
    """The truth, a question, and the answer of a layer norm with ``epsilon`` of its own to it."""
    one = SPECIFICATION.cases[case]
    asked = question(one, OPERATIONS[one.operation], "", dtype, {})
    wrong = msgspec.structs.replace(asked, arguments={**asked.arguments, "eps": epsilon})
    y = NumpyBackend().answer(wrong).outputs["y"]
    answer = Answer(outputs={"y": y + np.array(noise * np.sin(np.arange(y.size)), y.dtype)})
    return Truth(SPEC / "truth").of(one), answer, asked


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("epsilon", [2e-9, 3e-7, 4.5e-6, 2e-5, 0.0125, 0.3])
def test_an_epsilon_is_found_to_three_digits(epsilon, dtype):
    """From 10^-9 to one, where it matters beside the variance, 2^-24."""
    assert fitted_epsilon(*answered(epsilon, dtype=dtype)) == epsilon


def test_a_training_that_no_known_mistake_gives_is_told_without_trying_all():
    """A trial is a training: only mistakes of training, its optimiser, and what the case shows."""
    case = SPECIFICATION.cases["training/two-steps"]
    found = [Candidate(name, 0) for name in FAULTS]
    tried = {each.fault for each in affordable(found, case)}
    assert tried >= {n for n, f in FAULTS.items() if {*f.clauses()} & {*case.clauses}}
    assert tried >= {"decay-coupled", "gradients-not-cleared", "head-not-held"}
    assert len(tried) < 0.2 * len(FAULTS)
    assert affordable(found, SPECIFICATION.cases["gelu/pair"]) == found


def test_a_wrong_dtype_is_not_told_as_an_epsilon():
    """What is said of the values would be said of numbers that were never asked for."""
    truth, answer, asked = answered(2e-5)
    narrow = Answer(outputs={"y": answer.outputs["y"].astype(np.float32)})
    assert hint(truth, answer, "float64", asked) == "y is what an epsilon of 2e-05 gives"
    assert not hint(truth, narrow, "float64", asked)
    truth, right, asked = answered(1e-5)
    assert not hint(truth, right, "float64", asked)


def test_few_digits_are_told_only_where_the_right_values_have_more():
    """Small whole numbers have few digits in every format, wrong or right."""
    assert not said(np.add(RIGHT, [[1, 0, 0], [0, 2, 0]]))
    many = {("", "y"): proven(["0.1", "-0.2", "0.3", "0.7", "-0.9", "1.1"], 1e-15, (2, 3))}
    wrong = np.array([[0.5, -0.25, 1.5], [0.75, -1.0, 1.25]])
    assert said(wrong, many) == "y holds no more digits than bfloat16"


def test_an_epsilon_is_told_only_where_it_gives_the_whole_answer():
    """Noise on top, no effect to speak of, and other questions have none."""
    assert fitted_epsilon(*answered(2e-5, noise=1e-6)) is None
    assert fitted_epsilon(*answered(2e-18, case="layer-norm/four-features")) is None
    truth, answer, asked = answered(2e-5)
    backward = msgspec.structs.replace(asked, mode="vjp")
    assert fitted_epsilon(truth, answer, backward) is None
    other = msgspec.structs.replace(asked, operation="gelu")
    assert fitted_epsilon(truth, answer, other) is None
    infinite = Answer(outputs={"y": np.full_like(answer.outputs["y"], np.inf)})
    assert fitted_epsilon(truth, infinite, asked) is None


def test_every_fault_with_a_value_of_its_own_has_an_adapter():
    """The answer to the question before depends on what was asked, and a lost tail is allowed."""
    made = {each.values[1].fault for each in ADAPTERS}
    unseen = {name for name, fault in FAULTS.items() if set(fault.unseen) == set(DTYPES)}
    assert made == set(FAULTS) - unseen - {"previous-answer"}


def test_another_way_to_make_the_same_mistake_of_rounding_is_known_by_its_cases():
    """Clipped to zero, a variance in one pass gives other numbers, and fails in the same places."""
    _, adapter = WRONG_ADAPTERS["TakesOnePassAndClips"]
    _, plain = WRONG_ADAPTERS["TakesOnePass"]
    both = [judged(each(), "layer-norm/*", dtypes=("float32",)) for each in (adapter, plain)]
    failed = [{v.case: v.got for v in failures(report)} for report in both]
    assert failed[0].keys() < failed[1].keys()  # what was NaN may pass when it is clipped
    assert all(failed[0][case] != failed[1][case] for case in failed[0])
    assert {name for v in failures(both[0]) for name in names(v)} == {"one-pass-variance"}


# ---------------------------------------------------------------- one mistake in several ways


@pytest.mark.parametrize(
    ("fault", "mode", "numbers"),
    [
        ("relu", "evaluate", [0]),
        ("relu", "vjp", [0, 1, 2]),
        ("padded-to-four", "evaluate", [0, 3]),
        ("padded-to-four", "vjp", [0, 1, 2, 3, 4, 5]),
        ("transposed-weight", "vjp", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_mistake_is_looked_for_in_every_way_and_place(fault, mode, numbers):
    """Whole, and for gradients in the value or the gradient alone, in each way to make it."""
    assert list(variants(FAULTS[fault], mode)) == numbers
    assert [Candidate(fault, number).whole for number in numbers] == [
        number % 3 == 0 for number in numbers
    ]
    assert list(variants(FAULTS[fault], mode, places=False)) == [n for n in numbers if n % 3 == 0]


class AveragesSome(NumpyBackend):
    """Divides by the positions, and by one where there are none."""

    def linear_vjp(self, upstream, x, weight, bias=None):
        gradients = super().linear_vjp(upstream, x, weight, bias)
        count = np.array(max(1, upstream[..., 0].size), upstream.dtype)
        return {**gradients, "weight": gradients["weight"] / count}


def test_a_way_that_a_passing_case_refutes_is_not_the_one_that_was_taken():
    """Zero over no positions passes, so that it was not the mean that is NaN there; one name."""
    report = judged(AveragesSome(), "linear/gradients-*")
    assert {tuple(names(v)) for v in failures(report)} == {("weight-gradient-averaged",)}
    assert not [v for v in failures(report) if "no-positions" in v.case]


def test_what_differs_when_asked_again_is_the_doing_of_a_fault_that_remembers():
    """Relations between calls, and answers asked for again at the end, where it was found."""
    _, adapter = WRONG_ADAPTERS["SumsIntoTheBias"]
    failed = failures(judged(adapter(), "linear/*", "feed-forward/*"))
    again = [v for v in failed if v.message.startswith("not reproducible")]
    assert {v.operation for v in again} >= {"linear"}
    assert all(names(v) == ["accumulated-into-bias"] for v in again)
    related = [v for v in failed if v.case == "linear/affine-defect"]
    assert [names(v) for v in related] == [["accumulated-into-bias"]]
    forgetful = failures(judged(Draws(), "linear/*"))
    assert forgetful
    assert not any(v.diagnosis for v in forgetful)


class Draws(NumpyBackend):
    """Right but for a bit that is drawn anew each time."""

    calls = 0

    def linear(self, x, weight, bias=None):
        self.calls += 1
        y = super().linear(x, weight, bias)
        return np.nextafter(y, np.array(np.inf, y.dtype)) if self.calls % 2 else y


# --------------------------------------------------------------------------- two mistakes at once


class TwoMistakes(NumpyBackend):
    """No bias in the linear layer, ReLU for GELU."""

    def linear(self, x, weight, bias=None):
        super().linear(x, weight, bias)
        return x @ weight

    def gelu(self, x):
        return np.maximum(x, np.zeros((), x.dtype))


class HasNoKernel(NumpyBackend):
    def linear(self, x, weight, bias=None):
        raise RuntimeError("no kernel for this machine")


class WantsAligned(NumpyBackend):
    def linear(self, x, weight, bias=None):
        if x.ndim == 3 and bias is None:
            raise RuntimeError("misaligned")
        return super().linear(x, weight, bias)


class WantsTwoHeads(NumpyBackend):
    def causal_attention(self, x, w_q, w_k, w_v, w_o, *, heads):
        if heads == 3:
            raise RuntimeError("out of registers")
        return super().causal_attention(x, w_q, w_k, w_v, w_o, heads=heads)


@pytest.mark.parametrize(
    ("backend", "select"),
    [
        (HasNoKernel, "linear/*"),
        (WantsAligned, "linear/*"),
        (WantsTwoHeads, "attention/*"),
    ],
)
def test_an_exception_alone_is_no_known_mistake(backend, select):
    """A mistake that raises at the same arguments is not named for that: it would have given wrong
    numbers somewhere, or raised somewhere else too. The text of the exception is what is told.
    """
    report = judged(backend(), select)
    failed = failures(report)
    assert failed
    assert not [verdict for verdict in failed if verdict.diagnosis]
    told = "\n".join(summary_lines(report))
    assert "RuntimeError" in told


def test_two_mistakes_are_both_named_where_each_is_made():
    """What is built on both fails for two reasons, and carries that of the one to mend first."""
    report = judged(TwoMistakes(), "linear/*", "gelu/*", "feed-forward/*")
    failed = failures(report)
    by_operation = {
        operation: {name for v in failed if v.operation == operation for name in names(v)}
        for operation in ("linear", "gelu", "feed_forward")
    }
    assert by_operation == {
        "linear": {"bias-forgotten"},
        "gelu": {"relu"},
        "feed_forward": {"bias-forgotten"},
    }
    dependants = [v for v in failed if v.operation == "feed_forward"]
    assert {v.because for v in dependants} == {"linear"}
    assert all(v.diagnosis for v in failed)
    roots = [cause.diagnosis.fault for cause in root_causes(report.verdicts).roots]
    assert roots == ["bias-forgotten", "relu"]


class TwoMistakesInOneOperation(NumpyBackend):
    """A wrong epsilon, and a wrong divisor that shows where there is one feature."""

    def layer_norm(self, x, gamma, beta, *, eps):
        if x.shape[-1] == 1:
            return np.full_like(x, np.nan)
        return super().layer_norm(x, gamma, beta, eps=1e-3)


def test_two_mistakes_in_one_operation_are_both_named():
    """Each explains the cases that the other leaves alone."""
    report = judged(TwoMistakesInOneOperation(), "layer-norm/*")
    found = Counter(names(v)[0] for v in failures(report) if v.mode == "evaluate" and v.diagnosis)
    assert found.most_common(1)[0][0] == "eps-one-thousandth"
    odd = next(v for v in failures(report) if v.case == "layer-norm/one-feature")
    assert "sample-variance" in names(odd)


# --------------------------------------------------------------------------- which one is named


def candidates(*faults):
    return frozenset(Candidate(name, variant) for name, variant in faults)


def never(candidate, keys):
    return False


RELU, SILU, TANH = (("relu", 0), ("silu", 0), ("tanh-gelu", 0))


def test_the_fewest_faults_that_explain_the_most_are_chosen():
    """One for three failures before two for two of them; then one for what is left."""
    explained = {
        ("a", "float64"): candidates(RELU, SILU),
        ("b", "float64"): candidates(RELU, TANH),
        ("c", "float64"): candidates(RELU),
        ("d", "float64"): candidates(SILU),
        ("e", "float64"): frozenset(),
    }
    assert choose(explained, never, never) == [Candidate(*RELU), Candidate(*SILU)]


def test_faults_that_nothing_tells_apart_are_all_named():
    """In the order of the catalogue; the reader decides."""
    explained = {("a", "float64"): candidates(SILU, RELU), ("b", "float64"): candidates(RELU, SILU)}
    assert choose(explained, never, never) == [Candidate(*RELU), Candidate(*SILU)]


def test_what_passing_cases_speak_against_comes_after_what_they_do_not():
    """However much it explains; and it is not named beside one that explains the same."""

    def near(candidate, keys):
        return candidate.fault == "relu"

    explained = {
        ("a", "float64"): candidates(RELU, SILU),
        ("b", "float64"): candidates(RELU),
        ("c", "float64"): candidates(RELU),
    }
    assert choose(explained, near, never) == [Candidate(*SILU), Candidate(*RELU)]
    alike = {("a", "float64"): candidates(RELU, SILU)}
    assert choose(alike, near, never) == [Candidate(*SILU)]
    assert choose(alike, never, near) == [Candidate(*SILU)]


def test_a_whole_fault_is_meant_where_a_half_explains_no_more():
    """Value and gradient wrong alike is the simpler reason; a wider reach is the better one."""
    one = {("a", "float64"): candidates(("relu", 0), ("relu", 1))}
    assert choose(one, never, never) == [Candidate("relu", 0)]
    more = {**one, ("b", "float64"): candidates(("relu", 1))}
    assert choose(more, never, never) == [Candidate("relu", 1)]


def test_coinciding_faults_are_named_until_a_case_tells_them_apart():
    """On residual additions alone, returning the trunk is returning the first argument."""
    _, adapter = WRONG_ADAPTERS["ReturnsTheTrunk"]
    report = judged(adapter(), "residual/rank-three")
    (failed,) = failures(report)
    assert names(failed) == ["increment-forgotten", "input-returned"]
    report = judged(adapter(), "residual/rank-three", "gelu/pair")
    (failed,) = failures(report)
    assert names(failed) == ["increment-forgotten"]


def test_the_half_that_is_wrong_is_told():
    """Where the gradient is right behind a wrong value, or wrong behind a right one."""
    _, values_only = WRONG_ADAPTERS["ForgetsTheRootOfTwo"]
    report = judged(values_only(), "gelu/*", "feed-forward/gradients-*")
    assert {each.says for v in failures(report) for each in v.diagnosis} == {
        "GELU took erf of x instead of erf of x / sqrt 2, in the value alone."
    }


class DifferentiatesTheTransposed(NumpyBackend):
    """x W^T, and the gradients that a library gives of it."""

    def linear(self, x, weight, bias=None):
        y = x @ weight.T
        return y if bias is None else y + bias

    def linear_vjp(self, upstream, x, weight, bias=None):
        right = super().linear_vjp(upstream, x, weight, bias)
        return {**right, "x": upstream @ weight, "weight": right["weight"].T}


def test_a_wrong_product_is_known_by_its_own_derivative():
    """A library that differentiates the wrong product has wrong gradients that fit together."""
    report = judged(DifferentiatesTheTransposed(), "linear/*square-weight", "linear/two-tokens*")
    failed = failures(report)
    assert {v.mode for v in failed} == {"evaluate", "vjp"}
    assert {tuple(names(v)) for v in failed} == {("transposed-weight",)}
    assert {v.diagnosis[0].says for v in failed} == {FAULTS["transposed-weight"].says()}


# ------------------------------------------------------------------------------ what it is built on


def failed_verdict(operation, *faults, case="a/b", mode="evaluate", because=None):
    told = tuple(Diagnosis(fault=name, says="", mend="", clause="") for name in faults)
    return Verdict(
        case=case, operation=operation, mode=mode, dtype="float64", verdict="fail", ratio=9.0,
        because=because, diagnosis=told or None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("own", "theirs", "weak", "because"),
    [
        ((), ("relu",), set(), "gelu"),
        ((), (), set(), "gelu"),
        (("relu",), ("relu",), set(), "gelu"),
        (("relu",), ("silu",), set(), None),
        (("relu",), (), set(), None),
        (("relu",), ("silu",), {"relu"}, "gelu"),
        (("relu",), (), {"relu"}, "gelu"),
    ],
)
def test_a_failure_is_blamed_on_a_part_unless_it_has_a_good_reason_of_its_own(
    own, theirs, weak, because
):
    """A reason that passing cases speak against is none."""
    verdict = failed_verdict("feed_forward", *own)
    beside = [verdict, failed_verdict("gelu", *theirs)]
    found = diagnosing._with_because(verdict, beside, OPERATIONS, weak)
    assert found.because == because


def test_what_is_built_on_a_part_has_the_diagnosis_of_most_of_its_failures():
    """Those of the same mode, if there are any; one in ten is no reason for the others."""
    parts = [
        *(failed_verdict("gelu", "relu", case=f"g/{i}") for i in range(9)),
        failed_verdict("gelu", "silu", case="g/9"),
        failed_verdict("gelu", "half-forgotten", case="g/10", mode="vjp"),
    ]
    verdict = failed_verdict("feed_forward", because="gelu")
    assert names(diagnosing._with_cause(verdict, [verdict, *parts], set())) == ["relu"]
    backward = failed_verdict("feed_forward", because="gelu", mode="vjp")
    assert names(diagnosing._with_cause(backward, [backward, *parts], set())) == ["half-forgotten"]
    good = failed_verdict("feed_forward", "time-mixed", because="gelu")
    assert names(diagnosing._with_cause(good, [good, *parts], set())) == ["time-mixed"]
    assert names(diagnosing._with_cause(good, [good, *parts], {"time-mixed"})) == ["relu"]


@pytest.mark.parametrize(
    ("parts", "hopeless"),
    [
        ([], False),
        ([[RELU], [RELU]], False),
        ([[RELU]], False),
        ([[RELU, None, None, None]], False),
        ([[RELU, None, None, None, None]], True),
        ([[RELU], [SILU]], True),
        ([[RELU, SILU], [SILU]], False),
    ],
)
def test_two_mistakes_are_not_looked_for_as_one(parts, hopeless):
    """What is built on unexplained failures, or on two different ones, is no single mistake."""
    given = [[candidates(each) if each else frozenset() for each in part] for part in parts]
    assert diagnosing._beyond_one_mistake(given) == hopeless


@pytest.mark.parametrize(
    ("fault", "case", "against"),
    [
        ("tanh-gelu", "gelu/pair", True),
        ("tanh-gelu", "linear/two-tokens", False),
        ("bias-demanded", "linear/two-tokens-bias-free", True),
        ("bias-demanded", "linear/weight-of-rank-one", False),
        ("weight-rank-accepted", "linear/weight-of-rank-one", True),
        ("eps-one-millionth", "layer-norm/no-eps-constant", True),
        ("eps-forgotten", "layer-norm/no-eps-constant", False),
        ("eps-forgotten", "layer-norm/constant-vector", True),
        ("one-pass-variance", "layer-norm/offset-hundred-fifty-million", True),
        ("one-pass-variance", "layer-norm/two-features", False),
    ],
)
def test_a_case_that_passed_speaks_against_what_would_have_failed_it(fault, case, against):
    """By value, by a refusal, by an answer where none is due."""
    verdict = failed_verdict(SPECIFICATION.cases[case].operation, case=case)
    passed = msgspec.structs.replace(verdict, verdict="pass", mode=SPECIFICATION.cases[case].mode)
    evidence = Evidence([passed], OPERATIONS, SPECIFICATION)
    assert evidence.refuted(Candidate(fault, 0), {"float64"}) == against
    assert evidence.refuted_near(Candidate(fault, 0), [group(passed)]) == against
    assert not evidence.refuted(Candidate(fault, 0), {"float32"})
    assert not evidence.refuted_near(Candidate(fault, 0), [("gelu", "vjp", "float64")])


def test_what_is_built_on_an_unknown_mistake_is_not_given_another_name():
    """No fault of the composition is guessed at while its parts fail for no known reason."""

    class Unknown(NumpyBackend):
        def gelu(self, x):
            return super().gelu(x) + np.sin(7 * x) / 9

    report = judged(Unknown(), "gelu/*", "feed-forward/*")
    failed = failures(report)
    assert {v.operation for v in failed} == {"gelu", "feed_forward", "feed_forward_sublayer"}
    assert not [v for v in failed if v.diagnosis]
    assert {v.because for v in failed if v.operation != "gelu"} == {"gelu"}


VALUES = ("layer-norm/s*", "layer-norm/*r-features", "layer-norm/*o-features", "layer-norm/a*")


def test_a_coincidence_is_no_diagnosis():
    """A fault that gives a few of many wrong answers is not what was done."""
    verdicts = judged(Noisy(), *VALUES).verdicts
    evidence = Evidence(verdicts, OPERATIONS, SPECIFICATION)
    failed = [v for v in evidence.verdicts if v.verdict == "fail" and v.mode == "evaluate"]
    explained = {(v.case, v.dtype): frozenset() for v in failed}
    chance = Candidate("sample-variance", 0)
    explained[failed[0].case, "float64"] = frozenset([chance])
    assert LIKELY * len(failed) > 2
    assert not any(evidence.likely(explained).values())
    assert evidence.likely({(failed[0].case, "float64"): frozenset([chance])})


class Noisy(NumpyBackend):
    """Wrong everywhere, by no rule."""

    def layer_norm(self, x, gamma, beta, *, eps):
        y = super().layer_norm(x, gamma, beta, eps=eps)
        noise = np.sin(np.arange(y.size, dtype=y.dtype)).reshape(y.shape)
        return y * np.array(1.01, y.dtype) + noise / np.array(64, y.dtype)

    def layer_norm_vjp(self, upstream, x, gamma, beta, *, eps):
        right = super().layer_norm_vjp(upstream, x, gamma, beta, eps=eps)
        return {
            name: value + np.cos(np.arange(value.size, dtype=value.dtype)).reshape(value.shape)
            for name, value in right.items()
        }


def test_a_backend_with_everything_wrong_is_diagnosed_where_the_mistake_is_known():
    """Thousands of explanations are tried where it is not; none is given then."""
    _, known = WRONG_ADAPTERS["KeepsTheDivisorFromZero"]
    for adapter in (known, Noisy):
        report = judged(adapter(), "layer-norm/*", "feed-forward/*", dtypes=("float64", "float32"))
        wrong = [v for v in failures(report) if v.operation == "layer_norm"]
        assert len(wrong) > 30
        assert all(bool(v.diagnosis) == (adapter is known) for v in wrong)


def test_what_was_tried_keeps_its_numbers_and_not_their_history(monkeypatch):
    """Thousands of trials would fill the memory with what each of them was computed from; those
    that remember can't be asked again, and stay whole.
    """
    made = []

    class Kept(Explainer):
        def __init__(self):
            super().__init__()
            made.append(self)

    monkeypatch.setattr(diagnosing, "Explainer", Kept)
    judged(Noisy(), "layer-norm/rank-three")
    (explainer,) = made
    tried = {key[0].fault: found for key, found in explainer._results.items() if found}
    assert len(tried) > 30
    for name, found in tried.items():
        assert any(node.parents for node in found.values()) == FAULTS[name].stateful, name


def test_operations_are_taken_apart_from_the_bottom():
    """What is composed of none comes first, each once."""
    assert deepest_first("feed_forward_sublayer", OPERATIONS) == [
        "layer_norm", "linear", "gelu", "feed_forward", "residual_add",
    ]  # fmt: skip
    assert deepest_first("gelu", OPERATIONS) == []


# -------------------------------------------------------------------------------- what is no number


def test_no_number_is_explained_by_no_number():
    """NaN matches NaN, and infinity does not."""
    _, adapter = WRONG_ADAPTERS["LeavesEpsilonOut"]
    failed, _ = failures(judged(adapter(), "layer-norm/constant-vector"))
    assert failed.got == "NaN"
    assert "eps-forgotten" in names(failed)

    class Infinite(NumpyBackend):
        def layer_norm(self, x, gamma, beta, *, eps):
            return np.full_like(x, np.inf)

    assert not any(v.diagnosis for v in failures(judged(Infinite(), "layer-norm/constant-vector")))


# ------------------------------------------------------------------------ mistakes of rounding


def seen(*cases):
    return {str(place): signature.Seen(*case) for place, case in enumerate(cases)}


BAD, MISSED, FINE = (1e4, True, 5e3), (1e4, False, 0.1), (0.0, False, 0.1)


@pytest.mark.parametrize(
    ("cases", "fits"),
    [
        ([BAD, BAD, BAD, FINE, FINE], True),
        ([BAD, BAD, BAD, MISSED, FINE, FINE], True),
        ([BAD, MISSED, FINE, FINE], False),
        ([BAD, BAD, (0.5, True, 3.0), FINE, FINE], False),
        ([BAD, BAD, BAD, FINE], False),
        ([MISSED, FINE, FINE], False),
        ([(3.0, True, 2.0), FINE, FINE], False),
        ([BAD, (3.0, False, 0.9), FINE, FINE], True),
    ],
)
def test_a_signature_is_that_the_ill_conditioned_cases_fail_and_no_others(cases, fits):
    """All failing cases have D above 1, most with a large D fail, and some are spared."""
    assert signature.matches(seen(*cases)) == fits


def test_the_best_fit_has_errors_of_the_same_size():
    """The distance is that of the median, in binary digits; what has no size says nothing."""
    assert signature.misfit(seen((1024.0, True, 512.0), (1.0, False, 0.1))) == 1.0
    assert signature.misfit(seen((1e300, True, float("inf")))) == 0.0


# ---------------------------------------------------------------------- miniatures by their vice


class Ulp(NumpyBackend):
    """Off by a few units in the last place."""

    steps = 1

    def gelu(self, x):
        y = super().gelu(x)
        for _ in range(self.steps):
            y = np.nextafter(y, np.array(np.inf, y.dtype))
        return y


def test_off_by_one_ulp_passes():
    """An honest rounding is no mistake, however it is made."""
    report = judged(Ulp(), "gelu/rank-three", "gelu/shoulders", dtypes=("float64", "float32"))
    assert {v.verdict for v in report.verdicts} == {"pass"}


class TenBounds(NumpyBackend):
    """Off by ten times what is allowed, everywhere."""

    def gelu(self, x):
        case = next(
            case
            for case in SPECIFICATION.cases.values()
            if case.operation == "gelu" and case.mode == "evaluate"
            if case.id == "gelu/shoulders"
        )
        bound = Truth(SPEC / "truth").of(case)["", "y"].bounds[x.dtype.name]
        return super().gelu(x) + (10 * bound).astype(x.dtype)


def test_off_by_ten_bounds_fails_and_is_no_known_mistake():
    """Nothing of the catalogue is that close to right."""
    failed = failures(judged(TenBounds(), "gelu/shoulders", dtypes=("float64", "float32")))
    assert [round(v.ratio) for v in failed] == [10, 10]
    assert not any(v.diagnosis for v in failed)


class BarelyOff(NumpyBackend):
    """Off by one and a half times what is allowed, where no bias is given."""

    def linear(self, x, weight, bias=None):
        y = super().linear(x, weight, bias)
        return y + (1.5 * TRUTH_OF_SQUARE.bounds[x.dtype.name]).astype(x.dtype)


TRUTH_OF_SQUARE = Truth(SPEC / "truth").of(SPECIFICATION.cases["linear/square-weight"])["", "y"]


def test_barely_off_is_not_a_mistake_that_would_have_changed_nothing():
    """A fault that has no effect in a case never explains its failure, however close it is."""
    failed = [v for v in failures(judged(BarelyOff(), "linear/square-weight"))
              if v.case == "linear/square-weight"]  # fmt: skip
    assert [round(v.ratio, 1) for v in failed] == [1.5]
    assert failed[0].diagnosis is None


class LiesAboutItsDtype(NumpyBackend):
    """ReLU, in a dtype that was not asked for."""

    dtype: object = np.float16

    def gelu(self, x):
        return np.maximum(x, 0).astype(self.dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, object, complex, str])
def test_a_wrong_dtype_is_told_and_not_diagnosed(dtype):
    """Values of another dtype are not even compared."""
    backend = LiesAboutItsDtype()
    backend.dtype = dtype
    (failed,) = failures(judged(backend, "gelu/shoulders"))
    assert failed.message.endswith(", not float64")
    assert failed.diagnosis is None


class WritesOverItsInput(NumpyBackend):
    """Right values, in the argument."""

    def gelu(self, x):
        x[...] = super().gelu(x)
        return x


def test_a_changed_input_is_told_and_not_diagnosed():
    """The values are right, so that no mistake gives them and not the truth."""
    (failed,) = failures(judged(WritesOverItsInput(), "gelu/pair"))
    assert failed.message == "changed its input: x"
    assert failed.diagnosis is None


# ---------------------------------------------------------------------- what can still be said

TRUTH = {("", "y"): proven(["1", "-2", "3", "5", "-7", "11"], 1e-15, (2, 3))}
RIGHT = np.array([[1.0, -2.0, 3.0], [5.0, -7.0, 11.0]])
SQUARE = {("", "y"): proven(["1", "-2", "3", "5"], 1e-15, (2, 2))}


def said(got, truth=None, dtype="float64"):
    return hint(truth or TRUTH, Answer(outputs={"y": np.asarray(got, dtype)}), dtype)


@pytest.mark.parametrize(
    ("got", "text"),
    [
        (-RIGHT, "y has the opposite sign throughout"),
        (RIGHT.T, "y has its last two axes exchanged"),
        (RIGHT / 3, "y is 1/3 times what it should be, throughout"),
        (RIGHT * 2, "y is 2 times what it should be, throughout"),
        (RIGHT * 0.123456789, "y is 0.123457 times what it should be, throughout"),
        (RIGHT + 0.25, "y is off by 1/4 throughout"),
        (RIGHT * [[np.nan], [1]], "y is wrong at the first position and at no other"),
        (RIGHT * [[1], [1.5]], "y is right at the first position and at no other"),
        (RIGHT + np.array([[0, 0.3, 0], [0.1, 0, 0]]), ""),
        (RIGHT, ""),
        (RIGHT[0], ""),
    ],
)
def test_what_can_be_said_without_a_fault_is_said(got, text):
    """Sign, exchanged axes, a constant factor or difference, one position: or nothing."""
    assert said(got) == text


def test_what_was_handed_back_is_named():
    """A wrong gradient that is the upstream, or an argument, has the digits of what was given."""
    question = Question(
        operation="gelu", mode="vjp", dtype="float64",
        arguments={"x": RIGHT / 2}, upstream={"y": RIGHT * 4}, wrt=("y",),
    )  # fmt: skip
    for got, text in (
        (RIGHT * 4, "y is the upstream gradient, as it was given"),
        (RIGHT / 2, "y is x, as it was given"),
        (RIGHT * 2, "y is 2 times what it should be, throughout"),
    ):
        assert hint(TRUTH, Answer(outputs={"y": got}), "float64", question) == text
    right = msgspec.structs.replace(question, upstream={"y": RIGHT})  # as of a residual
    assert not hint(TRUTH, Answer(outputs={"y": RIGHT}), "float64", right)


def test_a_count_that_ran_over_is_told_by_its_last_bits():
    """One that is right, is wrong in another place, or has more bits is not."""
    due = FrozenTensor((2,), ("3000000000", "7"), "int64")
    large = {("", "n"): thaw_output(due, {"float64": (0.0, 0.0)})}
    for got, told in (
        ([3000000000 - 2**32, 7], True),
        ([3000000000 - 2**32, 8], False),
        ([3000000000 + 2**32, 7], False),
        ([3000000000, 7], False),
    ):
        text = hint(large, Answer(outputs={"n": np.array(got)}), "float64")
        assert text == ("n is what 32 bits hold of the right number" if told else "")


class NormsOfTheirOwn(NumpyBackend):
    """Records another norm, a tenth smaller or larger; trains as it should."""

    def train(self, *positional, **named):
        found = super().train(*positional, **named)
        norms = found["gradient_norms"]
        off = {name: 1 + (-1) ** place / 10 for place, name in enumerate(norms)}
        return {**found, "gradient_norms": {name: norms[name] * off[name] for name in norms}}


def test_norms_alone_that_are_wrong_are_no_rounded_products():
    """The losses and gradients beside them would be wrong too."""
    cases = ("training/one-step", "training/used-row-zero", "training/token-v", "training/target-v")
    failed = failures(judged(NormsOfTheirOwn(), *cases, dtypes=("float64",)))
    assert [verdict.case for verdict in failed] == list(cases[:2])
    assert not any(verdict.diagnosis for verdict in failed)


def test_a_mistake_of_rounding_is_none_where_nothing_is_rounded():
    """A count beyond what a double holds is no product."""

    class In32Bits(NumpyBackend):
        def activation_elements(self, **given):
            found = super().activation_elements(**given)
            return {**found, "logits": (found["logits"] + 2**31) % 2**32 - 2**31}

    failed = failures(judged(In32Bits(), "resources/*"))
    assert failed
    assert not any(verdict.diagnosis for verdict in failed)
    assert all("is what 32 bits hold of" in verdict.message for verdict in failed)


def test_a_whole_number_that_came_as_another_is_no_known_mistake():
    """A count as a floating-point number, or as NaN, is told by its dtype, and by no fault."""

    class Floats(NumpyBackend):
        def training_flops(self, *, parameters, tokens):
            return np.array(6.0 * parameters * tokens)

        def training_bytes(self, **given):
            return np.array(np.nan)

    (report,) = conformance.run([Floats()], select=["resources/*"])
    wrong = [v for v in report.verdicts if v.operation in {"training_flops", "training_bytes"}]
    assert {v.verdict for v in wrong} == {"fail"}
    assert all(v.message.endswith(" is float64, not int64") for v in wrong)
    assert not any(v.diagnosis for v in report.verdicts)


def test_a_defect_while_mistakes_are_looked_for_costs_no_verdict(monkeypatch, tmp_path):
    """What was judged is written first; what failed then is the kit, and is raised as it is."""

    class Doubles(NumpyBackend):
        name = "doubles"

        def gelu(self, x):
            return 2 * x

    def broken(*_given, **_named):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(diagnosing, "diagnose", broken)
        with pytest.raises(ZeroDivisionError):
            conformance.run([Doubles()], select=["gelu/pair"], out=tmp_path)
    partial = msgspec.json.decode((tmp_path / "doubles.json").read_bytes())
    assert (partial["run"], partial["planned"]) == (1, 2)
    assert partial["verdicts"][0]["message"].endswith("\nnot diagnosed: the kit failed")
    options = conformance.Options(resume=True)
    (whole,) = conformance.run([Doubles()], select=["gelu/pair"], out=tmp_path, options=options)
    assert not any("not diagnosed" in verdict.message for verdict in whole.verdicts)


def test_a_square_answer_may_be_transposed_as_well():
    """Where the shape does not tell, the values do."""
    assert said([[1, 3], [-2, 5]], SQUARE) == "y has its last two axes exchanged"


def test_one_of_several_positions_may_be_wrong_alone():
    """The last one is where a loop ends too early."""
    truth = {("", "y"): proven(["1", "2", "3", "4", "5", "6"], 1e-15, (3, 2))}
    wrong = [[1, 2], [3, 4], [0.5, 9]]
    assert said(wrong, truth) == "y is wrong at the last position and at no other"
    stopped = [[1, 2], [0, 1], [0.5, 9]]
    assert said(stopped, truth) == "y is right at the first position and at no other"


THIRDS = {
    ("", "y"): proven(
        ["0.3333333333333333333", "0.1428571428571428571", "-0.09090909090909"], 1e-15
    )
}


@pytest.mark.parametrize(
    ("narrow", "text"),
    [
        (lambda x: x.astype(np.float32), "y holds no more digits than float32"),
        (lambda x: x.astype(np.float16), "y holds no more digits than TF32 or float16"),
        (lambda x: x + 2e-8 * np.sin(x), "y is as far off as a computation in float32 would be"),
        (lambda x: x + 2e-12 * np.sin(x), ""),
    ],
)
def test_a_narrower_format_is_known_by_its_digits_or_by_its_error(narrow, text):
    """An answer that a narrower format holds was rounded to it somewhere on its way."""
    exact = np.array([1 / 3, 1 / 7, -1 / 11])
    assert said(narrow(exact), THIRDS) == text


def test_an_error_that_is_hardly_one_has_no_shape():
    """Twice the bound could be any factor; nothing is made of it."""
    assert said(RIGHT * (1 + 1e-15)) == ""


def test_what_can_be_said_stands_in_the_message():
    """Below the error, where there is no diagnosis; nothing is added where there is one."""

    class Negated(NumpyBackend):
        def gelu(self, x):
            return -super().gelu(x)

    (failed,) = failures(judged(Negated(), "gelu/pair"))
    first, second = failed.message.split("\n")
    assert first.startswith("y is off by ")
    assert second == "no known mistake, but y has the opposite sign throughout"
    _, known = WRONG_ADAPTERS["NeverChangedTheDefault"]
    (failed,) = failures(judged(known(), "gelu/pair"))
    assert "\n" not in failed.message


# ----------------------------------------------------------------------------------- the price


def test_a_run_that_passes_never_loads_the_catalogue():
    """Diagnosis, faults and reference are loaded for failures alone."""
    code = (
        "import sys, conformance; from conformance.backends.numpy import NumpyBackend\n"
        "(report,) = conformance.run([NumpyBackend()], select=['gelu/pair'])\n"
        "assert report.totals['pass'] == 2\n"
        "unasked = 'conformance.truth', 'conformance.diagnosis', 'flint'\n"
        "sys.exit(any(name.startswith(unasked) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_diagnosis_needs_no_oracle():
    """Faults answer over doubles: python-flint stays unloaded."""
    code = (
        "import sys, conformance\n"
        "(report,) = conformance.run(['fault:relu'], select=['gelu/pair'])\n"
        "assert report.verdicts[0].diagnosis[0].fault == 'relu'\n"
        "sys.exit('flint' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SHAPES = ("linear/weight-*", "linear/bias-of-*", "linear/input*-of-*", "linear/gradients-*-of-*")


def test_wrong_adapters_refuse_what_must_be_refused():
    """But for those whose mistake it is: a wrong adapter is wrong in one thing."""
    lenient = {
        "weight-rank-accepted", "zero-input-width-accepted", "zero-output-width-accepted",
        "bias-rank-accepted", "bias-width-accepted", "number-taken-for-vector",
        "input-width-accepted",
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for stem, adapter in WRONG_ADAPTERS.values():
            if stem == "linear" and adapter.fault not in lenient:
                report = judged(adapter(), *SHAPES)
                accepted = [v for v in failures(report) if v.message.startswith("accepted")]
                assert not accepted, adapter


class RoundsToThirtySeconds(NumpyBackend):
    """A mistake that nobody has a name for; to the tiniest inputs it gives zero."""

    def gelu(self, x):
        return super().gelu(np.rint(x * 32) / 32)


def test_what_explains_a_few_failures_is_no_reason_for_what_is_built_on_all():
    """Zeros are what came in a few cases of GELU; the feed-forward fails for what came in most."""
    report = judged(RoundsToThirtySeconds(), "gelu/*", "feed-forward/*")
    above = [v for v in failures(report) if v.operation != "gelu"]
    assert above
    assert {v.because for v in above} == {"gelu"}
    assert not [v.case for v in above if v.diagnosis]
    told = root_causes(report.verdicts)
    assert told.roots[0].diagnosis is None
    assert len(told.roots[-1].failures) <= 4
