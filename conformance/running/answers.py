"""Keeps the answers of a run in a file, as they come, so that memory does not grow with them.

The file is one MessagePack array of maps: ``case``, ``dtype``, ``call``, ``status``, ``kind``,
``message`` and ``outputs``, a map of names to ``{dtype, shape, data}``: NumPy's name of the dtype
and the little-endian bytes, row-major. What has no numbers (objects, text, complex) has no bytes.
Beside it, ``NAME.training.csv`` has what a training recorded step by step.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np

from conformance.errors import UsageError
from conformance.harness.arrays import blank, number_name
from conformance.model import Answer
from conformance.report.files import CURVES
from conformance.running.curves import CurveFile


class AnswerFile:
    """Writes records to a file in the folder of ``path``, put in its place when all went well."""

    def __init__(self, path: Path | None) -> None:
        """No file at all where ``path`` is None. Raises UsageError where it can't be written."""
        self._path = path
        self._encoder = msgspec.msgpack.Encoder()
        self._lock = Lock()
        self._whole = (0, 0)  # how many records are written whole, and where the last one ends
        self._file: Any = None
        self._curves = CurveFile(None if path is None else curves_path(path))
        if path is not None:
            self._beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._beside.open("xb")
            except OSError as error:
                message = f"reports can't be written to {path.parent}: {error.strerror}"
                raise UsageError(message, "name another folder with --out") from None
            self._file.write(_array_header(0))
            self._whole = (0, self._file.tell())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        count, end = self._whole
        self._file.truncate(end)  # an interrupt may have left a part of a record
        self._file.seek(0)
        self._file.write(_array_header(count))
        self._file.close()
        self._curves.close(keep=kind is None)
        if kind is None:
            assert self._path is not None
            self._beside.replace(self._path)
        else:
            self._beside.unlink(missing_ok=True)

    def add(self, case: str, dtype: str, call: str, answer: Answer) -> None:
        """Append the answer to one call of a case; from several threads, one after the other."""
        if self._file is None:
            return
        record = {
            "case": case,
            "dtype": dtype,
            "call": call,
            "status": answer.status,
            "kind": answer.kind,
            "message": answer.message,
            "outputs": {name: _packed(value) for name, value in answer.outputs.items()},
        }
        with self._lock:
            data = self._encoder.encode(record)
            count, end = self._whole
            self._file.write(data)
            self._whole = (count + 1, end + len(data))
            self._curves.add(case, dtype, call, answer)


def curves_path(path: Path) -> Path:
    """Where the curves lie beside the answers ``NAME.answers.msgpack``."""
    return path.with_name(f"{path.name.removesuffix('.answers.msgpack')}{CURVES}")


def read_answers(path: Path) -> Iterator[dict[str, Any]]:
    """The records of the file ``path``, with ``outputs`` as arrays again.

    Raises UsageError where it can't be read, or was not written by this class.
    """
    try:
        for record in msgspec.msgpack.decode(path.read_bytes()):
            outputs = {name: _unpacked(packed) for name, packed in record["outputs"].items()}
            yield {**record, "outputs": outputs}
    except OSError as error:
        raise UsageError(f"the answers {path} can't be read: {error.strerror}") from None
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{path} is no file of answers: {error}") from None


def _array_header(count: int) -> bytes:
    """MessagePack's ``array 32``, whose length can be filled in at the end."""
    return struct.pack(">BI", 0xDD, count)


def _packed(value: np.ndarray) -> dict[str, Any]:
    name = value.dtype.str.replace(">", "<")
    raw = b""
    if number_name(value.dtype):
        raw = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
    return {"dtype": name, "shape": list(value.shape), "data": raw}


def _unpacked(packed: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(packed["dtype"])
    if not number_name(dtype):
        return blank(dtype, packed["shape"])
    return np.frombuffer(packed["data"], dtype).reshape(packed["shape"])
