"""How an explanation writes numbers: to the digits that matter, nested as their tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.truth.arithmetic.balls import NotProven, decimal

#: Digits shown of a quantity, and elements shown of a tensor, before the rest is left out.
_DIGITS = 12
_ELEMENTS = 12


def proven_text(values: np.ndarray) -> str:
    """Balls or whole numbers, to the digits that matter, nested as their shape."""
    flat = [number_text(value) for value in values.reshape(-1)]
    if len(flat) > _ELEMENTS:
        shown = ", ".join(flat[:_ELEMENTS])
        return f"{shown}, … {len(flat)} in all, shape {list(values.shape)}"
    return _nested(flat, values.shape)


def _nested(texts: Sequence[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return texts[0]
    if not texts:
        return f"nothing, shape {list(shape)}"
    step = len(texts) // shape[0]
    parts = [_nested(texts[i : i + step], shape[1:]) for i in range(0, len(texts), step)]
    return f"[{', '.join(parts)}]"


def number_text(value: Any) -> str:
    """One ball or whole number, to the digits that matter."""
    if isinstance(value, int) or value.is_integer():
        return str(value if isinstance(value, int) else value.unique_fmpz())
    try:
        return f"{decimal(value, _DIGITS):.{_DIGITS}g}"
    except NotProven:
        return "no value" if not value.is_finite() else "0 (to all digits)"


def plain_text(value: np.ndarray) -> str:
    """Floats or whole numbers as they are."""
    flat = [str(item) for item in value.reshape(-1)[:_ELEMENTS]]
    if value.size > _ELEMENTS:
        return f"{', '.join(flat)}, … {value.size} in all, shape {list(value.shape)}"
    return _nested(flat, value.shape)
