"""How visible faults are: D, the arithmetic of rounding mistakes, and what ``check`` says of it."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from conformance.errors import Rejected
from conformance.frozen import Truth
from conformance.layout import SPEC
from conformance.model import Rejection, Relations, Undefined, Values
from conformance.precision import DTYPES, PRECISIONS
from conformance.specification import load
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.arithmetic.native import Native
from conformance.truth.arithmetic.reverse import adjoints
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.checking import sharpness
from conformance.truth.checking.freeze import ProvenCase, prove_case
from conformance.truth.effects.kills import Effects
from conformance.truth.effects.visibility import BEYOND, native_effect
from conformance.truth.faults import catalogue
from conformance.truth.faults._pieces import gradient_where, logistic, narrowed, where
from conformance.truth.faults.gelu import Relu
from conformance.truth.proof.evaluate import Impossible, evaluate_case
from conformance.truth.proof.prove import Proof, output_of
from conformance.truth.reference import Reference

SPECIFICATION = load()
TRUTH = Truth(SPEC / "truth")
FAULTS = catalogue()


def effects(case_id, **changed):
    """The effects of faults on a shipped case, some of its fields changed."""
    case = msgspec.structs.replace(SPECIFICATION.cases[case_id], **changed)
    operation = SPECIFICATION.operations[case.operation]
    if not isinstance(case.expectation, Values | Relations):
        return Effects(case, operation, Proof({}), {})
    with precision():
        values = evaluate_case(Reference(), Tape(Balls()), case, "y")
    proof = Proof({place: node.value for place, node in values.items()})
    return Effects(case, operation, proof, TRUTH.of(SPECIFICATION.cases[case_id]))


# ------------------------------------------------------------------------------------------- D


@pytest.mark.parametrize("dtype", DTYPES)
def test_d_is_the_largest_effect_over_the_bound(dtype):
    """For (1, 3) the divisor d - 1 gives 1 / sqrt(2 + eps) instead of 1 / sqrt(1 + eps)."""
    bound = TRUTH.of(SPECIFICATION.cases["layer-norm/two-features"])["", "y"].bounds[dtype]
    due = (1 / math.sqrt(1 + 1e-5) - 1 / math.sqrt(2 + 1e-5)) / float(bound.min())
    assert effects("layer-norm/two-features").of(FAULTS["sample-variance"])[dtype] == pytest.approx(
        due, rel=1e-12
    )


@pytest.mark.parametrize(
    ("fault", "case", "why"),
    [
        ("rank-one-lifted", "linear/one-vector", "another shape"),
        ("bias-demanded", "linear/two-tokens-bias-free", "a refusal of what is valid"),
        ("bias-width-accepted", "linear/bias-of-width-one", "an answer where none is due"),
        ("eps-one-millionth", "layer-norm/no-eps-constant", "a number where there is none"),
        ("eps-forgotten", "layer-norm/constant-vector", "no number where there is one"),
        ("gradients-absent", "linear/gradients-no-positions", "a gradient that is absent"),
        ("previous-answer", "gelu/odd-part", "the answer to another call"),
    ],
)
def test_what_no_bound_can_hide_is_beyond(fault, case, why):
    """D is without end where form, refusal or finiteness is wrong; no value is compared."""
    sizes = effects(case).of(FAULTS[fault])
    assert all(size == BEYOND or fault == "previous-answer" for size in sizes.values()), why
    assert min(sizes.values()) > 1e3


@pytest.mark.parametrize(
    ("fault", "case"),
    [
        ("tanh-gelu", "linear/two-tokens"),
        ("sample-variance", "gelu/pair"),
        ("bias-forgotten", "linear/two-tokens-bias-free"),
        ("weight-rank-accepted", "linear/two-tokens"),
        ("bias-width-accepted", "linear/bias-of-width-two"),
        ("transposed-weight", "linear/weight-of-rank-one"),
    ],
)
def test_a_fault_that_changes_nothing_has_no_d(fault, case):
    """Where the rule isn't used, where it makes no difference, or where it refuses as it should."""
    assert set(effects(case).of(FAULTS[fault]).values()) == {0.0}


# ------------------------------------------------------------------------ mistakes of rounding


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_arithmetic_of_rounding_mistakes_is_honest(dtype):
    """The reference, computed step by step in either dtype, passes every case of one output."""
    for case in SPECIFICATION.cases.values():
        operation = SPECIFICATION.operations[case.operation]
        if not operation.differentiable:
            continue  # free numbers, whole ones, or a training of many steps
        if isinstance(case.expectation, Values | Relations) and dtype in case.dtypes:
            size = native_effect(case, output_of(operation), TRUTH.of(case), Reference, dtype)
            assert size <= 1, case.id


