"""The messages between the kit and a child process: JSON lines over a pipe of their own.

The child says ``hello`` once, or ``refused``. Then every ``ask`` has a number, and is answered by
one ``answered`` with the same number; ``stop`` ends the child. Arrays are written as numbers, so
that any language can take part: ``{"dtype": "float32", "shape": [2], "data": [1.5, "NaN"]}``,
row-major, with the strings NaN, Infinity and -Infinity where JSON has no number, and true and
false in an array of bool.

``spec/schema/protocol.json`` is the JSON Schema of these messages; a test holds it to the types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np

from conformance.harness.wording import tame
from conformance.model import Answer, Description, Mode, Question, Status
from conformance.precision import Dtype

#: Raised when a message changes its meaning. Both sides refuse another.
VERSION = 1

#: The largest message that is read, in bytes. The largest honest answer is far below.
LARGEST = 64 * 2**20

#: More numbers than any question asks for. Written out, they fit into one message.
MOST_NUMBERS = 2**21

_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

#: The dtypes whose values travel.
NUMBERS = frozenset(
    ["bool", "float16", "float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)

#: What may stand in the data of an array of a kind; any other would be changed on the way in.
_TYPES = {"b": {bool}, "i": {int}, "u": {int}, "f": {float, int, str}}

#: Other dtypes that are believed: NumPy would make an array of any size out of some names.
_OTHER = re.compile(r"[<>|]?[A-Za-z]+[0-9]{0,3}(\[[0-9A-Za-z]+\])?")


class Array(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An array in JSON: as many numbers as its shape has places.

    ``dtype`` is ``bool``, ``int8`` to ``int64``, ``uint8`` to ``uint64`` or ``float16`` to
    ``float64``. Under any other name, which is wrong for every answer, there is no data.
    """

    dtype: str
    shape: list[Annotated[int, msgspec.Meta(ge=0)]]
    data: list[bool | int | float | Literal["NaN", "Infinity", "-Infinity"]]


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The child is ready: the version it speaks, the name and description of its backend."""

    version: int
    name: str
    description: Description


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The child can't load its backend: what is wrong and what to do."""

    what: str
    hint: str = ""


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """A question: arrays and numbers by argument name, and arguments that are maps of arrays."""

    number: int
    operation: str
    mode: Mode
    dtype: Dtype
    arguments: dict[str, Array | float | int | bool]
    maps: dict[str, dict[str, Array]] = {}
    outputs: list[str] = []
    upstream: dict[str, Array] = {}
    wrt: list[str] = []


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="answered"):
    """The answer to the question of that number."""

    number: int
    status: Status
    outputs: dict[str, Array] = {}
    kind: str | None = None
    message: str = ""
    changed: list[str] = []


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """No more questions."""


FromChild: TypeAlias = Hello | Refused | Answered
ToChild: TypeAlias = Ask | Stop

_encoder = msgspec.json.Encoder()
_from_child = msgspec.json.Decoder(FromChild)
_to_child = msgspec.json.Decoder(ToChild)


def encode(message: FromChild | ToChild) -> bytes:
    """One message as one line."""
    return _encoder.encode(message) + b"\n"


def decode_from_child(line: bytes) -> FromChild:
    """The message of the child in ``line``. Raises msgspec.MsgspecError where it is none."""
    return _from_child.decode(line)


def decode_to_child(line: bytes) -> ToChild:
    """The message to the child in ``line``. Raises msgspec.MsgspecError where it is none."""
    return _to_child.decode(line)


def ask_message(number: int, question: Question) -> Ask:
    """The message that carries ``question``."""
    return Ask(
        number=number,
        operation=question.operation,
        mode=question.mode,
        dtype=question.dtype,
        arguments={
            name: pack(value) if isinstance(value, np.ndarray) else value
            for name, value in question.arguments.items()
            if not isinstance(value, dict)
        },
        maps={
            name: {inner: pack(item) for inner, item in value.items()}
            for name, value in question.arguments.items()
            if isinstance(value, dict)
        },
        outputs=list(question.outputs),
        upstream={name: pack(value) for name, value in question.upstream.items()},
        wrt=list(question.wrt),
    )


def question_of(message: Ask) -> Question:
    """The question that ``message`` carries."""
    arguments: dict[str, Any] = {
        name: unpack(value) if isinstance(value, Array) else value
        for name, value in message.arguments.items()
    }
    for name, items in message.maps.items():
        arguments[name] = {inner: unpack(item) for inner, item in items.items()}
    return Question(
        operation=message.operation,
        mode=message.mode,
        dtype=message.dtype,
        arguments=arguments,
        outputs=tuple(message.outputs),
        upstream={name: unpack(value) for name, value in message.upstream.items()},
        wrt=tuple(message.wrt),
    )


def answered_message(number: int, answer: Answer) -> Answered:
    """The message that carries ``answer``, which has come through ``ask``."""
    return Answered(
        number=number,
        status=answer.status,
        outputs={name: pack(value) for name, value in answer.outputs.items()},
        kind=answer.kind,
        message=answer.message,
        changed=list(answer.changed),
    )


def answer_of(message: Answered) -> Answer:
    """The answer that ``message`` carries.

    Raises ValueError or msgspec.ValidationError where its arrays or status are none.
    """
    return Answer(
        status=message.status,
        outputs={name: unpack(value) for name, value in message.outputs.items()},
        kind=message.kind,
        message=message.message,
        changed=tuple(message.changed),
    )


def pack(value: np.ndarray) -> Array:
    """An array as numbers. What has none (objects, complex) keeps dtype and shape alone."""
    if value.dtype.name not in NUMBERS:
        return Array(dtype=str(value.dtype), shape=list(value.shape), data=[])
    flat = value.reshape(-1)
    data: list[Any] = flat.tolist()  # floats of any width as doubles, exactly
    if value.dtype.kind == "f" and not np.isfinite(flat).all():
        data = [number if math.isfinite(number) else _name(number) for number in data]
    return Array(dtype=value.dtype.name, shape=list(value.shape), data=data)


def unpack(array: Array) -> np.ndarray:
    """The array that was packed. Raises ValueError where the parts don't fit together."""
    size = math.prod(array.shape)
    if array.dtype not in NUMBERS:
        if size > MOST_NUMBERS:
            raise ValueError(f"an array of the shape {array.shape}")
        return blank(_other(array.dtype), array.shape)
    dtype = np.dtype(array.dtype)
    data: list[Any] = array.data
    types = set(map(type, data))
    if not types <= _TYPES[dtype.kind]:
        raise ValueError(f"an array of {dtype} with something else in it")
    if len(data) != size:
        raise ValueError(f"{len(data)} numbers for the shape {array.shape}")
    if str in types:
        data = [_NAMES[item] if isinstance(item, str) else item for item in data]
    try:
        with np.errstate(over="ignore"):  # a number too large for its dtype is infinite there
            return np.array(data, dtype=dtype).reshape(array.shape)
    except OverflowError as error:  # an integer too large for its dtype is none
        raise ValueError(str(error)) from None


def blank(dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray:
    """An array that has a dtype and a shape, and no values: one item stands for all of them."""
    return np.broadcast_to(np.empty((), dtype=dtype), tuple(shape))


def _other(name: str) -> np.dtype[Any]:
    """A dtype without numbers that the judge understands."""
    try:
        if _OTHER.fullmatch(name):
            return np.dtype(name)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"an array of {tame(name)!r}")


def _name(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
