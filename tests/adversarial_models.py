"""Adversarial arguments of softmax, attention, the loss, the block and the decoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.adversarial import Draw

Given = dict[str, Any]

#: Scores that have broken a softmax somewhere: n numbers of each kind.
SCORES = (
    lambda r, n: r.standard_normal(n),
    lambda r, n: r.uniform(-50, 50, n),
    lambda r, n: 1e-6 * r.standard_normal(n),
    lambda r, n: r.integers(-1, 2, n) * 4.0,
    lambda r, n: np.full(n, r.standard_normal()),
    lambda r, n: np.where(np.arange(n) == r.integers(n), 30, 0) + r.standard_normal(n),
    lambda r, n: np.sort(r.standard_normal(n)),
    lambda r, n: np.arange(n) * r.choice([0.01, 0.3, 2]),
    lambda r, n: 1e4 + r.standard_normal(n),
    lambda r, n: np.where(np.arange(n) % 2, 1, -1) * r.uniform(5, 50),
)


def scores(draw: Draw, rows: int, width: int) -> np.ndarray:
    chosen = draw.random.integers(len(SCORES), size=rows)
    return draw.kept(np.array([SCORES[which](draw.random, width) for which in chosen]))


def size(draw: Draw, *among: int) -> int:
    return int(draw.random.choice(among))


def square(draw: Draw, width: int, scales: tuple[float, ...]) -> np.ndarray:
    return draw.normal(width, width, scales=scales) / 2 ** (int(np.log2(width)) // 2)


def attention(draw: Draw, most: int = 160) -> Given:
    """x and the four weights; ``most`` limits B T d."""
    heads = size(draw, 1, 1, 2, 3)
    width = min(size(draw, 1, 2, 3, 4, 5, 8, 16), 16 // heads)
    d = heads * width
    length = min(size(draw, 1, 2, 3, 4, 5, 7, 9, 13, 17), max(1, most // d))
    batch = 1 if 2 * length * d > most else size(draw, 1, 2)
    x = trunk(draw, batch, length, d)
    sharp = (0.01, 1, 1, 1, 3, 6)
    weights = {name: square(draw, d, sharp) for name in ("w_q", "w_k")}
    weights |= {name: square(draw, d, (1, 1, 30)) for name in ("w_v", "w_o")}
    return {"x": x, **{k: draw.kept(w) for k, w in weights.items()}, "heads": heads}


def trunk(draw: Draw, batch: int, length: int, width: int) -> np.ndarray:
    """Ordinary rows, patterned rows, equal rows (ties among the scores) and tiny ones."""
    kind = size(draw, 0, 0, 1, 2, 3)
    shape = (batch, length, width)
    if kind == 1:
        return draw.patterned(batch * length, width, scales=(1, 0.1)).reshape(shape)
    if kind == 2:
        return np.broadcast_to(draw.normal(1, 1, width), shape).copy()
    return draw.normal(*shape, scales=(1e-6,) if kind == 3 else (1,))


def norm(draw: Draw, prefix: str, width: int) -> Given:
    gamma = draw.kept(1 + draw.normal(width, scales=(0.1, 1)))
    return {f"{prefix}.gamma": gamma, f"{prefix}.beta": draw.normal(width, scales=(0, 1))}


def block(draw: Draw, width: int, hidden: int, prefix: str = "") -> Given:
    found = norm(draw, "attention_norm", width)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        found[f"attention.{name}"] = draw.kept(square(draw, width, (1, 1, 2)))
    found |= norm(draw, "feed_forward_norm", width)
    found["feed_forward.w_1"] = draw.normal(width, hidden)
    found["feed_forward.b_1"] = draw.normal(hidden, scales=(1, 3))
    found["feed_forward.w_2"] = draw.normal(hidden, width)
    found["feed_forward.b_2"] = draw.normal(width, scales=(1, 10))
    return {prefix + name: value for name, value in found.items()}


def decoder(draw: Draw, blocks: int) -> Given:
    """Tokens, targets (some of them -100) and the parameters; the heads besides."""
    heads = size(draw, 1, 2)
    width = heads * size(draw, *((3, 4), (2, 3))[heads - 1])
    hidden, vocabulary = size(draw, 3, 5), size(draw, 2, 5, 7)
    batch, length = size(draw, 1, 2), size(draw, 1, 2, 3, 4)
    parameters = {
        "token_embedding": draw.normal(vocabulary, width),
        "position_embedding": draw.normal(length + 1, width),
    }
    for k in range(blocks):
        parameters |= block(draw, width, hidden, f"blocks.{k}.")
    parameters |= norm(draw, "final_norm", width)
    parameters["head"] = draw.normal(width, vocabulary, scales=(1, 10))
    tokens = draw.random.integers(0, vocabulary, (batch, length))
    targets = unscored(draw, draw.random.integers(0, vocabulary, (batch, length)))
    return {"tokens": tokens, "targets": targets, "parameters": parameters, "heads": heads}


def unscored(draw: Draw, targets: np.ndarray) -> np.ndarray:
    """Some targets, but never all, are -100."""
    kept = draw.random.uniform(size=targets.shape) < draw.random.choice([0.5, 1])
    kept.reshape(-1)[draw.random.integers(targets.size)] = True
    return np.where(kept, targets, -100)


def logits(draw: Draw) -> Given:
    """Logits [n, V] and targets, whose probability may be nearly 1 or nearly 0."""
    rows, width = size(draw, 1, 2, 3, 5, 9, 17), size(draw, 1, 2, 3, 5, 8, 16, 23, 40)
    z, targets = scores(draw, rows, width), draw.random.integers(0, width, rows)
    z[np.arange(rows), targets] += draw.random.choice([0, 0, 20, -20, 8], size=rows)
    return {"logits": draw.kept(z), "targets": unscored(draw, targets)}
