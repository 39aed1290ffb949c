"""What the bundled adapters refuse from attention to the loss of a decoder, and in what order."""

import numpy as np
import pytest

from conformance.backends.jax import JaxBackend
from conformance.backends.numpy import NumpyBackend
from conformance.backends.torch import TorchBackend
from tests.plain_decoder import BLOCK, MODEL, ask, outputs

BACKENDS = (NumpyBackend, TorchBackend, JaxBackend)
MODES = pytest.mark.parametrize("upstream", [None, 1.0], ids=["evaluate", "vjp"])

EMPTY = np.zeros((2, 0), int)
INT32 = np.ones((2, 3), np.int32)
MANY = np.ones((2, 10), int)  # one more than there are positions
REAL = np.ones((2, 3))
TOKENS = np.array([[0, 7, 3], [1, 1, 2]])  # every row from the first to the last is allowed
TARGETS = np.array([[7, -100, 0], [-100, 1, 2]])
ATTENTION = {"x": np.ones((2, 3, 6)), "heads": 2}
ATTENTION |= {name: np.ones((6, 6)) for name in ("w_q", "w_k", "w_v", "w_o")}
NORM = {"gamma": np.ones(6), "beta": np.ones(6), "eps": 1.0}
GIVEN = {
    "causal_attention": ATTENTION,
    "attention_sublayer": ATTENTION | NORM,
    "block": {
        "x": np.ones((2, 3, 6)),
        "parameters": {name: np.ones(shape) for name, shape in BLOCK.items()},
        "heads": 2,
        "eps": 1.0,
    },
    "embed": {
        "tokens": TOKENS,
        "token_embedding": np.ones((8, 6)),
        "position_embedding": np.ones((9, 6)),
    },
    "decoder": {
        "tokens": TOKENS,
        "parameters": {name: np.ones(shape) for name, shape in MODEL.items()},
        "heads": 2,
        "eps": 1.0,
    },
    "cross_entropy": {"logits": np.ones((2, 3, 8)), "targets": TARGETS, "ignore_index": -100},
}
GIVEN["decoder_loss"] = GIVEN["decoder"] | {"targets": TARGETS, "ignore_index": -100}


def at(array, index, value):
    changed = array.copy()
    changed[index] = value
    return changed


# the kind, then what is changed; the last of each list break two rules or more
HEADS = [
    *[("heads", {"heads": heads}) for heads in (4, 5, 7, 12, 0, -1, -2)],
]
INPUTS = [
    *[("input-rank", {"x": np.ones(shape)}) for shape in [(6,), (3, 6), (1, 2, 3, 6), ()]],
    *HEADS,
    ("input-rank", {"x": np.ones((3, 6)), "heads": 4}),
]
OF_TOKENS = [
    *[("token-rank", {"tokens": tokens}) for tokens in (TOKENS[0], TOKENS[None], TOKENS[0, 0])],
    *[("token-dtype", {"tokens": tokens}) for tokens in (INT32, REAL, REAL > 0)],
    ("no-tokens", {"tokens": EMPTY}),
    ("too-long", {"tokens": MANY}),
    *[("token-range", {"tokens": at(TOKENS, (1, 2), bad)}) for bad in (-1, 8, -100, 2**40)],
    ("token-rank", {"tokens": INT32[0]}),
    ("token-dtype", {"tokens": EMPTY.astype(np.int32)}),
    ("token-dtype", {"tokens": INT32 * 99}),
    ("too-long", {"tokens": MANY * 99}),
]
OF_TARGETS = [
    *[
        ("target-shape", {"targets": targets})
        for targets in (TARGETS[0], TARGETS.T, TARGETS[:, :2], TARGETS[..., None])
    ],
    *[("target-dtype", {"targets": targets}) for targets in (INT32, REAL)],
    ("no-scored-target", {"targets": TARGETS * 0 - 100}),
    *[("target-range", {"targets": at(TARGETS, (0, 0), bad)}) for bad in (-1, 8, -101, 100)],
    ("target-range", {"targets": TARGETS, "ignore_index": -1}),
    ("target-shape", {"targets": INT32[0]}),
    ("target-dtype", {"targets": INT32 * 0 - 100}),
]
REJECTIONS = {
    "causal_attention": INPUTS,
    "attention_sublayer": INPUTS,
    "block": INPUTS,
    "embed": OF_TOKENS,
    "decoder": [*OF_TOKENS, *HEADS, ("token-range", {"tokens": TOKENS + 8, "heads": 4})],
    "cross_entropy": OF_TARGETS,
    "decoder_loss": [
        *OF_TOKENS,
        *HEADS,
        *OF_TARGETS,
        ("token-range", {"tokens": TOKENS + 8, "heads": 4, "targets": TARGETS + 8}),
        ("heads", {"heads": 4, "targets": TARGETS + 8}),
        ("heads", {"heads": 4, "targets": INT32[0]}),
    ],
}


@pytest.fixture(scope="module", params=BACKENDS, ids=lambda cls: cls.name)
def backend(request):
    return request.param()


@pytest.mark.parametrize("operation", REJECTIONS)
@MODES
def test_the_first_rule_that_is_broken_is_named(backend, operation, upstream):
    """Kinds and their order are the specification's, before values and before gradients."""
    for kind, change in REJECTIONS[operation]:
        answer = ask(backend, operation, GIVEN[operation] | change, upstream)
        assert (answer.status, answer.kind) == ("rejected", kind), change


@pytest.mark.parametrize("operation", REJECTIONS)
def test_what_is_next_to_a_rejection_is_answered(backend, operation):
    """The arguments that the rejections change are themselves in order, to the last allowed id."""
    outputs(backend, operation, GIVEN[operation])


@pytest.mark.parametrize("operation", ["embed", "decoder"])
def test_as_many_tokens_as_positions_are_answered(backend, operation):
    """The longest sequence has a token at every position, the shortest has one."""
    for length in (1, 9):
        tokens = {"tokens": np.ones((2, length), int)}
        assert outputs(backend, operation, GIVEN[operation] | tokens)["y"].shape[1] == length


@pytest.mark.parametrize("operation", ["causal_attention", "decoder"])
def test_no_sequences_are_answered(backend, operation):
    """A batch of none is no mistake: there is nothing to say of it, and its gradients are zeros."""
    name = "x" if operation == "causal_attention" else "tokens"
    given = GIVEN[operation] | {name: GIVEN[operation][name][:0]}
    y = outputs(backend, operation, given)["y"]
    assert y.shape[:2] == (0, 3)
    gradients = outputs(backend, operation, given, y)
    assert not any(gradient.any() for gradient in gradients.values())
    assert len(gradients) == (5 if operation == "causal_attention" else len(MODEL))
