"""The tape: its pullbacks are derivatives, its rules are followed by gradients and by no error."""

import gc
from decimal import Decimal
from weakref import ref

import flint
import numpy as np
import pytest

from conformance.model import Tensor
from conformance.precision import PRECISIONS
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.functions import erf, erfc, exp, power, sqrt
from conformance.truth.arithmetic.gathering import scatter, stack, take
from conformance.truth.arithmetic.reverse import adjoints, ancestry
from conformance.truth.arithmetic.tape import Leaf, Tape

#: A central difference over balls errs by about the square of its step, 2^-120.
STEP = flint.arb(2) ** -60
WITHIN = 1e-30

REPEATED = np.array([[2, 0], [2, 1]])
PAIRS = (np.array([0, 1, 0]), np.array([2, 1, 2]))

#: What is differentiated, and the shapes of its operands.
PRIMITIVES = {
    "a + b": (lambda a, b: a + b, (2, 3), (2, 3)),
    "a + b over a leading axis": (lambda a, b: a + b, (2, 3), (3,)),
    "a + b over an axis of one": (lambda a, b: a + b, (2, 1), (2, 3)),
    "a + b over both": (lambda a, b: a + b, (2, 1), (1, 3)),
    "a + b of rank 0": (lambda a, b: a + b, (), (3,)),
    "a + a": (lambda a: a + a, (3,)),
    "a + 2": (lambda a: a + 2, (3,)),
    "2 + a": (lambda a: 2 + a, (3,)),
    "a - b": (lambda a, b: a - b, (2, 3), (3,)),
    "a - 2": (lambda a: a - 2, (3,)),
    "2 - a": (lambda a: 2 - a, (3,)),
    "-a": (lambda a: -a, (3,)),
    "a * b": (lambda a, b: a * b, (2, 3), (2, 3)),
    "a * b over a leading axis": (lambda a, b: a * b, (3,), (2, 3)),
    "a * b over an axis of one": (lambda a, b: a * b, (2, 3), (2, 1)),
    "a * a": (lambda a: a * a, (3,)),
    "2 * a": (lambda a: 2 * a, (3,)),
    "a / b": (lambda a, b: a / b, (2, 3), (2, 3)),
    "a / b over a leading axis": (lambda a, b: a / b, (3,), (2, 3)),
    "a / b over an axis of one": (lambda a, b: a / b, (2, 3), (2, 1)),
    "a / 2": (lambda a: a / 2, (3,)),
    "2 / a": (lambda a: 2 / a, (3,)),
    "a @ b": (lambda a, b: a @ b, (2, 3), (3, 2)),
    "a @ b of rank 1": (lambda a, b: a @ b, (3,), (3, 2)),
    "a @ b of rank 3": (lambda a, b: a @ b, (2, 2, 3), (3, 2)),
    "a @ b in batches": (lambda a, b: a @ b, (2, 2, 3), (2, 3, 2)),
    "a @ b, a broadcast": (lambda a, b: a @ b, (2, 3), (2, 3, 2)),
    "sum over the last axis": (lambda a: a.sum(-1), (2, 3)),
    "sum over the first axis, kept": (lambda a: a.sum(0, keepdims=True), (2, 3)),
    "sum over two axes": (lambda a: a.sum((0, -1)), (2, 3, 2)),
    "reshape": (lambda a: a.reshape((3, 2)), (2, 3)),
    "swap the last axes": (lambda a: a.swap_last(), (2, 2, 3)),
    "broadcast": (lambda a: a.broadcast_to((2, 2, 3)), (2, 1)),
    "rows": (lambda a: a.rows(), (2, 2, 3)),
    "take": (lambda a: take(a, (0, 1)), (2, 3)),
    "take rows, repeated": (lambda a: take(a, REPEATED), (3, 2)),
    "take elements, repeated": (lambda a: take(a, PAIRS), (2, 3)),
    "take a slice": (lambda a: take(a, (slice(None), slice(1, None))), (2, 3)),
    "sqrt": (sqrt, (2, 2)),
    "exp": (exp, (2, 2)),
    "erf": (erf, (2, 2)),
    "erfc": (erfc, (2, 2)),
    "the first power": (lambda a: power(a, 1), (2, 2)),
    "the second power": (lambda a: power(a, 2), (2, 2)),
    "the eleventh power": (lambda a: power(a, 11), (2, 2)),
    "allowing": (lambda a: (a * a).allowing(3, a.magnitude), (3,)),
}
EVERY_PRIMITIVE = pytest.mark.parametrize(
    ("function", "shapes"), [(f, s) for f, *s in PRIMITIVES.values()], ids=PRIMITIVES.keys()
)


