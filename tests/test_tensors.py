"""Tensors are exact: nested lists, explicit shapes and fills, and no shape is guessed."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.model import Tensor
from conformance.specification.tensors import Malformed, fill, splitmix64, tensor

repeatable = settings(derandomize=True, deadline=None, max_examples=60)

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
EXPLICIT = "a tensor is a list, {shape, data} with an optional dtype, or {fill: …}"
FLAT = "data is a flat list of numbers, the last axis fastest"
SEED = "the seed is a whole number, not negative"
FILL = "a fill is {seed, shape} with an optional scale and offset"
SHAPE = "a shape is a list of whole numbers, not negative"
RAGGED = {
    "a number for a list": (
        [[1, 2], 3],
        (1,),
        "ragged: a number where the rows before have a list",
    ),
    "a list for a number": ([1, [2]], (1,), "ragged: a list where the rows before have a number"),
    "a list beside a number": (
        [[1, [2]]],
        (0, 1),
        "ragged: a list where the rows before have a number",
    ),
    "a short row": ([[1, 2], [3]], (1,), "ragged: 1 entries, the rows before have 2"),
    "a long row": ([[1], [2, 3]], (1,), "ragged: 2 entries, the rows before have 1"),
    "a deep row": ([[1, 2], [[3], [4]]], (1, 0), "ragged: a list where the rows before have a"),
    "a flat row": ([[[1], [2]], [3, 4]], (1, 0), "ragged: a number where the rows before have a"),
    "another plane": ([[[1, 2]], [[3]]], (1, 0), "ragged: 1 entries, the rows before have 2"),
    "an empty row": ([[1], []], (1,), "an empty list has no shape: write {shape: [...], data: []}"),
    "nothing": ([], (), "an empty list has no shape: write {shape: [...], data: []}"),
    "nothing within": ([[]], (0,), "an empty list has no shape: write {shape: [...], data: []}"),
}


def refusal(value):
    with pytest.raises(Malformed) as caught:
        tensor(value)
    return str(caught.value), caught.value.path


# ------------------------------------------------------------------------------- nested lists


@pytest.mark.parametrize(("value", "path", "message"), RAGGED.values(), ids=RAGGED)
def test_a_ragged_or_empty_list_is_refused_where_it_breaks(value, path, message):
    """Every way of being ragged is refused, with the path to the element that doesn't fit."""
    told, where = refusal(value)
    assert told.startswith(message)
    assert where == path


def test_a_list_holds_numbers_and_nothing_else():
    """Text, flags, nothing and mappings are no numbers; the path leads to the one that isn't."""
    for item in ("1", True, None, {"shape": []}, 1.5):
        told, where = refusal([[1, 2], [3, item]])
        assert told == f"expected a number, got {type(item).__name__} {item!r}"
        assert where == (1, 1)


def test_what_is_neither_list_nor_mapping_nor_number_is_refused():
    """A bare word, flag or nothing is no tensor."""
    for value in ("1", True, None):
        assert refusal(value) == (f"expected numbers, got {type(value).__name__} {value!r}", ())


@repeatable
@given(shapes, st.data())
def test_a_nested_list_has_its_shape_and_its_numbers_in_order(shape, data):
    """Row-major, the last axis fastest, each number as it was written."""
    number = st.one_of(st.integers(), st.decimals(allow_nan=False, allow_infinity=False))
    count = math.prod(shape)
    flat = data.draw(st.lists(number, min_size=count, max_size=count))
    boxed = np.empty(count, dtype=object)
    boxed[:] = flat
    found = tensor(boxed.reshape(shape).tolist())
    assert found == Tensor(shape=shape, data=tuple(flat), dtype="real")
    assert [type(item) for item in found.data] == [type(item) for item in flat]


@repeatable
@given(shapes.filter(lambda shape: len(shape) > 1), st.data())
def test_dropping_any_element_makes_a_list_ragged(shape, data):
    """A list with one number too few somewhere is refused, wherever that is."""
    nested = np.arange(math.prod(shape)).reshape(shape).tolist()
    row = nested
    for size in shape[:-1]:
        row = row[data.draw(st.integers(0, size - 1))]
    row.pop(data.draw(st.integers(0, shape[-1] - 1)))
    if all(size == 1 for size in shape[:-1]) and row:
        assert tensor(nested).shape == (*shape[:-1], shape[-1] - 1)  # shorter, and not ragged
    else:
        refusal(nested)


# --------------------------------------------------------------------------- explicit tensors


def test_an_explicit_tensor_may_be_empty_or_of_rank_0():
    """What a list can't say, a shape can: no elements, or no axes."""
    assert tensor({"shape": [0, 2], "data": []}) == Tensor(shape=(0, 2), data=())
    assert tensor({"shape": [], "data": [Decimal("-0.75")]}) == tensor(Decimal("-0.75"))
    assert tensor({"dtype": "int32", "shape": [2, 0, 3], "data": []}).dtype == "int32"


