"""The catalogue of faults, and proofs that weak checks can't see them.

That a case rejects each fault is proven by ``conformance check``. Here stands why a weaker check
would not: each test shows a fault that passes the check and is there all the same.
"""

import re
from decimal import Decimal
from functools import cache, partial

import flint
import numpy as np
import pytest

from conformance.backends.numpy import NumpyBackend
from conformance.errors import Rejected
from conformance.frozen import Truth
from conformance.layout import SPEC
from conformance.model import Values
from conformance.specification import load
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.native import Native
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.effects.misread import as_read
from conformance.truth.effects.rules import replaced
from conformance.truth.effects.visibility import native_effect
from conformance.truth.faults import Fault, catalogue
from conformance.truth.faults.gelu import (
    LeftTailLost,
    NegativeSideCut,
    QuickGelu,
    Relu,
    Silu,
    TanhGelu,
)
from conformance.truth.faults.layer_norm import (
    AffineForgotten,
    EpsOneMillionth,
    EpsOutsideRoot,
    SampleVariance,
)
from conformance.truth.faults.linear import (
    BiasAtFirstPosition,
    BiasForgotten,
    BiasGradientAveraged,
    BiasSubtracted,
    BiasTwice,
    TransposedWeight,
    WeightGradientOfLastPosition,
)
from conformance.truth.faults.linear_gradients import BiasGradientOverFeatures
from conformance.truth.faults.linear_shapes import RankOneLifted
from conformance.truth.faults.rounding import OnePassVariance
from conformance.truth.faults.training import BlocksNotHeld, OnlyHeadHeld
from conformance.truth.faults.trivial import ZerosReturned
from conformance.truth.proof.evaluate import Impossible, evaluate_case
from conformance.truth.reference import Reference
from tests.builders import call, case, steps

SPECIFICATION = load()
FAULTS = catalogue()
EVERY_FAULT = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())

NATIVE = (partial(Native, "float64"), partial(Native, "float32"))
EPS = Decimal("1e-5")

#: Two positions that differ; scale, shift and weight of which none is degenerate.
X = [[1, -2, 4], [3, 0, -1]]
NORM = {"gamma": [2, -1, 3], "beta": [1, 4, -2]}
LINEAR = {"x": X, "weight": [[1, -2, 0], [3, 1, -1], [-1, 2, 1]], "bias": [1, -1, 2]}
UNEVEN = [[1, -2, 3], [4, 1, -1]]


def asked(reference, operation, upstream=None, **given):
    """The outputs, or the gradients, of an operation by a reference or by a fault."""
    wrt = () if upstream is None else tuple(name for name in given if name != "eps")
    mode = "evaluate" if upstream is None else "vjp"
    one = case(operation, mode=mode, calls={"": call(upstream, wrt, **given)})
    with precision():
        found = evaluate_case(reference(), Tape(Balls()), one, "y")
        return {name: node.value for (_, name), node in found.items()}


def value(reference, operation, **given):
    return asked(reference, operation, **given)["y"]


def magnitude(balls):
    return float(np.max(Balls().magnitude(np.asarray(balls, dtype=object)), initial=0.0))


def blind(right, wrong):
    """Whether two results agree to fifty digits."""
    return right.shape == wrong.shape and magnitude(right - wrong) < 1e-50


# ------------------------------------------------------------------------------- the catalogue


def test_names_are_words_with_dashes_and_unique():
    """Every fault of every module is in the catalogue under a name of its own."""
    classes = Fault.__subclasses__()
    assert len(FAULTS) == len(classes)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in FAULTS)
    assert FAULTS["tanh-gelu"] is TanhGelu


@EVERY_FAULT
def test_a_fault_says_itself_in_one_sentence(fault):
    """The docstring is the sentence of the diagnosis, and ``mend`` says what to do."""
    says = fault.says()
    assert fault.__doc__ is not Fault.__doc__
    assert says[0].isupper()
    assert says.endswith(".")
    assert "\n\n" not in says
    assert not re.search(r"\.\s+[A-Z]", says)
    assert fault.mend.strip().endswith(".")


@EVERY_FAULT
def test_a_fault_breaks_a_clause_of_the_specification(fault):
    """``breaks`` and ``also`` are ids of clauses, so that a diagnosis can quote the rule."""
    assert fault.breaks in SPECIFICATION.clauses
    assert set(fault.clauses()) <= SPECIFICATION.clauses.keys()


