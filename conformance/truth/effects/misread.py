"""Questions as they are read by code that takes memory for the array: mistakes of layout."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from conformance.model import Call, Case, Layout, Parameters, Question, Tensor
from conformance.questions.strides import GAP, of_place
from conformance.truth.faults import Fault, Reads
from conformance.truth.reference import Reference


def as_read(reference: Reference | type[Reference], case: Case) -> Case:
    """``case`` with the numbers that ``reference`` finds where those of the case lie.

    The same case for all but mistakes of layout. What a call takes from an earlier one is read
    rightly.
    """
    reads = _reads(reference)
    if reads is None or case.layout == "contiguous":
        return case
    calls = {name: _call(call, case.layout, reads) for name, call in case.calls.items()}
    return msgspec.structs.replace(case, calls=calls)


def question_as_read(reference: Reference, question: Question) -> Question:
    """``question`` with the numbers that ``reference`` finds where those of the question lie."""
    reads = _reads(reference)
    if reads is None or question.layout == "contiguous":
        return question
    return msgspec.structs.replace(
        question,
        arguments={
            name: _array(value, question.layout, place, reads)
            for place, (name, value) in enumerate(question.arguments.items())
        },
        upstream={
            name: _array(value, question.layout, place, reads)
            for place, (name, value) in enumerate(question.upstream.items(), 1)
        },
    )


def _reads(reference: Reference | type[Reference]) -> Reads | None:
    kind = reference if isinstance(reference, type) else type(reference)
    return kind.reads if issubclass(kind, Fault) else None


def _call(call: Call, layout: Layout, reads: Reads) -> Call:
    return msgspec.structs.replace(
        call,
        given={
            name: _tensor(value, layout, place, reads)
            for place, (name, value) in enumerate(call.given.items())
        },
        upstream={
            name: _tensor(value, layout, place, reads)
            for place, (name, value) in enumerate(call.upstream.items(), 1)
        },
    )


def _tensor(value: Any, layout: Layout, place: int, reads: Reads) -> Any:
    """``value``, the argument at ``place``, as it is read; see ``strides.of_place``."""
    if isinstance(value, Parameters):
        inner = {
            name: _tensor(each, layout, within, reads)
            for within, (name, each) in enumerate(value.tensors.items())
        }
        return msgspec.structs.replace(value, tensors=inner)
    if not isinstance(value, Tensor):
        return value
    places = reads(value.shape, of_place(layout, place)).reshape(-1).tolist()
    data = tuple(value.data[place] if place >= 0 else GAP for place in places)
    return msgspec.structs.replace(value, data=data)


def _array(value: Any, layout: Layout, place: int, reads: Reads) -> Any:
    if isinstance(value, dict):
        return {
            name: _array(item, layout, within, reads)
            for within, (name, item) in enumerate(value.items())
        }
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    places = reads(value.shape, of_place(layout, place))
    found = value.reshape(-1)[np.maximum(places, 0)]
    return np.where(places >= 0, found, np.array(GAP, value.dtype)).astype(value.dtype)