@pytest.mark.parametrize(
    "name", ["one-pass-variance", "tf32-products", "narrow-trunk", "float32-products"]
)
def test_a_mistake_of_rounding_shows_in_some_cases_alone(name):
    """Most cases of the same operations are well conditioned or short enough, and pass."""
    fault = FAULTS[name]
    assert fault.native
    assert fault.scattered
    sizes = {
        case.id: effects(case.id).of(fault)["float64"]
        for case in SPECIFICATION.cases.values()
        if isinstance(case.expectation, Values) and "float64" in case.dtypes
        if case.operation in {"linear", "layer_norm", "residual_add"}
    }
    assert 1 <= sum(size > 2 for size in sizes.values()) < sum(size <= 1 for size in sizes.values())


def test_a_variance_in_one_pass_is_no_mistake_over_exact_numbers():
    """Mean of squares less square of the mean is the variance; only rounding makes it wrong."""
    case = SPECIFICATION.cases["layer-norm/offset-ten-thousand"]
    with precision():
        right, wrong = (
            evaluate_case(reference(), Tape(Balls()), case, "y")["", "y"].value
            for reference in (Reference, FAULTS["one-pass-variance"])
        )
        assert float(np.max(Balls().magnitude(right - wrong))) < 1e-50
    assert effects(case.id).of(FAULTS["one-pass-variance"])["float32"] > 1e3


@pytest.mark.parametrize(
    ("value", "bits", "rounded"),
    [
        (1024.5, 11, 1024.0),
        (1025.5, 11, 1026.0),
        (1.000244140625, 11, 1.0),
        (-1024.75, 11, -1025.0),
        (1024.5, 8, 1024.0),
        (1 + 2.0**-23, 24, 1 + 2.0**-23),
        (1 + 2.0**-24, 24, 1.0),
        (2.0**-1000 * 1.5, 8, 2.0**-1000 * 1.5),
        (0.0, 8, 0.0),
    ],
)
def test_operands_are_cut_to_the_nearest_number_of_fewer_bits(value, bits, rounded):
    """Ties go to the even neighbour, and the exponent keeps its range."""
    tape = Tape(Native("float64"))
    assert narrowed(tape.floats(np.array([value])), bits).value.tolist() == [rounded]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_step_in_the_precision_of_the_question_is_rounded_to_it(dtype):
    """No result has more digits than the dtype, and a product is summed in its terms' order."""
    tape, u = Tape(Native(dtype)), PRECISIONS[dtype].unit_roundoff
    row = tape.floats(np.array([[1.0, u, u]]))
    ones = tape.floats(np.ones((3, 1)))
    assert (row @ ones).value.dtype == dtype
    case = SPECIFICATION.cases["feed-forward/sublayer-gradients-rank-three"]
    results = evaluate_case(Reference(), tape, case, "y")
    assert {node.value.dtype.name for node in results.values()} == {dtype}
    assert (row @ ones).value.item() == 1.0  # 1 + u is rounded to 1, twice
    assert (tape.floats(np.array([[u, u, 1.0]])) @ ones).value.item() > 1.0