@EVERY_FAULT
def test_a_fault_replaces_rules_of_the_reference(fault):
    """A method that nothing ever calls would be a fault of nothing."""
    of_its_own = {"reads"}
    methods = {name for name, member in vars(fault).items() if callable(member)}
    known = set().union(*(dir(base) for base in fault.__bases__))
    assert replaced(fault)
    assert methods - of_its_own <= known


@cache
def outcome(reference, case_id, domain):
    """By call and output: shape and bytes; or the word for a refusal."""
    one = SPECIFICATION.cases[case_id]
    tape = Tape(domain(), remembers=one.free is None)
    output = next(iter(SPECIFICATION.operations[one.operation].outputs))
    try:
        with np.errstate(all="ignore"):
            found = evaluate_case(reference(), tape, as_read(reference, one), output)
    except (Rejected, Impossible) as error:
        return type(error).__name__
    return {key: (node.shape, node.value.tobytes()) for key, node in found.items()}


@pytest.mark.parametrize("fault", [one for one in FAULTS.values() if one is not LeftTailLost])
def test_a_fault_changes_an_answer(fault):
    """Some case is answered otherwise: another value, shape, refusal, or gradient left out.

    The form that loses the left tail is the reference's own; what it loses is shown below.
    """
    domains = NATIVE if fault.native else (Doubles,)
    shown = set(fault.clauses())
    likely_first = sorted(
        SPECIFICATION.cases.values(),
        key=lambda one: (not shown & set(one.clauses), steps(one)),
    )
    assert any(
        outcome(fault, one.id, domain) != outcome(Reference, one.id, domain)
        for one in likely_first
        for domain in domains
    )


# -------------------------------------------------------------------------------- weak checks


@pytest.mark.parametrize("fault", [Relu, TanhGelu, Silu, QuickGelu])
@pytest.mark.parametrize("a", [Decimal("0.999995"), Decimal("0.5"), 2])
def test_an_identity_of_gelu_holds_for_its_substitutes(fault, a):
    """g(a) - g(-a) = a holds whatever Phi is, as long as Phi(a) + Phi(-a) = 1 (C-11, C-13)."""
    for reference in (Reference, fault):
        positive, negative = value(reference, "gelu", x=[a, -a])
        with precision():
            assert magnitude(positive - negative - flint.arb(str(a))) < 1e-50
    right, wrong = (value(reference, "gelu", x=[-a]) for reference in (Reference, fault))
    assert magnitude(right - wrong) > 1e-5


UNIT = {"gamma": [1, 1, 1], "beta": [0, 0, 0], "eps": EPS}


def test_a_zero_mean_holds_for_the_sample_variance():
    """The normalised vector has mean zero whatever it was divided by (C-01)."""
    given = {"x": [1, -2, 4], **UNIT}
    for reference in (Reference, SampleVariance):
        with precision():
            assert magnitude(value(reference, "layer_norm", **given).sum()) < 1e-50
    assert not blind(*(value(r, "layer_norm", **given) for r in (Reference, SampleVariance)))


def test_symmetry_holds_for_the_sample_variance():
    """Two features are normalised to opposite numbers whatever they were divided by (C-01)."""
    given = {"x": [1, 3], "gamma": [1, 1], "beta": [0, 0], "eps": EPS}
    for reference in (Reference, SampleVariance):
        z = value(reference, "layer_norm", **given)
        assert magnitude(z[0] + z[1]) < 1e-50
    assert not blind(*(value(r, "layer_norm", **given) for r in (Reference, SampleVariance)))


def test_a_common_shift_holds_for_the_sample_variance():
    """Adding a number to all features changes nothing whatever they were divided by (C-01)."""
    near, far = ({"x": [[1, 3, 8]], **UNIT}, {"x": [[11, 13, 18]], **UNIT})
    for reference in (Reference, SampleVariance):
        assert blind(*(value(reference, "layer_norm", **given) for given in (near, far)))
    assert not blind(*(value(r, "layer_norm", **near) for r in (Reference, SampleVariance)))


