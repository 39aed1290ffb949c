"""What a weaker check of a decoder can't see: the fault passes it and is there all the same."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.faults import catalogue
from conformance.truth.proof.evaluate import evaluate
from conformance.truth.reference import Reference
from tests.builders import OPERATIONS

FAULTS = catalogue()
TOKENS = np.array([[1, 4, 1], [2, 0, 4]])
TARGETS = np.array([[4, 1, 3], [0, 4, 2]])
RAGGED = np.array([[4, -100, 3], [0, -100, -100]])

SIZES = {"V": 5, "C": 4, "f": 7}


def parameters(blocks=2, width=6, **changed):
    """Random arrays for every parameter of a decoder, some of them ``changed``."""
    generator = np.random.default_rng(7)
    found = {}
    for name, shape in OPERATIONS["decoder"].arguments["parameters"].shapes.items():
        size = [{**SIZES, "d": width}[symbol] for symbol in shape.strip("[]").split(", ")]
        for k in range(blocks) if "K" in name else [0]:
            found[name.replace("K", str(k))] = generator.normal(size=size)
    assert changed.keys() <= found.keys()
    return {name: np.full_like(array, changed.get(name, array)) for name, array in found.items()}


def model(given, tokens=TOKENS, targets=TARGETS):
    """The arguments of ``decoder_loss``."""
    return {"tokens": tokens, "targets": targets, "parameters": given, "heads": 3,
            "eps": np.array(1e-5), "ignore_index": -100}  # fmt: skip


def asked(name, operation, given, upstream=None):
    """What the fault ``name``, or the reference, gives: the output, or gradients by name."""
    reference = FAULTS[name]() if name else Reference()
    tape, (output,) = Tape(Doubles()), OPERATIONS[operation].outputs
    arguments = {key: _node(tape, value) for key, value in given.items()}
    named = arguments.get("parameters", arguments)
    wrt = tuple(key for key in named if upstream is not None and key != "eps")
    seed = {} if upstream is None else {output: tape.floats(np.array(upstream))}
    mode = "evaluate" if upstream is None else "vjp"
    found = evaluate(reference, tape, operation, mode, arguments, seed, wrt, output)
    return {key: node.value for key, node in found.items()}


def _node(tape, value):
    if isinstance(value, dict):
        return {name: tape.floats(array) for name, array in value.items()}
    real = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return tape.floats(value) if real else value


def blind(name, operation, given, upstream=None):
    """Whether the fault ``name`` gives what the reference gives."""
    right, wrong = (asked(each, operation, given, upstream) for each in (None, name))
    return right.keys() == wrong.keys() and all(
        right[key].shape == wrong[key].shape and np.allclose(right[key], wrong[key], atol=1e-12)
        for key in right
    )


@pytest.mark.parametrize(
    "name",
    ["only-last-block", "only-first-block", "blocks-reversed", "first-block-repeated",
     "last-block-repeated", "blocks-in-parallel", "first-blocks-constant"],
)  # fmt: skip
def test_one_block_hides_how_blocks_are_joined(name):
    """With a single block the first is the last, in values and gradients (C-33 to C-36)."""
    assert blind(name, "decoder_loss", model(parameters(blocks=1)), 1.0)
    assert not blind(name, "decoder_loss", model(parameters()), 1.0)


ZERO_BRANCHES = {
    f"blocks.{k}.{name}": 0
    for k in (0, 1)
    for name in ("attention.w_o", "feed_forward.w_2", "feed_forward.b_2")
}


@pytest.mark.parametrize(
    "name",
    ["blocks-forgotten", "only-last-block", "only-first-block", "blocks-reversed",
     "first-block-repeated", "blocks-in-parallel"],
)  # fmt: skip
def test_zero_branches_hide_the_blocks(name):
    """A block that adds nothing may as well be left out: such weights show the wiring alone."""
    assert blind(name, "decoder_loss", model(parameters(**ZERO_BRANCHES)))
    assert not blind(name, "decoder_loss", model(parameters()))


@pytest.mark.parametrize(
    "name",
    ["positions-forgotten", "positions-constant", "positions-from-one", "positions-reversed",
     "positions-at-the-end", "positions-of-sequences", "positions-across-sequences"],
)  # fmt: skip
def test_a_position_table_of_zeros_hides_the_positions(name):
    """Whichever row is added, it is zero (C-84)."""
    assert blind(name, "decoder_loss", model(parameters(position_embedding=0)))
    assert not blind(name, "decoder_loss", model(parameters()))


@pytest.mark.parametrize("name", ["token-gradient-overwritten", "token-gradient-averaged"])
def test_a_batch_without_repeated_tokens_hides_how_rows_are_gathered(name):
    """The sum of one gradient is the last one, and their average (C-85)."""
    once = np.array([[1, 4, 0]])
    assert blind(name, "decoder_loss", model(parameters(), once, TARGETS[:1]), 1.0)
    assert not blind(name, "decoder_loss", model(parameters()), 1.0)


@pytest.mark.parametrize(
    "name", ["position-gradient-of-first-sequence", "position-gradient-averaged"]
)
def test_a_single_sequence_hides_how_position_rows_are_shared(name):
    """Over one sequence the sum, the mean and the first are the same."""
    assert blind(name, "decoder_loss", model(parameters(), TOKENS[:1], TARGETS[:1]), 1.0)
    assert not blind(name, "decoder_loss", model(parameters()), 1.0)


@pytest.mark.parametrize(
    "name",
    ["loss-over-all-positions", "mean-of-means", "ignored-scored-as-first",
     "ignored-scored-from-the-end", "ignored-scored-as-none", "ignored-rows-with-gradient",
     "loss-gradient-over-all-positions"],
)  # fmt: skip
def test_targets_that_are_all_scored_hide_what_is_left_out(name):
    """Every divisor is the right one, and there is no -100 to score (C-44, C-45)."""
    assert blind(name, "decoder_loss", model(parameters()), 1.0)
    assert not blind(name, "decoder_loss", model(parameters(), targets=RAGGED), 1.0)


def test_an_upstream_of_one_hides_that_it_is_left_out():
    """One times the gradient is the gradient."""
    assert blind("loss-upstream-ignored", "decoder_loss", model(parameters()), 1.0)
    assert not blind("loss-upstream-ignored", "decoder_loss", model(parameters()), 2.0)


@pytest.mark.parametrize(
    "name",
    ["loss-detached", "head-input-detached", "blocks-detached", "gradient-past-blocks",
     "embedding-detached", "token-gradient-overwritten", "one-hot-forgotten"],
)  # fmt: skip
def test_the_value_of_the_loss_hides_its_gradient(name):
    """The loss is right to the last bit whatever learns from it (C-46, C-50, C-51, C-61)."""
    right, wrong = (asked(each, "decoder_loss", model(parameters())) for each in (None, name))
    assert right["loss"] == wrong["loss"]
    assert not blind(name, "decoder_loss", model(parameters()), 1.0)


def test_a_head_that_alone_receives_a_gradient_receives_the_right_one():
    """So the loss falls, although nothing below the head learns (C-50)."""
    right, wrong = (
        asked(each, "decoder_loss", model(parameters()), 1.0)
        for each in (None, "head-input-detached")
    )
    assert wrong.keys() == {"head"}
    assert np.array_equal(right["head"], wrong["head"])
    assert len(right) == 29


def test_a_symmetric_head_hides_that_it_is_read_the_other_way():
    """Read as [V, d], a square symmetric head is its own transpose (C-39)."""
    given = {**model(parameters(width=5)), "heads": 5}
    square = given["parameters"]["head"]
    symmetric = {**given, "parameters": {**given["parameters"], "head": square + square.T}}
    assert blind("head-reread", "decoder_loss", symmetric)
    assert not blind("head-reread", "decoder_loss", given)


@pytest.mark.parametrize("name", ["targets-shifted-inside", "targets-rolled", "loss-summed"])
def test_the_logits_hide_what_the_loss_does_with_them(name):
    """They are right, and so is every check of shapes, causality and batches (C-40, C-44)."""
    given = model(parameters())
    logits = {key: given[key] for key in ("tokens", "parameters", "heads", "eps")}
    assert blind(name, "decoder", logits)
    assert not blind(name, "decoder_loss", given)
