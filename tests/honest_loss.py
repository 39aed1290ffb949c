"""Honest cross-entropies and embeddings, and their gradients.

``z`` are the scored rows of logits [n, V], ``t`` their targets.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.honest_kernels import Array, Function, Product, Sum, sequential
from tests.honest_softmax import greatest, log_softmax, log_total, running

#: The loss of each row from logits and targets.
Losses = Callable[[Array, np.ndarray], Array]
#: The mean of n losses.
Mean = Callable[[Array], Array]
#: The gradient of the logits from p, logits, targets and the upstream gradient.
LossGradient = Callable[[Array, Array, np.ndarray, Array], Array]


def gathered(a: Array, t: np.ndarray) -> Array:
    return np.take_along_axis(a, t[:, None], axis=-1)[:, 0]


def one_hot(t: np.ndarray, z: Array) -> Array:
    return np.eye(z.shape[-1], dtype=z.dtype)[t]


def log_total_less_target(z: Array, t: np.ndarray) -> Array:
    return np.asarray(log_total(z)[:, 0] - gathered(z, t))


def centred(z: Array, t: np.ndarray) -> Array:
    c = z - greatest(z)
    return np.asarray(np.log(sequential(np.exp(c))) - gathered(c, t))


def log_softmax_gathered(z: Array, t: np.ndarray) -> Array:
    return np.asarray(-gathered(log_softmax(z), t))


def log_probability_gathered(z: Array, t: np.ndarray) -> Array:
    return np.asarray(-gathered(z - log_total(z), t))


def one_hot_product(z: Array, t: np.ndarray) -> Array:
    return sequential(-one_hot(t, z) * log_softmax(z))


def in_tiles(tile: int, power: Function = np.exp) -> Losses:
    """The vocabulary is read ``tile`` logits at a time, once."""

    def losses(z: Array, t: np.ndarray) -> Array:
        m, s = running(z, tile, sequential, power)
        return np.asarray((m + np.log(s))[:, 0] - gathered(z, t))

    return losses


LOSSES: dict[str, Losses] = {
    "log total less target": log_total_less_target,
    "centred": centred,
    "log-softmax gathered": log_softmax_gathered,
    "log probability gathered": log_probability_gathered,
    "one-hot product": one_hot_product,
    "tiles of 1": in_tiles(1),
    "tiles of 4": in_tiles(4),
}

# ------------------------------------------------------------------------------------------- mean


def divided(total: Sum) -> Mean:
    return lambda losses: np.asarray(total(losses) / len(losses))


def multiplied(losses: Array) -> Array:
    return np.asarray(sequential(losses) * (losses.dtype.type(1) / losses.dtype.type(len(losses))))


def running_mean(losses: Array) -> Array:
    mean = losses[0]
    for k in range(1, len(losses)):
        mean = mean + (losses[k] - mean) / (k + 1)
    return np.asarray(mean)


def weighted(losses: Array) -> Array:
    return sequential(losses * (losses.dtype.type(1) / losses.dtype.type(len(losses))))


def means(sums: dict[str, Sum]) -> dict[str, Mean]:
    return {
        **{f"divided {name}": divided(total) for name, total in sums.items()},
        "multiplied": multiplied,
        "running": running_mean,
        "weighted": weighted,
    }


# -------------------------------------------------------------------------------------- gradients


def share_last(p: Array, z: Array, t: np.ndarray, g: Array) -> Array:
    return np.asarray((p - one_hot(t, z)) * g / len(t))


def share_first(p: Array, z: Array, t: np.ndarray, g: Array) -> Array:
    return np.asarray((p - one_hot(t, z)) * (g / len(t)))


def share_multiplied(p: Array, z: Array, t: np.ndarray, g: Array) -> Array:
    return np.asarray(g * (z.dtype.type(1) / z.dtype.type(len(t))) * (p - one_hot(t, z)))


def target_taken_off(p: Array, z: Array, t: np.ndarray, g: Array) -> Array:
    """p g / n everywhere, and g / n less at the target."""
    share = g / len(t)
    found = np.asarray(p * share)
    found[np.arange(len(t)), t] -= share
    return found


def through_log_softmax(p: Array, z: Array, t: np.ndarray, g: Array) -> Array:
    """What differentiating the gather and the log-softmax gives."""
    moved = -one_hot(t, z) * (g / len(t))
    return np.asarray(moved - np.exp(log_softmax(z)) * sequential(moved)[:, None])


def through_the_largest(p: Array, z: Array, t: np.ndarray, g: Array) -> Array:
    """The logit that is subtracted from all is differentiated too: moved by what ought to be 0."""
    found = share_first(p, z, t, g)
    found[np.arange(len(t)), z.argmax(axis=-1)] += sequential(-found)
    return found


LOSS_GRADIENTS: dict[str, LossGradient] = {
    "share last": share_last,
    "share first": share_first,
    "share multiplied": share_multiplied,
    "target taken off": target_taken_off,
    "through log-softmax": through_log_softmax,
    "through the largest": through_the_largest,
}

# -------------------------------------------------------------------------------------- embedding


def embed(tokens: np.ndarray, table: Array, positions: Array) -> Array:
    return np.asarray(table[tokens] + positions[: tokens.shape[1]])


def added_in_place(g: Array, rows: np.ndarray, size: int, total: Sum) -> Array:
    found = np.zeros((size, g.shape[-1]), g.dtype)
    np.add.at(found, rows, g)
    return found


def by_segments(g: Array, rows: np.ndarray, size: int, total: Sum) -> Array:
    """Every row sums up the gradients of its own tokens."""
    found = np.zeros((size, g.shape[-1]), g.dtype)
    for row in np.unique(rows):
        found[row] = total(g[rows == row].T)
    return found


def by_one_hot(multiply: Product) -> Callable[[Array, np.ndarray, int, Sum], Array]:
    return lambda g, rows, size, total: multiply(np.eye(size, dtype=g.dtype)[rows].T, g)


TABLE_GRADIENTS: dict[str, Callable[[Array, np.ndarray, int, Sum], Array]] = {
    "added in place": added_in_place,
    "segments": by_segments,
    "one-hot product": by_one_hot(np.matmul),
}


def embed_vjp(
    g: Array, tokens: np.ndarray, sizes: tuple[int, int], gradient: Callable, total: Sum
) -> dict[str, Array]:
    batch, length, width = g.shape
    places = np.tile(np.arange(length), batch)
    rows = g.reshape(-1, width)
    return {
        "token_embedding": gradient(rows, tokens.reshape(-1), sizes[0], total),
        "position_embedding": gradient(rows, places, sizes[1], total),
    }
