"""What travels between the kit and a child: all of the question, and nothing of the answer."""

from __future__ import annotations

import itertools
import json
import os
from decimal import Decimal
from typing import get_args

import jsonschema
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from conformance.backends.numpy import NumpyBackend
from conformance.errors import BackendError
from conformance.frozen import Truth
from conformance.harness import protocol, schema
from conformance.harness.arrays import MOST_NUMBERS, NUMBERS, Array, pack, unpack
from conformance.harness.ask import ask
from conformance.harness.process import ChildBackend
from conformance.harness.spawn import Spawned
from conformance.layout import SPEC
from conformance.model import Answer, Question, Relations, Values
from conformance.model.operations import Layout
from conformance.questions import question
from conformance.specification import load
from tests.running import Trace, vice

VALIDATOR = jsonschema.Draft202012Validator(json.loads((SPEC / "schema/protocol.json").read_text()))

calm = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def same(left, right):
    """Equal in dtype, shape and every bit, but that one NaN is as good as another."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind != "f":
        return left.tobytes() == right.tobytes()
    nan = np.isnan(left)
    zeros = np.zeros_like(left)
    return bool(np.all(nan == np.isnan(right))) and (
        np.where(nan, zeros, left).tobytes() == np.where(nan, zeros, right).tobytes()
    )


def same_values(left, right):
    """The same names with the same arrays, maps of arrays, or numbers of the same type."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_values(left[k], right[k]) for k in left)
    if isinstance(left, np.ndarray):
        return isinstance(right, np.ndarray) and same(left, right)
    return type(left) is type(right) and left == right


def there_and_back(message, decode):
    """The message on the other side; the line is valid against the schema on the way."""
    line = protocol.encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    VALIDATOR.validate(json.loads(line))
    return decode(line)


# --------------------------------------------------------------------------------------- arrays

numbers = arrays.arrays(
    st.sampled_from(sorted(NUMBERS)).map(np.dtype),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


@pytest.mark.parametrize("as_bytes", [False, True], ids=["numbers", "bytes"])
@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_the_extremes_of_every_dtype_arrive(name, as_bytes):
    """Signed zeros, subnormals, what is not finite, and the ends of every range."""
    dtype = np.dtype(name)
    if dtype.kind == "f":
        about = np.finfo(dtype)
        least = about.smallest_subnormal
        values = [0.0, -0.0, about.max, about.min, about.tiny, least, -least, about.eps,
                  1 + about.eps, np.nan, np.inf, -np.inf]  # fmt: skip
    elif dtype.kind == "b":
        values = [True, False]
    else:
        values = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0]
    given = np.array(values, dtype)
    for array in (given, given[::-1], given[:0], given[:0].reshape(0, 2), given[0], given[None]):
        outputs = {"y": pack(np.asarray(array), as_bytes=as_bytes)}
        packed = there_and_back(
            protocol.Answered(number=1, status="outputs", outputs=outputs),
            protocol.decode_from_child,
        )
        assert same(unpack(packed.outputs["y"]), np.asarray(array))


@calm
@given(numbers, st.booleans())
def test_every_array_arrives_bit_by_bit(array, as_bytes):
    """Whatever its dtype, shape and values, as numbers and as bytes."""
    line = msgspec.json.encode(pack(array, as_bytes=as_bytes))
    assert same(unpack(msgspec.json.decode(line, type=Array)), array)


def test_bytes_are_little_endian_row_by_row():
    """Whatever the order of the array in memory."""
    array = np.array([[1.5, np.nan], [2.5, -1.0]], ">f4").T
    packed = pack(array[:, 0], as_bytes=True)
    assert msgspec.json.encode(packed) == (b'{"dtype":"float32","shape":[2],"data":"AADAPwAAwH8="}')
    assert same(unpack(pack(array, as_bytes=True)), array.astype("<f4"))


