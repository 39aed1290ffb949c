"""The reference: its gradients are derivatives, its values those of a second implementation."""

from collections.abc import Mapping
from decimal import Decimal, localcontext

import mpmath
import numpy as np
import pytest

from conformance.errors import Rejected
from conformance.model import Call, Case, Tensor, Values
from conformance.specification import load
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.proof.evaluate import evaluate_case
from conformance.truth.reference import Reference

OPERATIONS = load().operations
EPS = Decimal("1e-5")

#: Exact, and small enough that a central difference errs by about 2^-120.
STEP = Decimal(2) ** -60

FEED_FORWARD = {"w_1": (3, 4), "b_1": (4,), "w_2": (4, 3), "b_2": (3,)}
NORM = {"gamma": (3,), "beta": (3,)}
#: The shapes of all arguments; ``...`` stands for any leading axes.
SHAPES = {
    "linear": {"x": (..., 3), "weight": (3, 2), "bias": (2,)},
    "layer_norm": {"x": (..., 3), **NORM},
    "gelu": {"x": (..., 3)},
    "residual_add": {"x": (..., 3), "increment": (..., 3)},
    "feed_forward": {"x": (..., 3), **FEED_FORWARD},
    "feed_forward_sublayer": {"x": (..., 3), **NORM, **FEED_FORWARD},
}
LEADING = pytest.mark.parametrize("leading", [(), (2,), (2, 2)], ids=["rank 1", "rank 2", "rank 3"])
EVERY_OPERATION = pytest.mark.parametrize("operation", SHAPES)


def dyadics(generator, shape):
    """Numbers k/64 between -2 and 2."""
    numbers = generator.integers(-128, 129, int(np.prod(shape)))
    return Tensor(shape=shape, data=tuple(Decimal(int(number)) / 64 for number in numbers))


def example(operation, leading, seed=0):
    """All arguments of an operation, and an upstream gradient of the shape of its output."""
    generator = np.random.default_rng([seed, len(leading)])
    given = {
        name: dyadics(generator, (*leading, *shape[1:]) if shape[0] is ... else shape)
        for name, shape in SHAPES[operation].items()
    }
    if operation in ("layer_norm", "feed_forward_sublayer"):
        given["eps"] = EPS
    width = 2 if operation == "linear" else 3
    return given, dyadics(generator, (*leading, width))


def results(operation, given, upstream=None, domain=None):
    """The value of an operation, or its gradients by argument name."""
    wrt = tuple(name for name, value in given.items() if isinstance(value, Tensor))
    call = Call(given=given)
    if upstream is not None:
        call = Call(given=given, upstream={"y": upstream}, wrt=wrt)
    case = Case(
        id="reference/case",
        title="",
        operation=operation,
        mode="evaluate" if upstream is None else "vjp",
        clauses=(),
        sources=(),
        calls={"": call},
        expectation=Values(),
        dtypes=("float64",),
    )
    with precision():
        found = evaluate_case(Reference(), Tape(domain or Balls()), case, "y")
    values = {name: node.value for (_, name), node in found.items()}
    return values["y"] if upstream is None else values


def moved(given, name, position, step):
    """The arguments with one number of one of them moved."""
    with localcontext(prec=100):
        data = list(given[name].data)
        data[position] += step
        return {**given, name: Tensor(shape=given[name].shape, data=tuple(data))}


@LEADING
@EVERY_OPERATION
def test_a_gradient_is_the_derivative(operation, leading):
    """Every gradient equals the central difference of <upstream, y>, whatever the leading axes."""
    given, upstream = example(operation, leading)
    gradients = results(operation, given, upstream)
    weights = Balls().array(upstream.data, upstream.shape)
    assert gradients.keys() == SHAPES[operation].keys()
    with precision():
        for name, gradient in gradients.items():
            assert gradient.shape == given[name].shape
            for position, found in enumerate(gradient.reshape(-1)):
                ends = [
                    np.sum(results(operation, moved(given, name, position, step)) * weights)
                    for step in (STEP, -STEP)
                ]
                quotient = (ends[0] - ends[1]) * 2**59
                assert Balls().magnitude(found - quotient) < 1e-28, (name, position)


@EVERY_OPERATION
def test_doubles_follow_the_balls(operation):
    """Over doubles the reference gives the same values and gradients to a few roundings."""
    given, upstream = example(operation, (2, 2), seed=1)
    value = results(operation, given)
    assert Balls().magnitude(value - results(operation, given, domain=Doubles())).max() < 1e-12
    gradients = results(operation, given, upstream)
    doubles = results(operation, given, upstream, domain=Doubles())
    for name, gradient in gradients.items():
        assert Balls().magnitude(gradient - doubles[name]).max() < 1e-12


# ------------------------------------------------------------------- a second implementation


def mp(number):
    return mpmath.mpf(str(number))


