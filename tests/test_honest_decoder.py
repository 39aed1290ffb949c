"""Every honest sublayer, block and decoder stays within the bounds: one kernel at each place."""

import numpy as np
import pytest

from conformance.precision import DTYPES
from tests import adversarial_models as adversarial
from tests import honest_decoder as answers
from tests.adversarial import Draw, cast, outside, proof_of


def seeds(count):
    return pytest.mark.parametrize("seed", range(count))


def each_cast(dtype, parameters):
    return {name: value.astype(dtype) for name, value in parameters.items()}


@seeds(2)
def test_attention_sublayer(seed):
    """Norm, attention and trunk, composed of every form, lie within the bounds."""
    draw = Draw(23, seed)
    given = adversarial.attention(draw, 30)
    heads, x = given.pop("heads"), given.pop("x")
    given |= {
        name.strip("."): value for name, value in adversarial.norm(draw, "", x.shape[-1]).items()
    }
    g = draw.normal(*x.shape)
    proof = proof_of("attention_sublayer", x=x, heads=heads, **given)
    gradients = proof_of("attention_sublayer", g, x=x, heads=heads, **given)
    for dtype in DTYPES:
        p, (upstream, rows) = each_cast(dtype, given), cast(dtype, g, x)
        found = answers.sublayer_answers(draw.random, 16, rows, p, heads)
        assert outside(proof, dtype, found) == {}
        found = answers.sublayer_gradients(draw.random, 16, upstream, rows, p, heads)
        assert outside(gradients, dtype, found) == {}


@seeds(1)
def test_block(seed):
    """Two sublayers, the second on what the first gave; normal numbers never lack a verdict."""
    draw = Draw(24, seed)
    x = draw.normal(1 + seed, 3 - seed, 4)
    parameters, g = adversarial.block(draw, 4, 5), draw.normal(*x.shape)
    proof = proof_of("block", x=x, parameters=parameters, heads=2)
    gradients = proof_of("block", g, x=x, parameters=parameters, heads=2)
    for dtype in DTYPES:
        for bounds in (proof.bounds[dtype], gradients.bounds[dtype]):
            assert all(np.all(np.isfinite(bound)) for bound in bounds.values())
        p, (upstream, rows) = each_cast(dtype, parameters), cast(dtype, g, x)
        assert outside(proof, dtype, answers.block_answers(draw.random, 16, rows, p, 2)) == {}
        found = answers.block_gradients(draw.random, 16, upstream, rows, p, 2)
        assert outside(gradients, dtype, found) == {}


@seeds(1)
def test_decoder_loss(seed):
    """From tokens to the loss and back to every parameter."""
    draw = Draw(25, seed)
    given = adversarial.decoder(draw, 1)
    g, heads = np.asarray(draw.normal()), given["heads"]
    proof = proof_of("decoder_loss", ignore_index=-100, **given)
    gradients = proof_of("decoder_loss", g, ignore_index=-100, **given)
    for dtype in DTYPES:
        asked = (given["tokens"], given["targets"], each_cast(dtype, given["parameters"]), heads)
        found = answers.decoder_loss_answers(draw.random, 16, *asked)
        assert outside(proof, dtype, found) == {}
        found = answers.decoder_loss_gradients(draw.random, 16, *cast(dtype, g), *asked)
        assert outside(gradients, dtype, found) == {}