@pytest.mark.parametrize("fault", [EpsOutsideRoot, EpsOneMillionth, SampleVariance])
def test_a_constant_vector_hides_the_denominator(fault):
    """Zero divided by any root is zero: a constant vector shows no epsilon (C-01, C-03, C-04)."""
    constant = {"x": [2, 2, 2], **NORM, "eps": EPS}
    right, wrong = (value(r, "layer_norm", **constant) for r in (Reference, fault))
    assert blind(right, wrong)
    other = {**constant, "x": [2, 2, 3]}
    assert not blind(*(value(r, "layer_norm", **other) for r in (Reference, fault)))


def test_a_variance_of_a_quarter_nearly_hides_epsilon_outside_the_root():
    """sqrt(v) + eps and sqrt(v + eps) agree to first order in eps where sqrt(v) is 1/2 (C-03)."""
    half = {"gamma": [1, 1], "beta": [0, 0], "eps": EPS}
    gaps = {
        x: magnitude(
            value(EpsOutsideRoot, "layer_norm", x=list(x), **half)
            - value(Reference, "layer_norm", x=list(x), **half)
        )
        for x in ((0, 1), (1, 3))
    }
    assert gaps[0, 1] < 1e-9
    assert gaps[1, 3] > 1e-6


@pytest.mark.parametrize("fault", [SampleVariance, EpsOutsideRoot, AffineForgotten])
def test_a_uniform_upstream_hides_the_gradient_of_layer_norm(fault):
    """With equal upstream and default scale the input gradient is zero, however wrong the root."""
    given = {"x": X, **UNIT}
    for reference in (Reference, fault):
        gradients = asked(reference, "layer_norm", [[3, 3, 3], [-2, -2, -2]], **given)
        assert magnitude(gradients["x"]) < 1e-50
    right, wrong = (
        asked(r, "layer_norm", UNEVEN, **{**given, **NORM})["x"] for r in (Reference, fault)
    )
    assert not blind(right, wrong)


def test_default_scale_and_shift_hide_that_they_are_forgotten():
    """Scale 1 and shift 0 change nothing, in the value and in the input gradient (C-08)."""
    given = {"x": X, **UNIT}
    assert blind(*(value(r, "layer_norm", **given) for r in (Reference, AffineForgotten)))
    assert blind(
        *(asked(r, "layer_norm", UNEVEN, **given)["x"] for r in (Reference, AffineForgotten))
    )
    other = {**given, **NORM}
    assert not blind(*(value(r, "layer_norm", **other) for r in (Reference, AffineForgotten)))


def test_a_symmetric_weight_hides_its_transposition():
    """A square symmetric weight is its own transpose, in values and gradients (C-25)."""
    symmetric = {"x": X, "weight": [[1, 2, 3], [2, -1, 4], [3, 4, 5]], "bias": [1, 2, 3]}
    right, wrong = (asked(r, "linear", UNEVEN, **symmetric) for r in (Reference, TransposedWeight))
    assert all(blind(right[name], wrong[name]) for name in symmetric)
    assert blind(*(value(r, "linear", **symmetric) for r in (Reference, TransposedWeight)))
    square = {**symmetric, "weight": [[1, 2, 3], [0, -1, 4], [3, 4, 5]]}
    assert not blind(*(value(r, "linear", **square) for r in (Reference, TransposedWeight)))


@pytest.mark.parametrize(
    ("fault", "gradient"),
    [(BiasGradientAveraged, "bias"), (WeightGradientOfLastPosition, "weight")],
)
def test_a_single_position_hides_how_positions_are_combined(fault, gradient):
    """Over one position a sum, a mean and the last one are the same."""
    given = LINEAR
    single = {**given, "x": X[:1]}
    right, wrong = (asked(r, "linear", [[1, -2, 3]], **single) for r in (Reference, fault))
    assert all(blind(right[name], wrong[name]) for name in right)
    right, wrong = (asked(r, "linear", UNEVEN, **given) for r in (Reference, fault))
    assert not blind(right[gradient], wrong[gradient])


