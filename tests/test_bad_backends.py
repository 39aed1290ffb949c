"""What the kit sees, and says, of backends that are broken or wrong, each named by its vice."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

import conformance
from conformance.backends.numpy import NumpyBackend
from conformance.errors import BackendError
from conformance.frozen import Truth
from conformance.layout import SPEC
from conformance.model import Relations, Values
from conformance.running.runner import exit_code
from conformance.specification import load
from conformance.truth.effects.kills import SEPARATES, effect
from conformance.truth.faults import catalogue
from conformance.truth.proof.prove import Proof, prove_values
from conformance.truth.reference import Reference
from conformance.truth.reference.halves import halved

ADAPTERS = Path(__file__).parent / "adapters"

#: Where what the kernel gets wrong is what one fault says: further on, its wrong values also go
#: into gradients that are written by hand.
LAYERS = ["linear/*", "layer-norm/*", "gelu/*", "residual/*", "feed-forward/*"]

NOT_AN_ARRAY = "not an array; return arrays that to_numpy turns into numpy.ndarray"


def module(name):
    """The module of a file of adapters, under the name that the loader gives it."""
    full = f"conformance_backend_{name}"
    if full not in sys.modules:
        spec = util.spec_from_file_location(full, ADAPTERS / f"{name}.py")
        sys.modules[full] = util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


def classes(name):
    """The classes that a file of adapters defines, by name."""
    inside = vars(module(name)).items()
    return {key: value for key, value in inside
            if isinstance(value, type) and value.__module__ == module(name).__name__}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """The user's cache is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def vices():
    """Every class named by its vice, with ``Adapter`` and without."""
    return classes("broken") | classes("raw")


def judged(vice, *select, out=None):
    """The report on the adapter named ``vice``, in this process, written and all."""
    (report,) = conformance.run([vices()[vice]()], select=select, out=out)
    return report


# -------------------------------------------------------------------------------- one vice each

PAIR, GRADIENT = "gelu/pair", "gelu/gradients-shoulders"
RANK_ONE, CONSTANT = "linear/weight-of-rank-one", "layer-norm/no-eps-constant"