@pytest.mark.parametrize(
    "array",
    [np.array([None, "a"]), np.zeros((2, 3), complex), np.array(["x", "yz"]), np.zeros((), "M8[s]"),
     np.zeros(2, np.longdouble), np.zeros(2, "V8"), np.zeros(1, "S3")],
    ids=lambda array: str(array.dtype),
)  # fmt: skip
def test_what_has_no_numbers_keeps_dtype_and_shape(array):
    """So that the verdict can say what came; the values are nobody's concern."""
    came = unpack(there_and_back(
        protocol.Answered(number=1, status="outputs", outputs={"y": pack(array)}),
        protocol.decode_from_child,
    ).outputs["y"])  # fmt: skip
    assert (came.dtype, came.shape) == (array.dtype, array.shape)


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [
        ("float64", [2], [1.0]),
        ("float64", [], []),
        ("float64", [0, 10**30], [1.0]),
        ("float64", [10**30], []),
        ("float64", [1] * 99, [1.0]),
        ("float64", [1], [True]),
        ("float32", [2], ["NaN", False]),
        ("int64", [1], [1.5]),
        ("int64", [1], [1.0]),
        ("int64", [1], ["NaN"]),
        ("int64", [1], [2**63]),
        ("uint8", [1], [-1]),
        ("int8", [1], [True]),
        ("bool", [1], [1]),
        ("bool", [2], b"\0\2"),
        ("float32", [2], b"\0" * 4),
        ("float32", [2], b"\0" * 12),
        ("float32", [2], b"\0" * 7),
        ("int64", [0, 10**30], b""),
        ("int64", [0, 2**70], b""),
        ("f4", [1], [1.0]),
        ("double", [1], [1.0]),
        (">f8", [1], [1.0]),
        ("float63", [1], [1.0]),
        ("", [1], []),
        ("(2,2)f8", [1], []),
        ("f8,f8", [1], []),
        ("U99999", [1], []),
        ("\ud800", [1], []),
        ("object", [MOST_NUMBERS + 1], []),
        ("object", [10**5, 10**30], []),
    ],
)
def test_parts_that_do_not_fit_together_are_no_array(dtype, shape, data):
    """A ValueError, which makes an error of the answer; never a crash of the kit."""
    with pytest.raises(ValueError, match=r".") as caught:
        unpack(Array(dtype=dtype, shape=shape, data=data))
    str(caught.value).encode()


def test_a_number_too_large_for_its_dtype_is_infinite():
    """A child in another language may write a double where a float32 is due."""
    came = unpack(Array(dtype="float32", shape=[2], data=[1e39, -1e39]))
    assert came.tolist() == [np.inf, -np.inf]


# ------------------------------------------------------------------------------------- messages

words = st.text(max_size=5)
named = st.dictionaries(words, numbers, max_size=2)
plain = (
    st.integers(-(2**53), 2**53) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
)
questions = st.builds(
    Question,
    operation=words,
    mode=st.sampled_from(["evaluate", "vjp"]),
    dtype=st.sampled_from(["float64", "float32"]),
    arguments=st.dictionaries(words, numbers | plain | named, max_size=3),
    outputs=st.lists(words, max_size=2).map(tuple),
    upstream=named,
    wrt=st.lists(words, max_size=2).map(tuple),
    layout=st.sampled_from(get_args(Layout)),
)
answers = st.builds(
    Answer,
    status=st.sampled_from(["outputs", "rejected", "unsupported", "error", "crash", "timeout"]),
    outputs=named,
    kind=st.none() | words,
    message=words,
    legible=st.booleans(),
    changed=st.lists(words, max_size=2).map(tuple),
)


@calm
@given(st.integers(0, 2**53), questions, st.booleans())
def test_every_question_arrives_as_it_was_asked(number, asked, as_bytes):
    """Arrays to the bit, numbers and flags in their own type, names in their order."""
    message = protocol.ask_message(number, asked, as_bytes=as_bytes)
    came = there_and_back(message, protocol.decode_to_child)
    assert came.number == number
    got = protocol.question_of(came)
    for field in set(Question.__struct_fields__) - {"arguments", "upstream"}:
        assert getattr(got, field) == getattr(asked, field)
    assert same_values(asked.arguments, got.arguments)
    assert same_values(asked.upstream, got.upstream)


@calm
@given(st.integers(0, 2**53), answers, st.booleans())
@example(1, Answer(status="outputs", outputs={"y": np.zeros(0)}), True)
def test_every_answer_arrives_as_it_was_given(number, answered, as_bytes):
    """Whatever the status: outputs, kind, message and what was changed."""
    message = protocol.answered_message(number, answered, as_bytes=as_bytes)
    came = there_and_back(message, protocol.decode_from_child)
    assert came.number == number
    got = protocol.answer_of(came)
    for field in set(Answer.__struct_fields__) - {"outputs"}:
        assert getattr(got, field) == getattr(answered, field)
    assert same_values(answered.outputs, got.outputs)


ANSWERED = '{"type": "answered", "number": 1, "status": "outputs"'
ARRAY = ANSWERED + ', "outputs": {"y": {"dtype": "float64", "shape": %s, "data": %s}}}'


def no_constant(name):
    """JSON has none, whatever the readers of some languages accept."""
    raise ValueError(name)