def second_linear(row, weight, bias):
    d_in, d_out = weight.shape
    w = [mp(number) for number in weight.data]
    return [
        mpmath.fsum(row[i] * w[i * d_out + j] for i in range(d_in)) + mp(bias.data[j])
        for j in range(d_out)
    ]


def second_layer_norm(row, gamma, beta, *, eps):
    mean = mpmath.fsum(row) / len(row)
    variance = mpmath.fsum((v - mean) ** 2 for v in row) / len(row)
    scale = 1 / mpmath.sqrt(variance + mp(eps))
    return [
        (v - mean) * scale * mp(g) + mp(b)
        for v, g, b in zip(row, gamma.data, beta.data, strict=True)
    ]


def second_gelu(row):
    """x Phi(x), Phi as mpmath has it."""
    return [v * mpmath.ncdf(v) for v in row]


def second_feed_forward(row, w_1, b_1, w_2, b_2):
    return second_linear(second_gelu(second_linear(row, w_1, b_1)), w_2, b_2)


SECOND = {
    "linear": second_linear,
    "layer_norm": second_layer_norm,
    "gelu": second_gelu,
    "feed_forward": second_feed_forward,
}


@pytest.mark.parametrize("seed", range(3))
@LEADING
@pytest.mark.parametrize("operation", SECOND)
def test_a_second_implementation_agrees(operation, leading, seed):
    """An implementation over lists and mpmath, written apart, agrees to forty decimals."""
    given, _ = example(operation, leading, seed)
    found = results(operation, given)
    others: Mapping[str, object] = {name: value for name, value in given.items() if name != "x"}
    numbers, width = given["x"].data, given["x"].shape[-1]
    expected = []
    with mpmath.workdps(60):
        for start in range(0, len(numbers), width):
            row = [mp(number) for number in numbers[start : start + width]]
            expected += SECOND[operation](row, **others)
        for ball, value in zip(found.reshape(-1), expected, strict=True):
            assert abs(mpmath.mpf(ball.mid().str(60, radius=False)) - value) < mpmath.mpf("1e-40")


# ---------------------------------------------------------------------------------- rejections


def zeros(*shape):
    return Tensor(shape=shape, data=(0,) * int(np.prod(shape)))


#: Shapes of x, weight and bias that break at least two rules: the first of the list must win.
REJECTED = {
    "weight-rank before zero-input-width": ((2, 3), (0,), (2,)),
    "weight-rank before bias-rank": ((2, 3), (3, 2, 1), (2, 1)),
    "zero-input-width before zero-output-width": ((2, 3), (0, 0), (2,)),
    "zero-input-width before input-width": ((2, 3), (0, 2), (2,)),
    "zero-output-width before bias-rank": ((2, 3), (3, 0), (1, 1)),
    "bias-rank before bias-width": ((2, 3), (3, 2), (3, 3)),
    "bias-rank before input-rank": ((), (3, 2), ()),
    "bias-width before input-rank": ((), (3, 2), (1,)),
    "bias-width before input-width": ((2, 4), (3, 2), (3,)),
    "input-rank": ((), (1, 2), None),
    "input-width": ((3, 2), (3, 2), (2,)),
    "bias-width, though 1 would broadcast": ((2, 3), (3, 2), (1,)),
}


@pytest.mark.parametrize(("words", "shapes"), REJECTED.items(), ids=REJECTED.keys())
def test_linear_rejects_in_the_stated_order(words, shapes):
    """Of several broken rules the first of the specification's list is named."""
    given = {
        name: zeros(*shape)
        for name, shape in zip(("x", "weight", "bias"), shapes, strict=True)
        if shape is not None
    }
    with pytest.raises(Rejected) as rejected:
        results("linear", given)
    assert rejected.value.kind == words.replace(",", "").split()[0]


def test_every_rejection_of_linear_is_tried():
    """The table above has every kind that the specification lists, in its order."""
    first = [words.replace(",", "").split()[0] for words in REJECTED]
    assert list(dict.fromkeys(first)) == list(OPERATIONS["linear"].rejects)


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1), (3, 2), (1,), ()])
def test_a_residual_is_never_broadcast(shape):
    """Operands of different shapes are rejected even where NumPy would stretch one of them."""
    with pytest.raises(Rejected) as rejected:
        results("residual_add", {"x": zeros(2, 3), "increment": zeros(*shape)})
    assert rejected.value.kind == "shape-mismatch"
    assert list(OPERATIONS["residual_add"].rejects) == ["shape-mismatch"]


def test_an_empty_leading_axis_is_valid():
    """No positions give no outputs, a zero weight gradient and a zero bias gradient."""
    given = {"x": zeros(0, 3), "weight": zeros(3, 2), "bias": zeros(2)}
    assert results("linear", given).shape == (0, 2)
    gradients = results("linear", given, zeros(0, 2))
    assert gradients["x"].shape == (0, 3)
    assert np.array_equal(Balls().magnitude(gradients["weight"]), np.zeros((3, 2)))
    assert np.array_equal(Balls().magnitude(gradients["bias"]), np.zeros(2))