#: Vice, case, verdict, message.
VICES = [
    ("Raises", PAIR, "fail", "rejected valid arguments: ValueError: out of luck"),
    (
        "RaisesWhatCantBeShown",
        PAIR,
        "error",
        "rejected valid arguments: Unspeakable: (its text can't be shown)",
    ),
    ("Exits", PAIR, "crash", "SystemExit(3)"),
    ("RunsOutOfMemory", PAIR, "crash", "out of memory: no more"),
    ("Misspells", PAIR, "error", "NameError: name 'nmupy' is not defined"),
    (
        "MisspellsTheLibrary",
        PAIR,
        "error",
        "AttributeError: module 'numpy' has no attribute 'geloo'",
    ),
    (
        "ImportsWhatIsNotThere",
        PAIR,
        "error",
        "ModuleNotFoundError: No module named 'no_such_library'",
    ),
    (
        "LetsTheLibraryMisspell",
        PAIR,
        "fail",
        "rejected valid arguments: AttributeError: 'numpy.ndarray' object has no attribute 'split'",
    ),
    ("ReturnsNone", PAIR, "error", f"gelu: y is None, {NOT_AN_ARRAY}"),
    ("ReturnsAList", PAIR, "error", f"gelu: y is list, {NOT_AN_ARRAY}"),
    ("ReturnsAPair", PAIR, "error", f"gelu: y is tuple, {NOT_AN_ARRAY}"),
    ("ReturnsAnotherShape", PAIR, "fail", "y has shape [1, 2], not [2]"),
    ("ReturnsAnotherDtype", PAIR, "fail", "y is float16, not {dtype}"),
    ("ReturnsObjects", PAIR, "fail", "y is object, not {dtype}"),
    ("ReturnsText", PAIR, "fail", "y is <U32, not {dtype}"),
    ("ReturnsComplexNumbers", PAIR, "fail", "y is complex128, not {dtype}"),
    ("ReturnsNan", PAIR, "fail", "y is not finite"),
    ("ReturnsInfinity", PAIR, "fail", "y is not finite"),
    ("WritesIntoItsInput", PAIR, "fail", "changed its input: x"),
    ("WritesIntoUpstream", GRADIENT, "fail", "changed its input: upstream y"),
    (
        "KeepsState",
        PAIR,
        "fail",
        "not reproducible: asked again, y came out otherwise",
    ),
    ("RejectsEverything", "linear/one-vector", "fail", "rejected valid arguments: Rejected: never"),
    (
        "RejectsEverything",
        RANK_ONE,
        "fail",
        "does not count: the valid case linear/two-tokens-bias-free was not answered",
    ),
    (
        "RejectsAsSomethingElse",
        RANK_ONE,
        "pass",
        "rejected as input-rank, not as weight-rank",
    ),
    ("AcceptsEverything", RANK_ONE, "fail", "accepted what must be rejected (weight-rank)"),
    ("AcceptsEverything", CONSTANT, "fail", "y has no value here, got 0.0, 0.0"),
    (
        "TakesOtherArguments",
        PAIR,
        "error",
        "gelu(value) can't be called with x: missing a required argument: 'value'",
    ),
    (
        "WantsMoreArguments",
        PAIR,
        "error",
        "gelu(x, approximate) can't be called with x: missing a required argument: 'approximate'",
    ),
    ("HasAnAttributeForAMethod", PAIR, "unsupported", "no method for gelu"),
    (
        "ReturnsStrangeGradients",
        GRADIENT,
        "error",
        "gelu_vjp: returned names that are not asked for: z",
    ),
    ("ReturnsNoGradient", GRADIENT, "fail", "x is absent"),
    ("ReturnsNoneAsGradient", GRADIENT, "fail", "x is absent"),
    (
        "ReturnsABareGradient",
        GRADIENT,
        "error",
        "gelu_vjp: returned ndarray, not a dict of x",
    ),
    (
        "TakesNoUpstream",
        GRADIENT,
        "error",
        "gelu_vjp(x) can't be called with upstream, x: multiple values for argument 'x'",
    ),
    (
        "HasNoGradient",
        GRADIENT,
        "unsupported",
        "no method for the gradient of gelu (neither gelu_vjp nor vjp)",
    ),
    ("AnswersNone", PAIR, "error", "answer() returned NoneType, not conformance.Answer"),
    ("AnswersADict", PAIR, "error", "answer() returned dict, not conformance.Answer"),
    ("AnswersWithLists", PAIR, "error", "y is list, not numpy.ndarray"),
    ("AnswersWithNothing", PAIR, "fail", "y is absent"),
    ("ExitsInAnswer", PAIR, "crash", "SystemExit(0)"),
]  # fmt: skip


def _without_line(message):
    """The message of a slip without the line of the adapter, which is somewhere in the file."""
    return re.sub(r" \(broken\.py:\d+\)$", "", message)


def test_outputs_that_are_returned_without_their_name_are_told():
    """The names inside an argument are no names of outputs, of which none came."""

    class ReturnsTheGradientsAlone(NumpyBackend):
        def clip_gradients(self, gradients, *, max_norm):
            return super().clip_gradients(gradients, max_norm=max_norm)["gradients"]

    (report,) = conformance.run([ReturnsTheGradientsAlone()], select=["optimiser/clipping-above"])
    messages = {verdict.message for verdict in report.verdicts}
    assert messages == {"clip_gradients: returned bias, weight, but not gradients, norm"}


def test_a_slip_is_told_with_its_line():
    """A NameError in the adapter's own lines says where."""
    (first, _) = judged("Misspells", PAIR).verdicts
    assert re.search(r"is not defined \(broken\.py:\d+\)$", first.message)


@pytest.mark.parametrize(("vice", "case", "verdict", "message"), VICES)
def test_a_vice_has_its_verdict_and_its_message(tmp_path, vice, case, verdict, message):
    """In every dtype, and no run is lost over it: the reports are written."""
    report = judged(vice, case, out=tmp_path)
    told = [(found.verdict, _without_line(found.message)) for found in report.verdicts]
    assert told == [(verdict, message.format(dtype=dtype)) for dtype in report.dtypes]
    assert (tmp_path / "README.md").is_file()
    expected = {"pass": 0, "fail": 1, "error": 1, "crash": 3, "unsupported": 4}
    assert exit_code([report]) == expected[verdict]