@pytest.mark.parametrize(
    ("value", "message", "path"),
    [
        (
            {"shape": [2, 3], "data": [1] * 5},
            "5 numbers for shape [2, 3], which needs 6",
            ("data",),
        ),
        ({"shape": [], "data": []}, "0 numbers for shape [], which needs 1", ("data",)),
        ({"shape": [0], "data": [1]}, "1 numbers for shape [0], which needs 0", ("data",)),
        ({"shape": [-1], "data": []}, SHAPE, ("shape",)),
        ({"shape": [Decimal("1.0")], "data": [1]}, SHAPE, ("shape",)),
        ({"shape": [True], "data": [1]}, SHAPE, ("shape",)),
        ({"shape": 2, "data": [1, 2]}, SHAPE, ("shape",)),
        ({"shape": [1], "data": [[1]]}, FLAT, ("data",)),
        ({"shape": [1], "data": ["x"]}, FLAT, ("data",)),
        ({"shape": [1], "data": 1}, FLAT, ("data",)),
        (
            {"shape": [1], "data": [1], "dtype": "float16"},
            "unknown dtype 'float16'; one of real, float64, float32, int64, int32, bool",
            ("dtype",),
        ),
        ({"shape": [1], "data": [1], "order": "C"}, EXPLICIT, ()),
        ({"shape": [1]}, EXPLICIT, ()),
        ({"data": [1]}, EXPLICIT, ()),
        ({}, EXPLICIT, ()),
    ],
)
def test_an_explicit_tensor_that_does_not_add_up_is_refused(value, message, path):
    """Count, shape, dtype and keys are held to the letter."""
    assert refusal(value) == (message, path)


def test_a_whole_dtype_holds_whole_numbers():
    """A fraction in an integer tensor is a mistake of the fixture, not something to cut off."""
    for dtype, number in (("int64", "1.5"), ("int32", "0.1"), ("bool", "2"), ("int32", "1e10")):
        refusal({"dtype": dtype, "shape": [1], "data": [Decimal(number)]})


# -------------------------------------------------------------------------------------- fills


def test_splitmix64_gives_the_published_numbers():
    """The draws are those that other implementations of SplitMix64 publish for their seeds."""
    assert list(itertools.islice(splitmix64(1234567), 5)) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert next(splitmix64(0)) == 0xE220A8397B1DCDAF


def test_the_state_is_64_bits_wide():
    """Seeds that differ by 2**64 are the same seed, as in languages with unsigned integers."""
    assert next(splitmix64(19)) == next(splitmix64(19 + 2**64))


def test_a_fill_begins_as_the_specification_says():
    """The worked example of the description: seed 19, scale 1."""
    begins = [31, -49, -17, -53, 37, 59, -3, 9]
    assert fill(19, (2, 4)).data == tuple(Decimal(k) / 64 for k in begins)
    assert fill(19, (8,), 4, Decimal("0.5")).data == tuple(Decimal(k) / 16 + Decimal("0.5")
                                                           for k in begins)  # fmt: skip


dyadics = st.builds(lambda k, e: Decimal(k * 2.0**e), st.integers(1, 255), st.integers(-40, 4))


@repeatable
@given(st.integers(0, 2**64 - 1), shapes, dyadics, st.integers(-2, 2))
def test_every_filled_number_is_exact_in_float32_and_never_the_offset(seed, shape, scale, centre):
    """offset + scale k / 64 with k odd: |k| at most 63, nothing rounded, nothing at the centre."""
    offset = Decimal(centre * float(scale))
    for number in fill(seed, shape, scale, offset).data:
        exact = Fraction(number)
        k = (exact - Fraction(offset)) / Fraction(scale) * 64
        assert k.denominator == 1
        assert k % 2 == 1
        assert abs(k) <= 63
        assert Fraction(float(np.float32(float(number)))) == exact


def test_a_fill_uses_all_64_levels_alike():
    """Over many draws every level comes up, none more than twice as often as another."""
    found = np.unique([float(number) for number in fill(3, (6400,)).data], return_counts=True)
    assert found[0].tolist() == [k / 64 for k in range(-63, 64, 2)]
    assert found[1].max() < 2 * found[1].min()


@pytest.mark.parametrize(
    ("value", "message", "path"),
    [
        ({"seed": 1}, FILL, ("fill",)),
        ({"shape": [1]}, FILL, ("fill",)),
        (7, FILL, ("fill",)),
        ({"seed": 1, "shape": [1], "sacle": 2}, "unknown key 'sacle'", ("fill", "sacle")),
        ({"seed": -1, "shape": [1]}, SEED, ("fill", "seed")),
        ({"seed": Decimal("1.5"), "shape": [1]}, SEED, ("fill", "seed")),
        ({"seed": True, "shape": [1]}, SEED, ("fill", "seed")),
        ({"seed": 1, "shape": [1], "scale": "2"}, "scale is a number", ("fill", "scale")),
        ({"seed": 1, "shape": [1], "offset": None}, "offset is a number", ("fill", "offset")),
        ({"seed": 1, "shape": [1, -1]}, SHAPE, ("fill", "shape")),
    ],
)
def test_a_fill_that_is_written_wrongly_is_refused(value, message, path):
    """Every key of a fill is checked, and the path leads to the one that is wrong."""
    assert refusal({"fill": value}) == (message, path)
    told, _ = refusal({"fill": {"seed": 1, "shape": [1]}, "shape": [1]})
    assert told == EXPLICIT


@pytest.mark.parametrize("scale", ["1e9999999", "0.1", "1e-5"])
def test_a_fill_that_would_have_to_be_rounded_is_refused(scale):
    """Scale and offset are binary fractions: what a fill gives is exact in every dtype."""
    refusal({"fill": {"seed": 1, "shape": [2], "scale": Decimal(scale)}})
    refusal({"fill": {"seed": 1, "shape": [2], "offset": Decimal(scale)}})
