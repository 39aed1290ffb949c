"""The messages between the kit and a child process: JSON lines over a pipe of their own.

The child says ``hello`` once, or ``refused``. Then every ``ask`` has a number, and is answered by
one ``answered`` and one ``done`` with the same number: ``done`` comes when nothing runs any more
that was forked for the question. The end of its pipe ends the child.

Arrays are written as numbers, so that any language can take part: ``{"dtype": "float32", "shape":
[2], "data": [1.5, "NaN"]}``, row-major, with the strings NaN, Infinity and -Infinity where JSON has
no number, and true and false in an array of bool. In the place of the numbers there may be the
base64 of their little-endian bytes: ``"data": "AADAPwAAwH8="``. A child that ``reads_bytes``
is asked so; what is answered so is always read.

``spec/schema/protocol.json`` is the JSON Schema of these messages; a test holds it to the types.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np

from conformance.harness.arrays import Array, pack, unpack
from conformance.model import Answer, Description, Layout, Mode, Question, Status
from conformance.precision import Dtype

#: Raised when a message changes its meaning. Both sides refuse another.
VERSION = 2

#: The largest message that is read, in bytes; ``MOST_NUMBERS`` of 24 characters fit in.
LARGEST = 64 * 2**20


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The child is ready: the version it speaks, the name and description of its backend.

    ``reads_bytes``: arrays may come to it as bytes.
    """

    version: int
    name: str
    description: Description
    reads_bytes: bool = False


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The child can't load its backend: what is wrong and what to do."""

    what: str
    hint: str = ""


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """A question: arrays and numbers by argument name, and arguments that are maps of arrays.

    Arrays travel row-major; ``layout`` says how the child is to lay them out in memory before it
    hands them over. A child whose language knows no strides ignores it.
    """

    number: int
    operation: str
    mode: Mode
    dtype: Dtype
    arguments: dict[str, Array | float | int | bool]
    maps: dict[str, dict[str, Array]] = {}
    outputs: list[str] = []
    upstream: dict[str, Array] = {}
    wrt: list[str] = []
    layout: Layout = "contiguous"


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="answered"):
    """The answer to the question of that number."""

    number: int
    status: Status
    outputs: dict[str, Array] = {}
    kind: str | None = None
    message: str = ""
    legible: bool = True
    changed: list[str] = []


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """Nothing more comes to the question of that number: what comes before this is its answer."""

    number: int


FromChild: TypeAlias = Hello | Refused | Answered | Done
ToChild: TypeAlias = Ask

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


def ask_message(number: int, question: Question, *, as_bytes: bool = False) -> Ask:
    """The message that carries ``question``, its arrays ``as_bytes`` or as numbers."""
    return Ask(
        number=number,
        operation=question.operation,
        mode=question.mode,
        dtype=question.dtype,
        arguments={
            name: pack(value, as_bytes=as_bytes) if isinstance(value, np.ndarray) else value
            for name, value in question.arguments.items()
            if not isinstance(value, dict)
        },
        maps={
            name: {inner: pack(item, as_bytes=as_bytes) for inner, item in value.items()}
            for name, value in question.arguments.items()
            if isinstance(value, dict)
        },
        outputs=list(question.outputs),
        upstream={
            name: pack(value, as_bytes=as_bytes) for name, value in question.upstream.items()
        },
        wrt=list(question.wrt),
        layout=question.layout,
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
        layout=message.layout,
    )


def answered_message(number: int, answer: Answer, *, as_bytes: bool = False) -> Answered:
    """The message that carries ``answer``, which has come through ``ask``."""
    return Answered(
        number=number,
        status=answer.status,
        outputs={name: pack(value, as_bytes=as_bytes) for name, value in answer.outputs.items()},
        kind=answer.kind,
        message=answer.message,
        legible=answer.legible,
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
        legible=message.legible,
        changed=tuple(message.changed),
    )