#: Vices whose verdict is due, and some words of the message.
ODD_VICES = [
    ("ReturnsRecords", PAIR, "fail", "not {dtype}"),
    ("RejectsWithoutText", PAIR, "error", "rejected valid arguments"),
    ("AcceptsWithObjects", CONSTANT, "fail", "y "),
    ("AnswersWithoutOutputs", PAIR, "error", ""),
    ("AnswersWithAnUnknownStatus", PAIR, "error", "splendid"),
    ("AnswersWithAListForStatus", PAIR, "error", ""),
    ("AnswersWithoutText", PAIR, "error", ""),
    ("RaisesInAnswer", PAIR, "error", "Unspeakable"),
    ("TakesItsQuestionApart", PAIR, "fail", "changed its input: x"),
    ("ReplacesItsArguments", PAIR, "fail", "changed its input: x"),
]


@pytest.mark.parametrize(("vice", "case", "verdict", "words"), ODD_VICES)
def test_no_answer_ends_a_run(tmp_path, vice, case, verdict, words):
    """However strange the answer, it has a verdict, and a report is written of it."""
    report = judged(vice, case, out=tmp_path)
    assert [found.verdict for found in report.verdicts] == [verdict] * 2
    assert all(
        words.format(dtype=dtype) in found.message
        for found, dtype in zip(report.verdicts, report.dtypes, strict=True)
    )
    assert (tmp_path / "README.md").is_file()


@pytest.mark.parametrize(
    "vice",
    ["Raises", "Exits", "ReturnsNan", "ReturnsObjects", "ReturnsRecords", "WritesIntoItsInput",
     "RejectsWithoutText", "AnswersWithoutText", "TakesItsQuestionApart"],
)  # fmt: skip
def test_a_child_process_hides_no_vice(vice):
    """A named adapter runs in a process of its own, and gets the verdict it gets in this one."""
    file = "broken.py" if vice in classes("broken") else "raw.py"
    (report,) = conformance.run([f"{ADAPTERS / file}:{vice}"], select=[PAIR])
    here = judged(vice, PAIR)
    assert [found.verdict for found in report.verdicts] == [
        found.verdict for found in here.verdicts
    ]


@pytest.mark.parametrize("virtue", ["BorrowsItsGradient", "BindsItsGradient"])
def test_a_gradient_may_be_any_callable(virtue):
    """A function of another name, or a bound one, is a gradient where it is named as one."""
    report = judged(virtue, GRADIENT)
    assert [(found.verdict, found.message) for found in report.verdicts] == [("pass", "")] * 2


def test_every_adapter_named_by_a_vice_is_judged():
    """No vice is written down and then forgotten."""
    tried = {vice for vice, *_ in (*VICES, *ODD_VICES)}
    others = {"BorrowsItsGradient", "BindsItsGradient", "HasOneDtype", "Raw", "Unspeakable"}
    assert set(vices()) == tried | others


def test_a_dtype_that_an_adapter_lacks_is_unsupported():
    """The other one is judged, and decides the exit code."""
    report = judged("HasOneDtype", PAIR)
    assert [(found.dtype, found.verdict) for found in report.verdicts] == [
        ("float64", "unsupported"),
        ("float32", "pass"),
    ]
    assert report.verdicts[0].message.endswith(" has no float64")
    assert exit_code([report]) == 0


def test_a_vice_in_one_method_leaves_the_others_alone():
    """What does not use gelu passes; what does fails, and is told to be so because of gelu."""
    report = judged("ReturnsNan", "*/rank-three", "*/sublayer-rank-three")
    failed = {found.operation for found in report.verdicts if found.verdict == "fail"}
    passed = {found.operation for found in report.verdicts if found.verdict == "pass"}
    assert failed == {"gelu", "feed_forward", "feed_forward_sublayer"}
    assert {"linear", "layer_norm", "residual_add"} <= passed
    assert {found.because for found in report.verdicts if found.operation == "feed_forward"
            and found.verdict == "fail"} == {"gelu"}  # fmt: skip


