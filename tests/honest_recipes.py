"""Which honest kernels are combined: drawn from a seed, since all combinations are too many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests import honest_attention as attentions
from tests import honest_gelu as gelus
from tests import honest_kernels as kernels
from tests import honest_loss as losses
from tests import honest_norm as norms
from tests import honest_softmax as softmaxes

Recipe = dict[str, Any]


def recipes(
    random: np.random.Generator, count: int, **parts: Mapping[str, Any]
) -> Iterator[tuple[str, Recipe]]:
    """``count`` times a name and one kernel for each part, each kernel as often as any other."""
    orders = {part: random.permutation(count) for part in parts}
    for k in range(count):
        chosen = {part: list(among)[orders[part][k] % len(among)] for part, among in parts.items()}
        yield ", ".join(chosen.values()), {part: parts[part][name] for part, name in chosen.items()}


ATTENTION: dict[str, Mapping[str, Any]] = {
    "product": kernels.PRODUCTS,
    "total": kernels.SUMS,
    "scaling": attentions.SCALINGS,
    "mask": attentions.MASKS,
    "softmax": softmaxes.SOFTMAXES,
    "gradient": softmaxes.SOFTMAX_GRADIENTS,
    "tile": {"all": 0, "tiles of 1": 1, "whole": 0, "tiles of 2": 2, "tiles of 4": 4},
    "base": {"base e": "e", "base 2": "2"},
    "projected": {"apart": "apart", "projected together": "together"},
}

LOSS: dict[str, Mapping[str, Any]] = {
    "losses": losses.LOSSES,
    "mean": losses.means(kernels.SUMS),
    "p": softmaxes.SOFTMAXES,
    "loss_gradient": losses.LOSS_GRADIENTS,
}

NORM: dict[str, Mapping[str, Any]] = {
    "statistics": norms.STATISTICS,
    "eps": norms.EPS,
    "norm": norms.NORMS,
    "norm_gradient": norms.INPUT_GRADIENTS,
    "normalised": norms.NORMALISED,
}

GELU: dict[str, Mapping[str, Any]] = {
    "gelu": gelus.GELUS,
    "argument": gelus.ARGUMENTS,
    "gelu_gradient": gelus.GRADIENTS,
    "cdf": gelus.CDFS,
    "density": gelus.DENSITIES,
}

TABLE: dict[str, Mapping[str, Any]] = {"table": losses.TABLE_GRADIENTS}

TRUNK: dict[str, Mapping[str, Any]] = {
    "trunk": {"trunk last": "last", "trunk first": "first"},
    "biased": {"bias last": "last", "bias first": "first"},
}

MODEL = {**ATTENTION, **LOSS, **NORM, **GELU, **TABLE, **TRUNK}


def attention_parts(recipe: Recipe) -> attentions.Parts:
    return attentions.Parts(**{part: recipe[part] for part in ATTENTION})