@pytest.mark.parametrize("shapes", [((3,), (3, 2)), ((4, 3), (3, 2)), ((2, 5, 4, 3), (2, 5, 3, 2))])
def test_a_product_step_by_step_is_a_product(shapes):
    """Of a vector, of matrices, and of matrices stacked along leading axes."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, shape).astype(np.float64) for shape in shapes)
    assert Native("float64").matmul(a, b).tolist() == (a @ b).tolist()


def test_a_choice_hands_the_gradient_to_what_was_chosen():
    """``where`` is neither of its two operands, element by element."""
    tape = Native("float64")
    yes, no = (Tape(tape).floats(np.array(row)) for row in ([1.0, 2.0], [3.0, 4.0]))
    chosen = where(np.array([True, False]), yes, no)
    assert chosen.value.tolist() == [1.0, 4.0]
    found = adjoints(chosen, yes.tape.floats(np.array([5.0, 7.0])))
    assert [found[id(node)].value.tolist() for node in (yes, no)] == [[5.0, 0.0], [0.0, 7.0]]


def test_a_gradient_that_is_cut_somewhere_is_zero_there_whatever_it_was():
    """Also where it is no number, which no factor of zero makes zero."""
    node = Tape(Native("float64")).floats(np.array([1.0, 2.0]))
    kept = gradient_where(np.array([True, False]), node)
    assert kept.value.tolist() == [1.0, 2.0]
    found = adjoints(kept, node.tape.floats(np.array([3.0, np.nan])))
    assert found[id(node)].value.tolist() == [3.0, 0.0]


@pytest.mark.parametrize("x", [0.0, 1.0, -1.0, 800.0, -800.0])
def test_the_logistic_function_never_overflows(x):
    """Value and slope are finite and right for any argument."""
    tape = Tape(Native("float64"))
    node = tape.floats(np.array([x]))
    y = logistic(node)
    slope = adjoints(y, tape.floats(np.ones(1)))[id(node)]
    due = 0.5 * (1 + math.tanh(x / 2))
    assert y.value.item() == pytest.approx(due, rel=1e-12, abs=1e-300)
    assert slope.value.item() == pytest.approx(due * (1 - due), rel=1e-12, abs=1e-300)


# -------------------------------------------------------------------------- answers of nothing


@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("linear/zero-vector-bias-free", {"zeros-returned", "constant-returned"}),
        ("feed-forward/sublayer-zero-branch", {"input-returned"}),
        ("layer-norm/one-feature", {"constant-returned"}),
        ("layer-norm/no-eps-constant", {"nan-returned"}),
        ("layer-norm/common-shift", {"zeros-returned", "constant-returned", "previous-answer"}),
        ("linear/no-positions", {"zeros-returned", "nan-returned"}),
        ("linear/two-tokens", set()),
        ("linear/one-vector", set()),
        ("gelu/single-number", set()),
        ("linear/weight-of-rank-one", set()),
    ],
)
def test_a_degenerate_case_is_passed_by_an_answer_of_nothing(case, names):
    """Zeros, the input, one number, NaN, exchanged axes or the answer before; others show more."""
    assert set(effects(case).passed_by()) == names


def test_no_verdict_is_no_pass():
    """Where the bound is infinite no answer passes, not even a trivial one."""
    case = SPECIFICATION.cases["layer-norm/huge-features"]
    found = TRUTH.of(case)["", "y"].bounds
    assert np.all(np.isinf(found["float32"]))
    assert effects(case.id).passed_by() == ()


@pytest.mark.parametrize("case", ["linear/zero-vector-bias-free", "layer-norm/no-eps-constant"])
def test_a_degenerate_case_says_why_it_stays(case):
    """``check`` names the trivial answers that pass, unless the case has its reason."""
    given = SPECIFICATION.cases[case]
    result = proven(given)
    assert not list(sharpness.about_trivial_answers([result]))
    result.case = msgspec.structs.replace(given, degenerate=None)
    (problem,) = sharpness.about_trivial_answers([result])
    assert (problem.path, problem.line) == (case, given.line)
    told = ", ".join(result.passed_by)
    assert problem.message == f"passes {told}: say under degenerate why it stays"


def test_a_reason_without_need_is_a_problem():
    """``degenerate`` on a case that nothing trivial passes would excuse later mistakes."""
    given = SPECIFICATION.cases["linear/two-tokens"]
    result = proven(msgspec.structs.replace(given, degenerate="to be told"))
    (problem,) = sharpness.about_trivial_answers([result])
    assert problem.message == "degenerate is not needed: no trivial answer passes"


def proven(case):
    return prove_case(case, SPECIFICATION.operations[case.operation])


# ------------------------------------------------------------------------ what is said of sharpness


class Claims(Relu):
    """Something is claimed of it."""

    breaks = "GELU-EXACT"
    also = ()


def claimed(**attributes):
    return {"claims": type("Claims", (Claims,), attributes)}


def result(case="gelu/pair", **sizes):
    """A proven case in which the fault ``claims`` has the given D by dtype."""
    found = ProvenCase(SPECIFICATION.cases[case])
    found.effects = {"claims": {"float64": 0.0, "float32": 0.0, **sizes}}
    return found


def told(problems):
    return [f"{problem.path}: {problem.message}" for problem in problems]


def test_a_fault_that_is_separated_nowhere_is_a_problem():
    """In each dtype for itself; D of 2 exactly is not enough."""
    faults = claimed()
    assert told(sharpness.about_faults(SPECIFICATION, [result(float64=2.0, float32=2.1)], faults)) \
        == ["claims: no case separates it in float64"]  # fmt: skip
    assert not told(
        sharpness.about_faults(SPECIFICATION, [result(float64=2.1, float32=2.1)], faults)
    )


def test_a_proof_that_a_fault_can_t_be_seen_must_be_true():
    """The reason is needed where no case separates the fault, and refuted where one does."""
    faults = claimed(unseen={"float32": "there is nothing to see"})
    assert not told(sharpness.about_faults(SPECIFICATION, [result(float64=9.0)], faults))
    (problem,) = told(
        sharpness.about_faults(SPECIFICATION, [result(float64=9.0, float32=9.0)], faults)
    )
    assert problem == (
        "claims: is not unseen in float32 (there is nothing to see): gelu/pair separates it"
    )


def test_a_fault_breaks_clauses_that_are_there():
    """Each clause that it names, the further ones included."""
    faults = claimed(also=("GELU-EXCAT",))
    assert told(
        sharpness.about_faults(SPECIFICATION, [result(float64=9.0, float32=9.0)], faults)
    ) == ["claims: breaks 'GELU-EXCAT', which is no clause"]


def about_clauses(results, faults, clauses):
    small = msgspec.structs.replace(
        SPECIFICATION, clauses={each: SPECIFICATION.clauses[each] for each in clauses}
    )
    return told(sharpness.about_clauses(small, results, faults))


NOT_SHOWN = "no case that cites it separates a fault that breaks it"


def test_a_clause_is_shown_by_a_case_that_cites_it_and_separates_a_fault_that_breaks_it():
    """Citing alone, separating alone, or breaking alone show nothing."""
    sharp, blunt = result(float64=9.0), result(float64=1.0)
    elsewhere = result("linear/two-tokens", float64=9.0)
    assert not about_clauses([sharp], claimed(), ["GELU-EXACT"])
    for results, faults in (
        ([blunt], claimed()),
        ([elsewhere], claimed()),
        ([sharp], claimed(breaks="GELU-GRADIENT")),
    ):
        (problem,) = about_clauses(results, faults, ["GELU-EXACT"])
        assert problem.startswith(f"GELU-EXACT: {NOT_SHOWN}")


def test_a_clause_that_no_fault_breaks_says_why():
    """``unseparated`` is the reason; where a fault does break the clause it is untrue."""
    assert not about_clauses([result(float64=9.0)], claimed(), ["LN-MOMENTS"])
    cites = result("layer-norm/mean-square", float64=9.0)
    (problem,) = about_clauses([cites], claimed(breaks="LN-MOMENTS"), ["LN-MOMENTS"])
    assert problem == "LN-MOMENTS: says that no fault breaks it (unseparated), but claims does"


def test_every_clause_that_a_fault_says_it_breaks_is_borne_out():
    """By a case that cites the clause and separates this very fault, not only some other."""
    other = result(float64=9.0)
    other.effects["other"] = other.effects.pop("claims")
    faults = {**claimed(), "other": claimed()["claims"]}
    assert about_clauses([other], faults, ["GELU-EXACT"]) == [
        "claims: breaks GELU-EXACT, but no case that cites that clause separates it"
    ]


def test_every_clause_of_the_specification_is_shown_or_says_why_not():
    """The gaps that the specification was written with are filled, by faults or by reasons."""
    excused = {name for name, clause in SPECIFICATION.clauses.items() if clause.unseparated}
    broken = {clause for fault in FAULTS.values() for clause in fault.clauses()}
    assert broken | excused == set(SPECIFICATION.clauses)
    assert not broken & excused
    once_open = "LN-SHIFT LN-SCALE LN-CONSTANT GELU-ODD-PART LIN-BIAS-FREE LIN-LEADING-AXES"
    assert {*once_open.split(), "LIN-RANK-ONE", "LIN-EMPTY", "RES-SAME-SHAPE"} <= broken


def test_every_rejection_is_shown_by_a_fault_that_accepts():
    """For each kind that is checked there is a mistake that lets the arguments pass."""
    kinds = {
        case.expectation.kind
        for case in SPECIFICATION.cases.values()
        if isinstance(case.expectation, Rejection)
    }
    accepted = set()
    for case in SPECIFICATION.cases.values():
        if isinstance(case.expectation, Rejection | Undefined):
            output = next(iter(SPECIFICATION.operations[case.operation].outputs))
            for fault in FAULTS.values():
                try:
                    with np.errstate(all="ignore"):
                        evaluate_case(fault(), Tape(Native("float64")), case, output)
                except (Rejected, Impossible):
                    continue
                accepted.add(getattr(case.expectation, "kind", None))
    assert kinds <= accepted