def test_a_rejection_has_a_column_of_its_own_for_its_kind():
    """The verdict is that of the rejection; whether the kind is right is told beside it."""
    (right, *_) = judged("Raises", RANK_ONE).verdicts
    assert (right.verdict, right.kind_right) == ("pass", True)
    (wrong, *_) = judged("RejectsAsSomethingElse", RANK_ONE).verdicts
    assert (wrong.verdict, wrong.kind_right) == ("pass", False)


def test_an_argument_that_is_changed_in_the_library_is_changed():
    """The kit sees its own copy alone, and a library that copies changes another."""

    class Copies(NumpyBackend):
        def to_native(self, array):
            return array.copy()

    class Changes(Copies):
        def gelu(self, x):
            y = super().gelu(x)
            x[...] = y
            return y

        def gelu_vjp(self, upstream, x):
            found = super().gelu_vjp(upstream, x)
            upstream *= 2
            return found

    (right,) = conformance.run([Copies()], select=["gelu/pair", "gelu/gradients-rank-three"])
    assert right.totals["pass"] == right.run
    (wrong,) = conformance.run([Changes()], select=["gelu/pair", "gelu/gradients-rank-three"])
    told = {verdict.message for verdict in wrong.verdicts}
    assert told == {"changed its input: x", "changed its input: upstream y"}


def test_a_version_of_a_class_of_its_own_is_text():
    """That of PyTorch is a subclass of str."""

    class Version(str):
        __slots__ = ()

    class Mine(NumpyBackend):
        def versions(self):
            return {"torch": Version("2.0")}

    (report,) = conformance.run([Mine()], select=["gelu/pair"])
    assert report.backend.versions == {"torch": "2.0"}


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("describe", lambda self: 1 / 0),
        ("describe", lambda self: None),
        ("versions", lambda self: {"numpy": object()}),
        ("versions", lambda self: 5),
        ("dtypes", None),
    ],
)
def test_a_backend_that_can_t_describe_itself_is_refused_before_it_is_asked(attribute, value):
    """A description is needed for the report, so a broken one is found before any work is done."""
    asked = []

    class Silent(module("broken").NumpyBackend):
        name = "silent"

        def answer(self, question):
            asked.append(question)
            return super().answer(question)

    setattr(Silent, attribute, value)
    with pytest.raises(BackendError):
        conformance.run([Silent()], select=[PAIR])
    assert not asked


# ------------------------------------------------------------------------- a kernel author's run


@pytest.fixture(scope="module")
def specification():
    return load()


@pytest.fixture(scope="module")
def sample_variance():
    """Cases of the layers, judged on the kernel that divides by d - 1 in its values."""
    (report,) = conformance.run([module("wrong").SampleVariance()], select=LAYERS)
    return report


class ValuesAlone(Reference):
    """The sample variance in the values of the normalisation, and its right gradients."""

    def layer_norm(self, x, gamma, beta, *, eps):
        wrong = catalogue()["sample-variance"]()
        return halved("layer_norm", wrong, Reference(), (x, gamma, beta), {"eps": eps})


def effects(specification):
    """D of the sample variance in every case of the layers, by (case, dtype).

    The kernel's gradients are written by hand and right, so where gradients are asked for, the
    fault is that of its values alone.
    """
    truth = Truth(SPEC / "truth")
    for case in specification.select(LAYERS):
        operation = specification.operations[case.operation]
        has_values = isinstance(case.expectation, Values | Relations)
        proof = prove_values(case, operation) if has_values else Proof({})
        frozen = truth.of(case) if has_values else {}
        found = effect(case, operation, proof, frozen, ValuesAlone)
        yield from (((case.id, dtype), size) for dtype, size in found.items())


def test_exactly_the_cases_fail_in_which_the_mistake_is_visible(specification, sample_variance):
    """Every case with an effect beyond its bound fails, and no other does."""
    sizes = dict(effects(specification))
    assert not [size for size in sizes.values() if 0.5 < size < SEPARATES]  # none is on the edge
    failed = {(found.case, found.dtype) for found in sample_variance.verdicts
              if found.verdict == "fail"}  # fmt: skip
    assert failed == {key for key, size in sizes.items() if size > 1}
    assert {specification.cases[case].operation for case, _ in failed} == {
        "layer_norm",
        "feed_forward_sublayer",
    }
    assert exit_code([sample_variance]) == 1