@pytest.fixture(autouse=True)
def _working_precision():
    with precision():
        yield


def dyadics(*shapes):
    """Arrays of balls k/64 between 1/4 and 2: positive, so that every function is smooth there."""
    generator = np.random.default_rng(7)
    return [Balls().from_floats(generator.integers(16, 129, shape) / 64) for shape in shapes]


def leaves(values):
    tape = Tape(Balls())
    return [Leaf(tape, value, None) for value in values]


def weights(shape):
    """What a value is weighted with: no two alike, none of them 1."""
    size = int(np.prod(shape))
    return Balls().from_floats((np.arange(size) * 2 + 3).reshape(shape) / 8)


def weighted(value):
    return np.sum(value * weights(value.shape))


def gradient(function, operands, position):
    """The gradient of the weighted values with respect to one operand, as a node."""
    y = function(*operands)
    found = adjoints(y, y.tape.floats(np.vectorize(float, otypes=[float])(weights(y.shape))))
    operand = operands[position]
    return found.get(id(operand), operand.tape.floats(np.zeros(operand.shape)))


def difference_quotient(scalar, values, position):
    """The central difference of ``scalar(values)`` along every element of one of the values."""
    result = np.empty(values[position].shape, dtype=object)
    for index in np.ndindex(result.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = [value.copy() for value in values]
            moved[position][index] = moved[position][index] + step
            ends.append(scalar(moved))
        result[index] = (ends[0] - ends[1]) / (2 * STEP)
    return result


def distance(a, b):
    assert a.shape == b.shape
    return float(np.max(Balls().magnitude(a - b), initial=0.0))


@EVERY_PRIMITIVE
def test_a_pullback_is_the_derivative(function, shapes):
    """The adjoint of every operand equals the central difference of the weighted values."""
    values = dyadics(*shapes)
    for position in range(len(values)):
        found = gradient(function, leaves(values), position).value
        expected = difference_quotient(
            lambda moved: weighted(function(*leaves(moved)).value), values, position
        )
        assert distance(found, expected) < WITHIN


@EVERY_PRIMITIVE
def test_a_gradient_can_be_differentiated_again(function, shapes):
    """A gradient is a node: its own derivatives equal the central differences of the gradient."""
    values = dyadics(*shapes)
    for first, second in np.ndindex(len(values), len(values)):
        operands = leaves(values)
        once = gradient(function, operands, first)
        twice = gradient(lambda *_, node=once: node, operands, second).value
        expected = difference_quotient(
            lambda moved, first=first: weighted(gradient(function, leaves(moved), first).value),
            values,
            second,
        )
        assert distance(twice, expected) < WITHIN


def counted(shape):
    """The doubles 1, 2, 3, … in a shape."""
    return np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape)


@EVERY_PRIMITIVE
def test_adjoints_of_many_seeds_are_found_at_once(function, shapes):
    """Seeds stacked before the axes of a value, or of a gradient, give the stacked adjoints."""
    operands = leaves(dyadics(*shapes))
    y = function(*operands)
    once = adjoints(y, y.tape.floats(counted(y.shape)))
    for output in (y, *(once[id(operand)] for operand in operands)):
        seeds = counted((2, *output.shape))
        apart = [adjoints(output, y.tape.floats(seed), errors=True) for seed in seeds]
        stacked = adjoints(output, y.tape.floats(seeds), errors=True)
        assert stacked.keys() == apart[0].keys()
        for operand in (each for each in operands if id(each) in stacked):
            expected = np.stack([found[id(operand)].value for found in apart])
            assert distance(stacked[id(operand)].value, expected) == 0


