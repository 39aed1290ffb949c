"""The answers of a run are kept in one file, which grows in the place of memory."""

from __future__ import annotations

import gc
import struct
import tracemalloc
from threading import Event

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from conformance.backends.numpy import NumpyBackend
from conformance.errors import UsageError
from conformance.harness.arrays import NUMBERS
from conformance.harness.connection import InProcess
from conformance.model import Answer
from conformance.running.answers import AnswerFile, read_answers
from conformance.running.session import Session
from conformance.specification import load
from tests.builders import answer, call, case, proven


def test_the_file_is_one_array_of_messagepack(tmp_path):
    """Any program that reads MessagePack reads it whole; the numbers are little-endian."""
    path = tmp_path / "made" / "mine.answers.msgpack"
    with AnswerFile(path) as file:
        file.add("gelu/pair", "float64", "", answer(1.5, -0.0))
        file.add("gelu/pair", "float32", "a", Answer(status="rejected", kind="k", message="no"))
    first, second = msgspec.msgpack.decode(path.read_bytes())
    data = struct.pack("<2d", 1.5, -0.0)
    assert first == {
        "case": "gelu/pair", "dtype": "float64", "call": "", "status": "outputs", "kind": None,
        "message": "", "outputs": {"y": {"dtype": "<f8", "shape": [2], "data": data}},
    }  # fmt: skip
    assert second == {
        "case": "gelu/pair", "dtype": "float32", "call": "a", "status": "rejected", "kind": "k",
        "message": "no", "outputs": {},
    }  # fmt: skip


@settings(derandomize=True, deadline=None)
@given(
    arrays.arrays(
        st.sampled_from(sorted(NUMBERS)).map(np.dtype)
        | st.sampled_from([np.dtype(">f8"), np.dtype(">i4")]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    )
)
def test_what_is_kept_is_read_again_to_the_bit(tmp_path_factory, array):
    """Of any dtype and shape, whatever the byte order."""
    path = tmp_path_factory.getbasetemp() / "any.msgpack"
    with AnswerFile(path) as file:
        file.add("a/b", "float64", "", Answer(outputs={"y": array}))
    (record,) = read_answers(path)
    kept = record["outputs"]["y"]
    assert (kept.dtype.name, kept.shape) == (array.dtype.name, array.shape)
    native = array.astype(array.dtype.newbyteorder("="))
    assert kept.astype(kept.dtype.newbyteorder("=")).tobytes() == native.tobytes()


@pytest.mark.parametrize("dtype", ["O", "c16", "U3", "M8[s]"])
def test_what_has_no_numbers_is_kept_without_them(tmp_path, dtype):
    """Dtype and shape can be read again; a huge array of objects costs nothing."""
    array = np.broadcast_to(np.empty((), dtype), (10**4, 10**4))
    with AnswerFile(tmp_path / "a.msgpack") as file:
        file.add("a/b", "float64", "", Answer(outputs={"y": array}))
    (record,) = read_answers(tmp_path / "a.msgpack")
    assert record["outputs"]["y"].dtype == np.dtype(dtype)
    assert record["outputs"]["y"].shape == (10**4, 10**4)
    assert (tmp_path / "a.msgpack").stat().st_size < 1000


def test_the_file_is_put_in_its_place_whole_or_not_at_all(tmp_path):
    """While it is written, and when writing it ends badly, the earlier one stays as it was."""
    path = tmp_path / "a.msgpack"
    path.write_bytes(b"earlier")
    with pytest.raises(KeyError), AnswerFile(path) as file:
        file.add({}["no case"], "float64", "", answer(1.0))
    assert [each.name for each in tmp_path.iterdir()] == ["a.msgpack"]
    with AnswerFile(path) as file:
        file.add("a/b", "float64", "", answer(1.0))
        assert path.read_bytes() == b"earlier"
    assert len(list(read_answers(path))) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["a.msgpack"]


def test_a_record_that_was_cut_short_is_left_out(tmp_path):
    """An interrupt may come in the middle of writing one; the file is valid all the same."""
    path = tmp_path / "a.msgpack"
    with AnswerFile(path) as file:
        file.add("a/whole", "float64", "", answer(1.0))
        file._file.write(b"\x87\xa4case\xa6a/half")
    (record,) = read_answers(path)
    assert record["case"] == "a/whole"


@pytest.mark.parametrize("data", [None, b"", b"\x93\x01", b"\x91\x01", b"\x91\x80", b"\xc1" * 9])
def test_what_is_no_file_of_answers_is_told(tmp_path, data):
    """A mistake of the user, who has named the wrong folder."""
    path = tmp_path / "a.msgpack"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match=r"a\.msgpack"):
        list(read_answers(path))


def test_memory_does_not_grow_with_the_answers(tmp_path):
    """Three times as many cases take more room for their verdicts alone, not for their answers."""
    size, few = 2000, 40
    wide = case("residual_add", calls={"": call(x=[1] * size, increment=[2] * size)})
    truth = {("", "y"): proven(["3"] * size, 1e-9)}

    def peak(cases):
        with AnswerFile(tmp_path / "a.msgpack") as file:
            plan = [(wide, "float64")] * cases
            session = Session([InProcess(NumpyBackend())], plan, load(), file, Event())
            session.shares[0].truth.of = lambda _case: truth
            gc.collect()
            tracemalloc.start()
            (task,) = session.tasks({}, lambda *_: None)
            task()
            verdicts = session.verdicts()
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert [each.verdict for each in verdicts] == ["pass"] * cases
        assert (tmp_path / "a.msgpack").stat().st_size > cases * size * 8
        return found

    peak(few)  # whatever is loaded the first time
    assert peak(3 * few) - peak(few) < 2 * few * size * 8 / 10