def test_a_uniform_upstream_hides_absent_gradients_of_the_document_s_layer():
    """In the document's layer a row of dW and a column of dx vanish under ones (C-72): zeros pass
    there, and no zero is left under the uneven upstream.
    """
    given = {"x": [[1, 2], [-1, 3]], "weight": [[1, 0, -1], [2, Decimal("0.5"), 1]]}
    uniform = asked(Reference, "linear", [[1, 1, 1], [1, 1, 1]], **given)
    zeros = asked(ZerosReturned, "linear", [[1, 1, 1], [1, 1, 1]], **given)
    assert blind(uniform["weight"][0], zeros["weight"][0])
    assert blind(uniform["x"][:, 0], zeros["x"][:, 0])
    uneven = asked(Reference, "linear", [[1, 0, -1], [Decimal("0.5"), 2, 1]], **given)
    for name in ("weight", "x"):
        assert np.all(Balls().magnitude(uneven[name]) > 0.1)


def test_a_total_hides_over_which_axis_it_was_taken():
    """The bias gradient summed over the features has another shape and the same total (C-71)."""
    right, wrong = (
        asked(r, "linear", UNEVEN, **LINEAR)["bias"] for r in (Reference, BiasGradientOverFeatures)
    )
    assert right.shape != wrong.shape
    assert magnitude(np.sum(right) - np.sum(wrong)) < 1e-50


@pytest.mark.parametrize("fault", [BiasForgotten, BiasAtFirstPosition, BiasTwice, BiasSubtracted])
def test_a_bias_of_zeros_hides_what_becomes_of_it(fault):
    """A layer that was just initialised says nothing of its bias (C-73)."""
    fresh = {**LINEAR, "bias": [0, 0, 0]}
    assert blind(*(value(r, "linear", **fresh) for r in (Reference, fault)))
    assert not blind(*(value(r, "linear", **LINEAR) for r in (Reference, fault)))


def test_a_difference_quotient_checks_a_gradient_only_if_it_is_central_and_in_float64():
    """On one side it is thousands of times further off, in float32 a fifth of its value (C-65)."""
    exact = float(asked(Reference, "layer_norm", UNEVEN, x=X, **NORM, eps=EPS)["x"][0, 0])

    def off(dtype, sides):
        x, upstream = np.array(X, dtype), np.array(UNEVEN, dtype)
        nudge = np.zeros_like(x)
        nudge[0, 0] = step = 1e-5

        def total(moved):
            given = {name: np.array(value, dtype) for name, value in NORM.items()}
            y = NumpyBackend().layer_norm(moved, **given, eps=float(EPS))
            return float(np.sum(upstream * y, dtype=dtype))

        below = total(x - nudge) if sides == 2 else total(x)
        return abs((total(x + nudge) - below) / (sides * step) - exact)

    assert off("float64", 2) < 1e-9
    assert off("float64", 1) > 1e-6
    assert off("float32", 2) > 0.1 * abs(exact)


def test_a_check_for_exact_moments_refuses_what_is_right():
    """Variance one, mean zero behind a shift, no effect of scale: each demands what the documents
    don't, and a right layer norm misses it by far more than any rounding (C-09).
    """
    pair = {"gamma": [1, 1], "beta": [0, 0], "eps": EPS}
    z = value(Reference, "layer_norm", x=[1, 3], **pair)
    assert magnitude((z * z).sum() / 2 - 1) > 9e-6
    shifted = value(Reference, "layer_norm", x=X, **NORM, eps=EPS)
    assert np.all(Balls().magnitude(shifted.sum(axis=-1)) > 0.1)
    small = value(Reference, "layer_norm", x=[Decimal("0.001"), Decimal("0.003")], **pair)
    assert magnitude(z - small) > 0.69


@pytest.mark.parametrize("shift", [0, 10, 100])
def test_small_numbers_hide_a_variance_in_one_pass(shift):
    """The mean of the squares is right while all squares are exact: small whole numbers, shifted
    by little, give not one bit less (C-10). At 10^4 in float32 nothing is left of the variance.
    """
    given = {"gamma": [1, 1], "beta": [0, 0], "eps": EPS}

    def single(reference, x):
        one = case("layer_norm", calls={"": call(x=x, **given)})
        found = evaluate_case(reference(), Tape(Native("float32")), one, "y")
        return found["", "y"].value

    near, far = [1 + shift, 3 + shift], [10001, 10003]
    assert np.array_equal(single(OnePassVariance, near), single(Reference, near))
    assert np.max(np.abs(single(OnePassVariance, far))) > 300
    assert np.max(np.abs(single(Reference, far))) < 1


