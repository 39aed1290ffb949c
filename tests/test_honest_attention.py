"""Every honest softmax, attention and loss stays within the bounds, wherever it rounds.

The inputs are adversarial and seeded, the combinations of kernels drawn. A bound that an honest
kernel exceeds is wrong: what is missing is an allowance, never a looser test.
"""

import numpy as np
import pytest

from conformance.precision import DTYPES
from tests import adversarial_models as adversarial
from tests import honest_decoder as answers
from tests import honest_libraries as libraries
from tests import honest_loss as losses
from tests import honest_softmax as softmaxes
from tests.adversarial import Draw, cast, outside, proof_of, ratios


def seeds(count):
    return pytest.mark.parametrize("seed", range(count))


def softmax_of(seed):
    draw = Draw(20, seed)
    x = adversarial.scores(draw, 3, adversarial.size(draw, 1, 2, 3, 5, 8, 16, 33, 40))
    return x, draw.normal(*x.shape)


@seeds(7)
def test_softmax(seed):
    """Two passes, powers of two, logarithms, running sums: all lie within the bound."""
    x, _ = softmax_of(seed)
    proof = proof_of("softmax", x=x)
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.softmax_answers(*cast(dtype, x))) == {}


@seeds(6)
def test_gradient_of_softmax(seed):
    """By the formula or step by step, with and without the largest: within the bound."""
    x, g = softmax_of(seed)
    proof = proof_of("softmax", g, x=x)
    for dtype in DTYPES:
        assert outside(proof, dtype, answers.softmax_gradients(*cast(dtype, g, x))) == {}


def test_gradients_of_softmax_and_loss_that_differentiate_the_largest():
    """The largest of many equal scores takes up the rounding of all their gradients.

    What it gets is minus their sum, which is zero in exact arithmetic and large beside its own
    small share of it.
    """
    x = np.array([np.full(40, 0.3), np.arange(40) / 100]).astype(np.float32).astype(np.float64)
    g = np.abs(Draw(31, 0).normal(*x.shape))
    proof = proof_of("softmax", g, x=x)
    targets = np.array([7, 21])
    loss = proof_of("cross_entropy", np.asarray(1.5), logits=x, targets=targets, ignore_index=-100)
    for dtype in DTYPES:
        found = answers.softmax_gradients(*cast(dtype, g, x))
        assert outside(proof, dtype, found) == {}
        random, (one, logits) = np.random.default_rng(0), cast(dtype, np.asarray(1.5), x)
        found = answers.loss_gradients(random, 18, one, logits, targets)
        assert outside(loss, dtype, found) == {}


def test_probabilities_from_a_large_log_total():
    """Beside a log-sum-exp of 1e4, a probability of nearly 1 has the error of its rounding."""
    x, targets = np.array([[1e4, 9990.1, 9991.3], [-50.3, -40.2, -60.1]]), np.array([0, 1])
    x = x.astype(np.float32).astype(np.float64)
    proof, one = proof_of("softmax", x=x), np.asarray(1.0)
    loss = proof_of("cross_entropy", one, logits=x, targets=targets, ignore_index=-100)
    for dtype in DTYPES:
        upstream, z = cast(dtype, one, x)
        assert outside(proof, dtype, answers.softmax_answers(z)) == {}
        found = answers.loss_gradients(np.random.default_rng(0), 24, upstream, z, targets)
        assert outside(loss, dtype, found) == {}


def attention_of(seed, most):
    draw = Draw(22, seed)
    given = adversarial.attention(draw, most)
    return given.pop("heads"), given, draw.normal(*given["x"].shape), draw.random


@seeds(3)
def test_causal_attention(seed):
    """Every scale, mask, softmax, sum and tile, and two libraries, lie within the bound."""
    heads, given, _, random = attention_of(seed, 60)
    proof = proof_of("causal_attention", heads=heads, **given)
    for dtype in DTYPES:
        arrays = cast(dtype, *given.values())
        assert outside(proof, dtype, answers.attention_answers(random, 26, *arrays, heads)) == {}
        found = libraries.attention_answers(heads, None, *arrays, jitted=seed == 0)
        assert outside(proof, dtype, found) == {}