def test_gradients_follow_the_rule_and_errors_the_derivative():
    """A stated gradient rule replaces the derivative in gradients, never in error propagation."""
    a, b = leaves(dyadics((3,), (3,)))
    product = (a * b).with_rule((a, b), lambda g: (g * 5, g * 7))
    seed = a.tape.floats(np.ones(3))
    by_rule, by_derivative = adjoints(product, seed), adjoints(product, seed, errors=True)
    assert distance(product.value, a.value * b.value) == 0
    assert distance(by_rule[id(a)].value, Balls().from_floats(np.full(3, 5.0))) == 0
    assert distance(by_rule[id(b)].value, Balls().from_floats(np.full(3, 7.0))) == 0
    assert distance(by_derivative[id(a)].value, b.value) == 0
    assert distance(by_derivative[id(b)].value, a.value) == 0


def test_a_rule_is_part_of_the_gradient_that_is_differentiated():
    """The derivative of a gradient made by a rule is the derivative of the rule."""
    (a,) = leaves(dyadics((3,)))
    y = (a + a).with_rule((a,), lambda g: (g * a * a * a,))
    ones = a.tape.floats(np.ones(3))
    twice = adjoints(adjoints(y, ones)[id(a)], ones, errors=True)[id(a)]
    assert distance(twice.value, 3 * a.value * a.value) < WITHIN


def test_no_gradient_flows_through_a_detached_node():
    """A detached node has its value, no gradient, and still passes errors on."""
    (a,) = leaves(dyadics((3,)))
    y = (a * a).detach() + a
    ones = a.tape.floats(np.ones(3))
    assert distance(y.value, a.value * a.value + a.value) == 0
    assert distance(adjoints(y, ones)[id(a)].value, ones.value) == 0
    propagated = adjoints(y, ones, errors=True)[id(a)].value
    assert distance(propagated, 2 * a.value + 1) == 0


def test_a_node_without_influence_has_no_adjoint():
    """Absent is not zero: what an output does not depend on has no entry."""
    a, b = leaves(dyadics((3,), (3,)))
    y = a * 2
    assert id(b) not in adjoints(y, a.tape.floats(np.ones(3)), ancestry([y, b]))


def test_parents_come_before_children_and_once():
    """Ancestry orders a computation, shared parts once, however deep it is."""
    a, b = leaves(dyadics((2,), (2,)))
    shared = a * b
    y = shared + shared * a
    for _ in range(3000):  # deeper than Python's recursion would go
        y = y + b
    ordered = ancestry([y, shared])
    place = {id(node): position for position, node in enumerate(ordered)}
    assert len(place) == len(ordered)
    assert {id(a), id(b), id(shared), id(y)} <= place.keys()
    assert all(place[id(p)] < place[id(node)] for node in ordered for p in node.parents)


def test_what_lies_behind_the_ends_is_left_out():
    """A sweep goes as far as the ends, which have their adjoints, and no further."""
    (a,) = leaves(dyadics((3,)))
    b = a * a
    c = b * b + b
    ordered = ancestry([c], ends=[b])
    assert ordered[0] is b
    assert not any(node is a for node in ordered)
    seed = c.tape.floats(np.ones(3))
    whole, short = adjoints(c, seed), adjoints(c, seed, ordered)
    assert id(a) in whole
    assert id(a) not in short
    assert distance(whole[id(b)].value, short[id(b)].value) == 0