def test_a_positive_input_hides_a_negative_side_that_is_cut():
    """Where no input is negative, cutting what is negative changes neither value, slope nor shape
    (C-12). The identity g(a) - g(-a) = a shows it.
    """
    given = {"x": [Decimal("0.999995"), 2, Decimal("0.5")]}
    assert blind(*(value(r, "gelu", **given) for r in (Reference, NegativeSideCut)))
    right, wrong = (
        asked(r, "gelu", [1, -2, 3], **given)["x"] for r in (Reference, NegativeSideCut)
    )
    assert blind(right, wrong)
    positive, negative = value(NegativeSideCut, "gelu", x=[1, -1])
    assert magnitude(positive - negative - 1) > 0.158


def test_a_comparison_that_broadcasts_hides_a_lifted_vector():
    """[1, 3] compared with [3] agrees in every element (C-75); the shape is what differs."""
    given = {"x": [1, 2, -1], "weight": LINEAR["weight"], "bias": LINEAR["bias"]}
    right, lifted = (value(r, "linear", **given) for r in (Reference, RankOneLifted))
    assert magnitude(right - lifted) < 1e-50
    assert (right.shape, lifted.shape) == ((3,), (1, 3))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_tail_that_is_lost_in_one_plus_erf_is_honest(dtype):
    """(1 + erf) / 2 is the form of the documents, so the bound allows what it loses: the results
    of that form, rounded step by step, pass every case of GELU; and far to the left they are zero.
    """
    truth = Truth(SPEC / "truth")
    lost = 0
    for one in SPECIFICATION.cases.values():
        if one.operation != "gelu" or dtype not in one.dtypes:
            continue
        assert native_effect(one, "y", truth.of(one), LeftTailLost, dtype) <= 1, one.id
        if one.mode == "evaluate" and isinstance(one.expectation, Values):
            got = evaluate_case(LeftTailLost(), Tape(Native(dtype)), one, "y")["", "y"].value
            lost += np.count_nonzero((got == 0) & (truth.of(one)["", "y"].high < 0))
    assert lost
    for x, zero in (
        ((-5.5, False), (-5.6, True)) if dtype == "float32" else ((-8.2, False), (-8.4, True))
    ):
        tail = case("gelu", calls={"": call(x=[Decimal(str(x))])})
        got = evaluate_case(LeftTailLost(), Tape(Native(dtype)), tail, "y")["", "y"].value
        assert (got == 0) == zero


def test_squares_that_overflow_are_no_mistake_of_the_formula():
    """Rounded step by step in float32, the documents' formula makes zeros of (1e30, -1e30), where
    the right values are 1 and -1 (BUG-LN-05). A fault that does so would be the reference itself:
    no bound is finite there, and no answer passes or fails. In float64 the case is judged.
    """
    one = SPECIFICATION.cases["layer-norm/huge-features"]
    due = Truth(SPEC / "truth").of(one)["", "y"]
    with np.errstate(over="ignore"):
        by_step = {
            dtype: evaluate_case(Reference(), Tape(Native(dtype)), one, "y")["", "y"].value
            for dtype in one.dtypes
        }
    assert np.array_equal(by_step["float32"], [0, 0])
    assert np.array_equal(due.high, [1, -1])
    assert np.all(np.isinf(due.bounds["float32"]))
    assert np.all(due.error(by_step["float64"]) <= due.bounds["float64"])
    assert np.all(due.bounds["float64"] < 1e-14)


@pytest.mark.parametrize("fault", [OnlyHeadHeld, BlocksNotHeld])
def test_a_tape_that_remembers_the_steps_of_a_training_changes_no_gradient(fault):
    """What an optimiser does not hold is the same in every step, and each backward pass its own."""
    one = SPECIFICATION.cases["training/two-steps"]
    results = [
        evaluate_case(fault(), Tape(Doubles(), remembers=remembers), one, "losses")
        for remembers in (True, False)
    ]
    kept, forgotten = ({key: node.value for key, node in found.items()} for found in results)
    assert kept.keys() == forgotten.keys()
    for key, value in kept.items():
        np.testing.assert_array_equal(value, forgotten[key], err_msg=str(key))
