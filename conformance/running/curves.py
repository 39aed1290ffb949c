"""Keeps what a training recorded step by step as a table that any plotting program reads."""

from __future__ import annotations

import csv
import os
from itertools import count, repeat
from pathlib import Path
from typing import Any

import numpy as np

from conformance.model import Answer

#: The outputs with a number for each step, and those that have one for each parameter.
QUANTITIES = ("losses", "gradient_norms")

#: The columns: what is plotted stands in ``value`` over ``step``, one line for each of the others.
COLUMNS = ("case", "dtype", "call", "quantity", "step", "value")


class CurveFile:
    """Writes rows to a CSV file as they come; there is no file where no training was recorded."""

    def __init__(self, path: Path | None) -> None:
        """Nothing is written where ``path`` is None."""
        self._path = path
        self._file: Any = None

    def add(self, case: str, dtype: str, call: str, answer: Answer) -> None:
        """Append a row for each step of each quantity that ``answer`` has; steps count from 1."""
        if self._path is None:
            return
        for name, values in answer.outputs.items():
            known = name.partition(".")[0] in QUANTITIES
            if not known or values.ndim != 1 or values.dtype.kind != "f":
                continue
            self._open()
            same = map(repeat, (case, dtype, call, name))
            native = np.asarray(values, dtype=values.dtype.newbyteorder("="))
            self._rows.writerows(zip(*same, count(1), map(str, native), strict=False))

    def close(self, *, keep: bool) -> None:
        """Put the file in its place, or drop it; an older one is removed where there is none."""
        if self._path is None:
            return
        if self._file is not None:
            self._file.close()
            if keep:
                self._beside.replace(self._path)
            else:
                self._beside.unlink(missing_ok=True)
        elif keep:
            self._path.unlink(missing_ok=True)

    def _open(self) -> None:
        if self._file is None:
            assert self._path is not None
            self._beside = self._path.with_name(f".{self._path.name}.{os.urandom(4).hex()}")
            self._file = self._beside.open("x", encoding="utf-8", newline="")
            self._rows = csv.writer(self._file, lineterminator="\n")
            self._rows.writerow(COLUMNS)