@pytest.mark.parametrize(
    "line",
    ["", "null", "{}", "[1]", '{"type": "goodbye"}', '{"type": "answered", "number": 1}',
     ANSWERED.replace("outputs", "fine") + "}", ANSWERED + "} {}", "[" * 99_999,
     ANSWERED + ', "outputs": {"y": [1.0]}}', ARRAY % ("[-1]", "[1.0]"), ARRAY % ("[1]", "[NaN]"),
     ARRAY % ("[1]", '["nan"]'), ARRAY % ("[1.5]", "[1.0]"), ARRAY % ('"1"', "[1.0]")],
)  # fmt: skip
def test_what_is_no_message_is_refused(line):
    """By the reader; and by the schema, where it is JSON at all."""
    with pytest.raises(msgspec.MsgspecError):
        protocol.decode_from_child(line.encode())
    try:
        plainly = json.loads(line, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return
    assert not VALIDATOR.is_valid(plainly)


def test_the_schema_in_the_specification_is_that_of_the_types():
    """`python -m conformance.harness.schema > spec/schema/protocol.json` brings it up to date."""
    assert (SPEC / "schema" / "protocol.json").read_text(encoding="utf-8") == schema.text()
    VALIDATOR.check_schema(VALIDATOR.schema)


# ------------------------------------------------------------------------------------ in a child


def test_a_child_speaks_the_protocol_of_the_schema(monkeypatch):
    """What is written by hand is understood, what it says is valid, and its end is the pipe's."""
    trace = Trace(monkeypatch)
    child = Spawned("numpy")
    try:
        with os.fdopen(os.dup(child.answers), "rb") as incoming:
            hello = json.loads(incoming.readline())
            VALIDATOR.validate(hello)
            assert (hello["type"], hello["version"], hello["name"]) == ("hello", 2, "numpy")
            os.write(child.questions, b'{"type": "ask", "number": 7, "operation": "gelu", "mode": '
                     b'"evaluate", "dtype": "float32", "outputs": ["y"], "arguments": {"x": '
                     b'{"dtype": "float32", "shape": [2], "data": [0, "NaN"]}}}\n')  # fmt: skip
            answered = json.loads(incoming.readline())
            VALIDATOR.validate(answered)
            assert answered["outputs"] == {
                "y": {"dtype": "float32", "shape": [2], "data": "AAAAAAAAwH8="}  # 0 and NaN
            }
            assert (answered["number"], answered["status"]) == (7, "outputs")
            done = json.loads(incoming.readline())
            VALIDATOR.validate(done)
            assert done == {"type": "done", "number": 7}
            os.close(child.questions)
            assert incoming.readline() == b""
            assert child.process.wait(10) == 0
    finally:
        child.end()
    assert trace.is_gone()


def test_another_version_of_the_protocol_is_refused(monkeypatch):
    """Before anything is asked."""
    monkeypatch.setattr(protocol, "VERSION", 3)
    with pytest.raises(BackendError, match="numpy speaks version 2 of the protocol, not 3"):
        ChildBackend("numpy")


def test_in_a_child_the_rooms_of_the_truth_are_closed():
    """An adapter that looks for the right answer finds none; importing is an ImportError."""
    asked = Question(operation="gelu", mode="evaluate", dtype="float64",
                     arguments={"x": np.zeros(1)}, outputs=("y",))  # fmt: skip
    with ChildBackend(vice("looks_for_the_truth")) as backend:
        answer = backend.answer(asked)
    assert (answer.status, answer.message) == ("outputs", "")


def all_questions(specification):
    """Every case and dtype, with every question that the kit would ask of NumPy."""
    for case, dtype in itertools.product(specification.cases.values(), ("float64", "float32")):
        operation, given = specification.operations[case.operation], {}
        for call in case.calls if dtype in case.dtypes else ():
            asked = question(case, operation, call, dtype, given)
            given[call] = ask(NumpyBackend(), asked) if asked else Answer(status="error")
            if asked:
                yield case, dtype, asked


def test_a_question_travels_without_its_answer():
    """No case id, title or clause, no expected value, no proven value, no bound, no tolerance."""
    specification, truth = load(), Truth(SPEC / "truth")
    seen = 0
    for case, dtype, asked in all_questions(specification):
        line = protocol.encode(protocol.ask_message(1, asked)).decode()
        message = json.loads(line)
        assert message.keys() == {"type", "number", "operation", "mode", "dtype", "arguments",
                                  "maps", "outputs", "upstream", "wrt", "layout"}  # fmt: skip
        for array in (*message["arguments"].values(), *message["upstream"].values()):
            assert not isinstance(array, dict) or array.keys() == {"dtype", "shape", "data"}
        assert message["arguments"].keys() | message["maps"].keys() == asked.arguments.keys()
        for word in (case.id, case.title, case.file, *case.clauses, *case.sources):
            assert not word or word not in line
        if isinstance(case.expectation, Values | Relations):
            for proven in truth.of(case).values():
                if proven.free or proven.dtype != "real":
                    continue  # nothing is due, or counts that a question may name
                secrets = [*map(digits, proven.text.flat), *map(repr, proven.bounds[dtype].flat)]
                given_numbers = numbers_in(message)
                for secret in secrets:
                    seen += 1
                    few = len(secret.strip("0.")) < 10  # a short number may be in any question
                    assert few or secret in given_numbers or secret not in line
    assert seen > 1000


def digits(text):
    """The first twelve significant digits of a proven value, as any notation has them."""
    return str(Decimal(str(text)).copy_abs().normalize())[:14]


def numbers_in(message):
    """The same of every number that is given."""
    return {
        digits(repr(number))
        for part in ("arguments", "upstream")
        for array in message[part].values()
        for number in (array["data"] if isinstance(array, dict) else [array])
    }