def test_nothing_summed_is_zero():
    """A sum or a product over an axis of size 0 is zero, over balls too."""
    for domain in (Balls(), Doubles()):
        tape = Tape(domain)
        nothing = tape.floats(np.zeros((2, 0)))
        for node in (nothing.sum(-1), nothing @ tape.floats(np.zeros((0, 2)))):
            assert np.array_equal(domain.magnitude(node.value), np.zeros(node.shape))


def test_a_disturbed_tape_adds_to_every_value_that_can_be_off():
    """The disturbance of a node reaches its children; what is exact, or only moved, stays."""
    tape = Tape(Doubles(), lambda node: np.full(node.shape, 0.5))
    a, b = tape.floats(np.array([1.0])), tape.leaf(Tensor(shape=(1,), data=(Decimal("0.1"),)))
    assert np.array_equal(a.value, [1.0])
    assert np.array_equal(b.value, [0.6])
    assert np.array_equal((a + a).value, [2.5])
    assert np.array_equal((-(a + a)).value, [-2.5])


def zeros_of(make):
    """Where ``make(a, b)`` is known to be zero, for a = (0, 1, 2) and b = (0, 0, 3)."""
    tape = Tape(Doubles())
    a, b = tape.floats(np.array([0.0, 1.0, 2.0])), tape.floats(np.array([0.0, 0.0, 3.0]))
    return make(a, b).zero().tolist()


def test_an_exact_zero_is_known_and_one_by_cancellation_is_not():
    """A product with a given zero is zero in every honest evaluation; 1 - 1 need not be."""
    assert zeros_of(lambda a, b: a * b) == [True, True, False]
    assert zeros_of(lambda a, b: a + b) == [True, False, False]
    assert zeros_of(lambda a, b: -(a * b)) == [True, True, False]
    assert zeros_of(lambda a, _: a / (a + 1)) == [True, False, False]
    assert zeros_of(lambda a, _: sqrt(a)) == [True, False, False]
    assert zeros_of(lambda a, _: a - a) == [True, False, False]
    assert zeros_of(lambda a, b: stack([a, b])) == [[True, False, False], [True, True, False]]
    assert zeros_of(lambda a, b: (a * b).sum(0, keepdims=True)) == [False]
    assert zeros_of(lambda a, _: take(a, np.array([2, 0]))) == [False, True]
    assert zeros_of(lambda a, _: scatter(a, np.array([0, 2, 2]), (4,))) == [
        True, True, False, True,
    ]  # fmt: skip


def test_an_exact_zero_may_not_be_off():
    """What is known to be zero has no allowance, not even for an underflow."""
    tape = Tape(Doubles())
    a = tape.floats(np.array([0.0, 1.0]))
    allowed = (a * a).allowance(PRECISIONS["float32"])
    assert allowed[0] == 0
    assert allowed[1] > 0


def test_a_stack_is_differentiated_node_by_node():
    """Each node of a stack receives its own part of the adjoint."""
    tape = Tape(Doubles())
    a, b = tape.floats(np.array([1.0, 2.0])), tape.floats(np.array([3.0, 4.0]))
    y = stack([a * a, b])
    found = adjoints(y, tape.floats(np.array([[1.0, 10.0], [100.0, 1000.0]])))
    assert found[id(a)].value.tolist() == [2.0, 40.0]
    assert found[id(b)].value.tolist() == [100.0, 1000.0]


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_graph_goes_with_the_last_who_asks_for_it(name):
    """Values, derivatives and zeros hold nodes in no circle: none waits to be collected."""
    function, *shapes = PRIMITIVES[name]
    tape = Tape(Doubles())
    gc.disable()
    try:
        operands = [tape.floats(np.full(shape, 0.5)) for shape in shapes]
        y = function(*operands)
        found = adjoints(y, tape.floats(np.ones(y.shape)))
        y.allowance(PRECISIONS["float32"])
        assert y.extent().shape == y.shape
        made = [ref(node) for node in (y, *operands, *found.values())]
        del operands, y, found
        assert not [node for node in made if node() is not None]
    finally:
        gc.enable()