def test_every_failure_is_given_its_name_and_its_cause(sample_variance):
    """The mistake is named, and what is built on the normalisation fails because of it."""
    failed = [found for found in sample_variance.verdicts if found.verdict == "fail"]
    for found in failed:
        assert found.diagnosis
        assert found.diagnosis[0].fault == "sample-variance"
        assert found.diagnosis[0].clause == "LN-POPULATION-VARIANCE"
        built_on_it = found.operation == "feed_forward_sublayer"
        assert found.because == ("layer_norm" if built_on_it else None)


def test_the_gradients_written_by_hand_are_not_blamed(sample_variance):
    """Only values go through the kernel; the gradients of the normalisation itself are right."""
    gradients = [found for found in sample_variance.verdicts
                 if (found.operation, found.mode) == ("layer_norm", "vjp")]  # fmt: skip
    assert gradients
    assert {found.verdict for found in gradients} <= {"pass", "no-verdict"}


# --------------------------------------------------------------------------- wrong in other ways

#: Which cases show a mistake best, so that a few are enough.
WRONG = {
    "EpsOutsideRoot": ("layer-norm/small-*", "layer-norm/affine", "feed-forward/sublayer-small-*"),
    "EpsOneMillionth": ("layer-norm/small-*", "layer-norm/large-eps", "layer-norm/gradients-two-*"),
    "AffineForgotten": ("layer-norm/affine", "layer-norm/*-rank-three", "sublayer-rank-three"),
    "TanhGelu": ("gelu/shoulders", "gelu/negative-side", "feed-forward/increment"),
    "Relu": ("gelu/*", "feed-forward/increment", "feed-forward/zero-input"),
    "TransposedWeight": ("linear/square-weight", "linear/*-tokens", "feed-forward/equal-sizes"),
    "BiasForgotten": ("linear/two-tokens", "linear/zero-vector*", "feed-forward/zero-input"),
    "BiasGradientAveraged": ("linear/*-bias-gradient", "linear/two-tokens-gradients*"),
    "WeightGradientOfLastPosition": ("linear/*gradients*", "feed-forward/gradients-zero-input"),
}


@pytest.mark.parametrize(("cls", "select"), WRONG.items())
def test_a_mistake_written_by_someone_else_is_named(cls, select):
    """The catalogue recognises its mistakes however they were written, and names them first."""
    kernel = getattr(module("wrong"), cls)()
    (report,) = conformance.run([kernel], select=(*select, "residual/two-positions"))
    assert kernel.name in catalogue()
    failed = [found for found in report.verdicts if found.verdict == "fail"]
    assert failed
    assert all(found.diagnosis for found in failed)
    assert {found.diagnosis[0].fault for found in failed} == {kernel.name}
    assert {found.verdict for found in report.verdicts} == {"pass", "fail"}


def test_every_wrong_kernel_is_a_fault_of_the_catalogue():
    """Ten kernels, ten names, none twice; and each is tried above."""
    kernels = classes("wrong")
    assert set(kernels) == {*WRONG, "SampleVariance"}
    assert len({kernel.name for kernel in kernels.values()}) == 10


def test_a_kernel_in_a_file_is_judged_by_the_command(tmp_path):
    """The way of a user: one file, one command, exit code 1, and the mistake by its name."""
    told = subprocess.run(
        [sys.executable, "-m", "conformance", "run", f"{ADAPTERS / 'wrong.py'}:SampleVariance",
         "--select", "layer-norm/two-features", "--out", str(tmp_path)],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (1, "")
    assert told.stdout.startswith("sample-variance: 0 pass, 2 fail of 2\n")
    assert "1. fault sample-variance: 2 of 2 failures (layer_norm 2)" in told.stdout
    assert "mend: Divide the sum of squared deviations by d" in told.stdout
    assert (tmp_path / "sample-variance.json").is_file()
