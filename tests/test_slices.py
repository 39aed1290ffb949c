"""Slices written as text select and assign as NumPy's own basic indexing does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.model import Tensor
from conformance.specification.slices import assign, parse_index, parse_target
from conformance.specification.tensors import Malformed

repeatable = settings(derandomize=True, deadline=None)

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
bounds = st.one_of(st.none(), st.integers(-6, 6))
steps = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
parts = st.one_of(st.integers(-5, 5), st.builds(slice, bounds, bounds, steps))
indices = st.lists(parts, min_size=1, max_size=4).map(tuple)


def shown(part):
    """One part of an index as people write it."""
    if isinstance(part, int):
        return str(part)
    start, stop, step = ("" if bound is None else bound for bound in
                         (part.start, part.stop, part.step))  # fmt: skip
    return f"{start}:{stop}" + (f":{step}" if part.step is not None else "")


def written(index, gap=""):
    return "[" + f",{gap}".join(map(shown, index)) + "]"


def counted(shape, start=0):
    """A tensor of whole numbers, and the same as an array."""
    array = np.arange(start, start + math.prod(shape)).reshape(shape)
    return Tensor(shape=shape, data=tuple(array.reshape(-1).tolist()), dtype="int64"), array


@repeatable
@given(indices, st.sampled_from(["", " ", "  "]))
def test_an_index_reads_back_as_it_was_written(index, gap):
    """Whole numbers and start:stop:step, with or without blanks after the comma."""
    assert parse_index(written(index, gap)) == index
    assert parse_target(f"blocks.0.gamma{written(index, gap)}") == ("blocks.0.gamma", index)


@repeatable
@given(shapes, indices, st.booleans())
def test_assignment_is_that_of_numpy(shape, index, one_number):
    """An exact value, or one number for all, lands where NumPy puts it; the rest stays."""
    target, array = counted(shape)
    try:
        selected = array[index]
    except IndexError:
        with pytest.raises(Malformed):
            assign(target, index, Tensor(shape=(), data=(-1,)))
        return
    value, new = counted(() if one_number else selected.shape, start=1000)
    array[index] = new
    found = assign(target, index, value)
    assert found == Tensor(shape=shape, data=tuple(array.reshape(-1).tolist()), dtype="int64")
    assert target == counted(shape)[0]


@repeatable
@given(shapes, indices, shapes)
def test_a_value_of_another_shape_is_refused_and_not_broadcast(shape, index, given_shape):
    """NumPy would spread a row over a plane; a fixture says what it means."""
    target, array = counted(shape)
    value, _ = counted(given_shape)
    try:
        selected = array[index].shape
    except IndexError:
        selected = None
    if given_shape in ((), selected) and selected is not None:
        assert assign(target, index, value).shape == shape
        return
    with pytest.raises(Malformed):
        assign(target, index, value)


def test_an_assignment_that_does_not_fit_says_why():
    """The message has both shapes, or the position and the axis it is beyond."""
    target, _ = counted((2, 3))
    row, _ = counted((2,))
    for index, value, message in [
        ("[:, 0]", counted((3,))[0], "shape [3] where the slice has [2]"),
        ("[0]", row, "shape [2] where the slice has [3]"),
        ("[2]", row, "index 2 on an axis of 2"),
        ("[0, -4]", row, "index -4 on an axis of 3"),
        ("[0, 0, 0]", row, "3 indices for a tensor of shape [2, 3]"),
    ]:
        with pytest.raises(Malformed) as caught:
            assign(target, parse_index(index), value)
        assert str(caught.value) == message


def test_a_bare_name_is_the_whole_argument():
    """No brackets select everything; a single number then fills it."""
    assert parse_target(" x ") == ("x", ())
    assert parse_index("") == ()
    assert assign(counted((2, 2))[0], (), Tensor(shape=(), data=(7,))).data == (7, 7, 7, 7)


@pytest.mark.parametrize(
    "part", ["", "a", "1.5", "1:2:3:4", "...", "None", "+1", "--1", ":-", "1 2"]
)
def test_an_index_that_is_no_basic_slice_is_refused(part):
    """Neither an ellipsis nor a name nor a fraction selects anything here."""
    with pytest.raises(Malformed) as caught:
        parse_index(f"[:, {part}]")
    assert str(caught.value) == (
        f"{part!r} in '[:, {part}]' is neither a whole number nor start:stop:step"
    )


def test_a_step_of_zero_is_refused():
    """No slice goes nowhere; it is refused where it is read, not where it is used."""
    for text in ("[::0]", "[1:2:0, 0]"):
        with pytest.raises(Malformed):
            parse_index(text)


@pytest.mark.parametrize("text", ["[0", "0]", "0", "[0]]x", "()"])
def test_brackets_are_needed(text):
    """What stands outside square brackets is no slice."""
    with pytest.raises(Malformed):
        parse_index(text)


@pytest.mark.parametrize("text", ["", "[0]", "1x[0]", "x[0", "x[0]y", "x y", "x-y", "x[0][1]"])
def test_a_target_is_a_name_with_at_most_one_slice(text):
    """A name as arguments have, dots included, and nothing after the brackets."""
    with pytest.raises(Malformed):
        parse_target(text)