@seeds(3)
def test_gradients_of_causal_attention(seed):
    """From stored probabilities, or from answers and log-sum-exps alone: within the bounds."""
    heads, given, g, random = attention_of(seed, 30)
    proof = proof_of("causal_attention", g, heads=heads, **given)
    for dtype in DTYPES:
        g, *arrays = cast(dtype, g, *given.values())
        found = answers.attention_gradients(random, 26, g, *arrays, heads)
        assert outside(proof, dtype, found) == {}
        found = libraries.attention_answers(heads, g, *arrays, jitted=seed == 0)
        assert outside(proof, dtype, found) == {}


def loss_of(seed):
    draw = Draw(21, seed)
    given = adversarial.logits(draw)
    return given["logits"], given["targets"], np.asarray(draw.normal()), draw.random


@seeds(6)
def test_cross_entropy(seed):
    """By log-sum-exp, by log-softmax, tile by tile, with every mean: within the bound."""
    logits, targets, _, random = loss_of(seed)
    proof = proof_of("cross_entropy", logits=logits, targets=targets, ignore_index=-100)
    for dtype in DTYPES:
        (z,) = cast(dtype, logits)
        assert outside(proof, dtype, answers.loss_answers(random, 28, z, targets)) == {}
        found = libraries.loss_answers("loss", None, z, targets, jitted=seed == 0)
        assert outside(proof, dtype, found) == {}


def test_cross_entropy_from_a_running_sum_that_is_rescaled_for_every_logit():
    """Each of many slowly rising logits rescales the sum, by an exponential of 3 ulp.

    Hundreds of errors of the same sign add up, which a sum in two passes doesn't have.
    """
    logits, targets = np.arange(300).reshape(1, 300) / 1024, np.array([299])
    proof = proof_of("cross_entropy", logits=logits, targets=targets, ignore_index=-100)
    rising = losses.in_tiles(1, softmaxes.generous)
    for dtype in DTYPES:
        found = rising(*cast(dtype, logits), targets)[0]
        assert outside(proof, dtype, [("loss", "rising", found)]) == {}


@seeds(4)
def test_gradient_of_cross_entropy(seed):
    """Probabilities less targets, in every order, and what libraries differentiate."""
    logits, targets, g, random = loss_of(seed)
    proof = proof_of("cross_entropy", g, logits=logits, targets=targets, ignore_index=-100)
    for dtype in DTYPES:
        upstream, z = cast(dtype, g, logits)
        found = answers.loss_gradients(random, 28, upstream, z, targets)
        assert outside(proof, dtype, found) == {}
        found = libraries.loss_answers("logits", upstream, z, targets, jitted=seed == 0)
        assert outside(proof, dtype, found) == {}


@seeds(4)
def test_embedding(seed):
    """Rows that meet are added in place, by segments or by one-hot products."""
    draw = Draw(26, seed)
    vocabulary, width, batch = (adversarial.size(draw, *among) for among in _EMBEDDING)
    tokens = draw.random.integers(0, vocabulary, (batch, 9))
    g = draw.patterned(batch * 9, width).reshape(batch, 9, width)
    tables = {
        "token_embedding": draw.normal(vocabulary, width),
        "position_embedding": draw.normal(11, width),
    }
    proof = proof_of("embed", g, tokens=tokens, **tables)
    for dtype in DTYPES:
        sizes = (vocabulary, 11)
        found = answers.embedding_gradients(draw.random, 15, *cast(dtype, g), tokens, sizes)
        assert outside(proof, dtype, found) == {}


_EMBEDDING = ((1, 3, 40), (1, 3, 8), (1, 2, 3))


def test_probabilities_of_a_narrower_type_are_outside():
    """Half precision in float32; in float64 single precision, as a library has it."""
    heads, given, _, _ = attention_of(0, 60)
    proof = proof_of("causal_attention", heads=heads, **given)
    arrays = cast("float32", *given.values())
    assert min(ratios(proof, "float32", answers.halved_weights(*arrays, heads)).values()) > 10
    found = libraries.jax_library_attention(heads, *given.values())
    assert min(ratios(proof, "float64", found).values()) > 1e4
