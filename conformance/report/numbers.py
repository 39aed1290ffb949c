"""Numbers for people: two digits, and more only where two would tell the wrong story."""

from __future__ import annotations

import math


def short(value: float, digits: int = 2) -> str:
    """A finite number in ``digits`` digits, or all the digits before the point up to 10,000."""
    if digits == 2 and 10 <= value < 1e4:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def share(ratio: float) -> str:
    """An error over its bound: ``12 %`` where it is allowed, ``2.5 x`` where it is not.

    Never rounded onto 1, which is where pass turns into fail. ``ratio`` may be infinite or NaN.
    """
    if not math.isfinite(ratio):
        return "NaN" if math.isnan(ratio) else "infinite"
    scaled, unit, edge = (100 * ratio, "%", 100) if ratio <= 1 else (ratio, "x", 1)
    texts = [short(scaled, digits) for digits in (2, 4, 7)] + [repr(float(scaled))]
    told = next(text for text in texts if scaled == edge or float(text) != edge)
    return f"{told} {unit}"


def share_of_bound(ratio: float) -> str:
    """``12 % of the bound``, ``6.6e+13 x the bound``: ``share`` for a sentence."""
    if math.isnan(ratio):
        return "NaN against the bound"
    if math.isinf(ratio):
        return "beyond any multiple of the bound"
    return f"{share(ratio)} {'of the bound' if ratio <= 1 else 'the bound'}"
