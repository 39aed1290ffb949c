"""The operations of the decoder once more in float64, written without a look at the adapters.

Loops over heads and positions, each query with the keys that it may see and no mask; no shift in
softmax; the loss position by position. Gradients come from values alone, by differences.
"""

from __future__ import annotations

import math

import numpy as np

from conformance import Question

_ERF = np.vectorize(math.erf, otypes=[np.float64])

B, T, HEADS, D, F, V, C = 4, 5, 2, 6, 7, 8, 9
VECTOR, MATRIX = (D,), (D, D)
BLOCK = {
    "attention_norm.gamma": VECTOR,
    "attention_norm.beta": VECTOR,
    **{f"attention.{name}": MATRIX for name in ("w_q", "w_k", "w_v", "w_o")},
    "feed_forward_norm.gamma": VECTOR,
    "feed_forward_norm.beta": VECTOR,
    "feed_forward.w_1": (D, F),
    "feed_forward.b_1": (F,),
    "feed_forward.w_2": (F, D),
    "feed_forward.b_2": (D,),
}
MODEL = {
    "token_embedding": (V, D),
    "position_embedding": (C, D),
    **{f"blocks.{k}.{name}": shape for k in range(2) for name, shape in BLOCK.items()},
    "final_norm.gamma": VECTOR,
    "final_norm.beta": VECTOR,
    "head": (D, V),
}
WEIGHTS = {"w_q": MATRIX, "w_k": MATRIX, "w_v": MATRIX, "w_o": MATRIX}
X, TOKENS = (B, T, D), ("below", V - 2, (B, T))
TARGETS = ("targets",)
SHAPES = {
    "softmax": {"x": (3, 4)},
    "causal_attention": {"x": X, **WEIGHTS, "heads": HEADS},
    "attention_sublayer": {"x": X, "gamma": VECTOR, "beta": VECTOR, **WEIGHTS,
                           "heads": HEADS, "eps": 0.25},
    "block": {"x": X, "parameters": BLOCK, "heads": HEADS, "eps": 0.25},
    "embed": {"tokens": TOKENS, "token_embedding": (V, D), "position_embedding": (C, D)},
    "decoder": {"tokens": TOKENS, "parameters": MODEL, "heads": HEADS, "eps": 0.25},
    "cross_entropy": {"logits": (B, T, V), "targets": TARGETS, "ignore_index": -100},
    "decoder_loss": {"tokens": TOKENS, "targets": TARGETS, "parameters": MODEL,
                     "heads": HEADS, "eps": 0.25, "ignore_index": -100},
}  # fmt: skip


# ------------------------------------------------------------------------------------ questions


def filled(operation, seed=7):
    """Arguments with uneven values for an operation of SHAPES."""
    draw = np.random.default_rng(seed)

    def one(shape):
        if isinstance(shape, dict):
            return {name: one(inner) for name, inner in shape.items()}
        if shape == TARGETS:  # an uneven number of them is left out
            targets = draw.integers(0, V, (B, T))
            targets[0, 3:] = targets[1, 1:3] = targets[3, 4] = -100
            return targets
        if isinstance(shape, tuple) and shape[0] == "below":
            return draw.integers(0, shape[1], shape[2])
        return draw.normal(0, 0.5, shape) if isinstance(shape, tuple) else shape

    return one(SHAPES[operation])


def real(arguments):
    """What can be differentiated: real arrays, parameters by their own names."""
    named = {**arguments, **arguments.get("parameters", {})}
    return {name: item for name, item in named.items()
            if isinstance(item, np.ndarray) and item.dtype.kind == "f"}  # fmt: skip


def cast(arguments, dtype):
    """The arguments with their real arrays in ``dtype``."""
    return {
        name: cast(item, dtype) if isinstance(item, dict)
        else item.astype(dtype) if isinstance(item, np.ndarray) and item.dtype.kind == "f"
        else item
        for name, item in arguments.items()
    }  # fmt: skip


