"""What honest implementations of softmax, attention, loss, block and decoder answer, by name.

Each function takes a generator, how many combinations to draw, and arrays of one dtype, and
yields (output, kernel, array); gradients take the upstream gradient ``g`` first.
"""

from __future__ import annotations

import numpy as np

from tests import honest_attention as attentions
from tests import honest_loss as losses
from tests import honest_model as models
from tests.adversarial import Answers
from tests.honest_kernels import SUMS
from tests.honest_recipes import ATTENTION, LOSS, MODEL, TABLE, attention_parts, recipes
from tests.honest_softmax import SOFTMAX_GRADIENTS, SOFTMAXES


def softmax_answers(x) -> Answers:
    for name, softmax in SOFTMAXES.items():
        yield "y", name, softmax(x)


def softmax_gradients(g, x) -> Answers:
    for name, softmax in SOFTMAXES.items():
        p = softmax(x)
        for by, gradient in SOFTMAX_GRADIENTS.items():
            for how, total in SUMS.items():
                yield "x", f"{name}, {by}, {how}", np.asarray(gradient(p, x, g, total))


def attention_answers(random, count, x, w_q, w_k, w_v, w_o, heads) -> Answers:
    for name, recipe in recipes(random, count, **ATTENTION):
        parts = attention_parts(recipe)
        yield "y", name, attentions.causal_attention(x, w_q, w_k, w_v, w_o, heads, parts)


def attention_gradients(random, count, g, x, w_q, w_k, w_v, w_o, heads) -> Answers:
    for name, recipe in recipes(random, count, **ATTENTION):
        parts = attention_parts(recipe)
        yield from called(
            name, attentions.causal_attention_vjp(g, x, w_q, w_k, w_v, w_o, heads, parts)
        )


def sublayer_answers(random, count, x, p, heads) -> Answers:
    for name, recipe in recipes(random, count, **MODEL):
        yield "y", name, models.attention_sublayer(x, p, heads, recipe)


def sublayer_gradients(random, count, g, x, p, heads) -> Answers:
    for name, recipe in recipes(random, count, **MODEL):
        yield from called(name, models.attention_sublayer_vjp(g, x, p, heads, recipe))


def block_answers(random, count, x, p, heads) -> Answers:
    for name, recipe in recipes(random, count, **MODEL):
        yield "y", name, models.block(x, p, heads, recipe)


def block_gradients(random, count, g, x, p, heads) -> Answers:
    for name, recipe in recipes(random, count, **MODEL):
        yield from called(name, models.block_vjp(g, x, p, heads, recipe))


def loss_answers(random, count, logits, targets) -> Answers:
    for name, recipe in recipes(random, count, **LOSS):
        yield "loss", name, models.cross_entropy(logits, targets, recipe)


def loss_gradients(random, count, g, logits, targets) -> Answers:
    for name, recipe in recipes(random, count, **LOSS):
        yield "logits", name, models.cross_entropy_vjp(g, logits, targets, recipe)


def embedding_gradients(random, count, g, tokens, sizes) -> Answers:
    for name, recipe in recipes(random, count, **TABLE, total=SUMS):
        yield from called(
            name, losses.embed_vjp(g, tokens, sizes, recipe["table"], recipe["total"])
        )


def decoder_loss_answers(random, count, tokens, targets, p, heads) -> Answers:
    for name, recipe in recipes(random, count, **MODEL):
        yield "loss", name, models.decoder_loss(tokens, targets, p, heads, recipe)


def decoder_loss_gradients(random, count, g, tokens, targets, p, heads) -> Answers:
    for name, recipe in recipes(random, count, **MODEL):
        yield from called(name, models.decoder_loss_vjp(g, tokens, targets, p, heads, recipe))


def called(name: str, found: dict[str, np.ndarray]) -> Answers:
    for output, array in found.items():
        yield output, name, array


def halved_weights(x, w_q, w_k, w_v, w_o, heads) -> Answers:
    """Dishonest: probabilities that were rounded to half precision."""

    def softmax(s: np.ndarray) -> np.ndarray:
        return SOFTMAXES["reciprocal"](s).astype(np.float16).astype(s.dtype)

    for name, recipe in recipes(np.random.default_rng(0), 4, **ATTENTION):
        parts = attention_parts({**recipe, "softmax": softmax, "tile": 0})
        yield "y", name, attentions.causal_attention(x, w_q, w_k, w_v, w_o, heads, parts)
