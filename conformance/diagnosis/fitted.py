"""Which epsilon a wrong layer normalisation has used, where one constant gives the whole answer."""

from __future__ import annotations

import numpy as np

from conformance.frozen import CaseTruth
from conformance.model import Answer, Question

#: An epsilon that is known no better than this, relatively, is not told.
_KNOWN = 0.01


def fitted_epsilon(truth: CaseTruth, answer: Answer, question: Question) -> float | None:
    """The epsilon, to three digits, that gives the output of a layer normalisation.

    From y = gamma c / sqrt(v + e) + beta, solved for e at the element where the rounding of y
    matters least; None for other questions, and where that e does not give all of y.
    """
    given = question.arguments
    right, y = truth.get(("", "y")), answer.outputs.get("y")
    asked = question.operation == "layer_norm" and question.mode == "evaluate"
    if not asked or right is None or not isinstance(y, np.ndarray) or y.shape != right.shape:
        return None
    bound = right.bounds[question.dtype]
    x, gamma, beta = (np.asarray(given[name], np.float64) for name in ("x", "gamma", "beta"))
    if not x.size or not np.all(np.isfinite(y)) or not np.all(np.isfinite(bound)):
        return None
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        total = np.square(gamma * centred / (y - beta))
        found = total - variance
        doubt = np.abs(2 * bound / (y - beta) * total / found)
    doubt = np.where(np.isfinite(doubt) & (found > 0), doubt, np.inf)
    best = np.unravel_index(int(np.argmin(doubt)), doubt.shape)
    if not doubt[best] <= _KNOWN:
        return None
    epsilon = float(f"{found[best]:.3g}")
    again = gamma * centred / np.sqrt(variance + epsilon) + beta
    slack = np.abs(again - beta) * np.abs(found[best] - epsilon) / (variance + epsilon)
    return epsilon if np.all(np.abs(again - y) <= 2 * bound + slack) else None