def ask(backend, operation, arguments, upstream=None, dtype="float64", wrt=None):
    """The answer to one question; with ``upstream`` the question is for gradients."""
    given = cast(arguments, dtype)
    if upstream is None:
        asked = {"mode": "evaluate", "outputs": ("y",)}
    else:
        wrt = tuple(real(arguments)) if wrt is None else wrt
        asked = {"mode": "vjp", "upstream": {"y": np.asarray(upstream, dtype)}, "wrt": wrt}
    return backend.answer(Question(operation=operation, dtype=dtype, arguments=given, **asked))


def outputs(*question, **more):
    answer = ask(*question, **more)
    assert answer.status == "outputs", answer.message
    return answer.outputs


# ----------------------------------------------------------------------------------- operations


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1)[..., None]


def layer_norm(x, gamma, beta, eps):
    return gamma * (x - x.mean(-1)[..., None]) / np.sqrt(x.var(-1)[..., None] + eps) + beta


def causal_attention(x, w_q, w_k, w_v, w_o, heads):
    joined = np.empty_like(x)
    size = x.shape[-1] // heads
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        for t in range(x.shape[1]):
            past = x[:, : t + 1]
            scores = np.einsum("bi,ih,sj,bkj,sh->bk", x[:, t], w_q[:, own], np.eye(x.shape[-1]),
                               past, w_k[:, own]) / math.sqrt(size)  # fmt: skip
            joined[:, t, own] = np.einsum("bk,bki,ih->bh", softmax(scores), past, w_v[:, own])
    return np.einsum("bti,io->bto", joined, w_o)


def attention_sublayer(x, gamma, beta, w_q, w_k, w_v, w_o, heads, eps):
    return x + causal_attention(layer_norm(x, gamma, beta, eps), w_q, w_k, w_v, w_o, heads)


def block(x, parameters, heads, eps):
    p = parameters
    weights = [p[f"attention.{name}"] for name in ("w_q", "w_k", "w_v", "w_o")]
    norm = p["attention_norm.gamma"], p["attention_norm.beta"]
    u = attention_sublayer(x, *norm, *weights, heads, eps)
    inner = layer_norm(u, p["feed_forward_norm.gamma"], p["feed_forward_norm.beta"], eps)
    inner = np.einsum("bti,if->btf", inner, p["feed_forward.w_1"]) + p["feed_forward.b_1"]
    inner = inner * (1 + _ERF(inner / math.sqrt(2))) / 2
    return u + np.einsum("btf,fo->bto", inner, p["feed_forward.w_2"]) + p["feed_forward.b_2"]


def embed(tokens, token_embedding, position_embedding):
    return np.array([
        [token_embedding[token] + position_embedding[t] for t, token in enumerate(row)]
        for row in tokens
    ])  # fmt: skip


def decoder(tokens, parameters, heads, eps):
    p = parameters
    x = embed(tokens, p["token_embedding"], p["position_embedding"])
    for k in range(2):
        inner = {name: p[f"blocks.{k}.{name}"] for name in BLOCK}
        x = block(x, inner, heads, eps)
    x = layer_norm(x, p["final_norm.gamma"], p["final_norm.beta"], eps)
    return np.einsum("bti,iv->btv", x, p["head"])


def cross_entropy(logits, targets, ignore_index):
    losses = [-math.log(softmax(logits[place])[target])
              for place, target in np.ndenumerate(targets) if target != ignore_index]  # fmt: skip
    return math.fsum(losses) / len(losses)


def decoder_loss(tokens, targets, parameters, heads, eps, ignore_index):
    return cross_entropy(decoder(tokens, parameters, heads, eps), targets, ignore_index)


def slope(operation, arguments, upstream, name, direction):
    """The change of <upstream, output> along ``direction`` of one argument or parameter.

    Differences over one and two steps of 1/1024, combined so that what is left is of fourth order.
    """

    def at(step):
        def moved(items):
            return {
                key: moved(item) if isinstance(item, dict)
                else item + step / 1024 * direction if key == name else item
                for key, item in items.items()
            }  # fmt: skip

        return np.sum(upstream * globals()[operation](**moved(arguments)))

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) * 1024 / 12
