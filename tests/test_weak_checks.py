"""What a weaker check can't see: the fault passes it and is there all the same.

A case of the kit rejects the fault, and the tests of the parts name one that does.
"""

from __future__ import annotations

import numpy as np
import pytest

from conformance.diagnosis.candidates import Candidate, contradicted
from conformance.frozen import Truth
from conformance.layout import SPEC
from conformance.precision import DTYPES
from conformance.specification import load
from conformance.truth.arithmetic.domains import Doubles
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.faults import catalogue
from conformance.truth.proof.evaluate import evaluate
from conformance.truth.reference import Reference
from tests.builders import OPERATIONS

SPECIFICATION = load()
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


def without_loss(given):
    """Of the arguments of ``decoder_loss`` those of ``decoder``."""
    return {key: given[key] for key in ("tokens", "parameters", "heads", "eps")}


def asked(name, operation, given, upstream=None):
    """What the fault ``name``, another way to make it, or the reference gives: the output, or
    gradients by name.
    """
    reference = (FAULTS[name] if isinstance(name, str) else name or Reference)()
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
    """Whether the fault ``name``, or another way to make it, gives what the reference gives."""
    right, wrong = (asked(each, operation, given, upstream) for each in (None, name))
    return right.keys() == wrong.keys() and all(
        right[key].shape == wrong[key].shape and np.allclose(right[key], wrong[key], atol=1e-12)
        for key in right
    )


def given_by(case_id, name, dtype="float64", way=0):
    """What the fault ``name`` gives in a case of the kit, by output."""
    case = SPECIFICATION.cases[case_id]
    results = Candidate(name, 3 * way).results(case, *OPERATIONS[case.operation].outputs, dtype)
    return {output: node.value for (_, output), node in results.items()}


def rejects(case_id, name, dtypes=DTYPES, way=0):
    """Whether a case of the kit separates the fault ``name``, made in that way."""
    case = SPECIFICATION.cases[case_id]
    truth = Truth(SPEC / "truth").of(case)
    (output,) = OPERATIONS[case.operation].outputs
    return all(
        contradicted(Candidate(name, 3 * way), case, output, truth, dtype) for dtype in dtypes
    )


# ------------------------------------------------------------------------------------ the decoder


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
    assert blind(name, "decoder", without_loss(given))
    assert not blind(name, "decoder_loss", given)


# -------------------------------------------------------------------------------------- the parts


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("layer-norm/two-features", "sample-variance"),
        ("layer-norm/rank-three", "statistics-over-batch"),
        ("residual/two-positions", "increment-of-first-position"),
        ("residual/two-positions", "increment-averaged"),
        ("attention/sublayer-five-positions", "attention-of-first-position"),
    ],
)
def test_a_shape_hides_the_numbers_in_it(case, name):
    """The output has the shape that is due, and is wrong (C-01, C-22)."""
    due = Truth(SPEC / "truth").of(SPECIFICATION.cases[case])["", "y"]
    assert given_by(case, name)["y"].shape == due.shape
    assert rejects(case, name)


PAIR = {"gamma": np.ones(2), "beta": np.zeros(2), "eps": np.array(1e-5)}


def test_the_identity_of_gelu_hides_what_its_input_was_divided_by():
    """g(z) - g(-z) = z holds for whatever opposite numbers two features became (C-01)."""
    for norm in (None, "sample-variance"):
        (z,) = asked(norm, "layer_norm", {"x": np.array([1.0, 3.0]), **PAIR}).values()
        (g,) = asked(None, "gelu", {"x": z}).values()
        assert np.isclose(g[1] - g[0], z[1], rtol=0, atol=1e-15)
    assert rejects("layer-norm/two-features", "sample-variance")


@pytest.mark.parametrize("way", [0, 1])
def test_a_prefix_hides_statistics_over_the_batch(way):
    """They mix sequences and not positions: no later token reaches an earlier logit, with the
    features or without (C-07).
    """
    wrong = [FAULTS["statistics-over-batch"], *FAULTS["statistics-over-batch"].other_ways][way]
    given = without_loss(model(parameters()))
    whole = asked(wrong, "decoder", given)["logits"]
    short = asked(wrong, "decoder", {**given, "tokens": TOKENS[:, :2]})["logits"]
    assert np.allclose(whole[:, :2], short, atol=1e-12)
    assert not blind(wrong, "decoder", given)
    assert rejects("decoder/batch", "statistics-over-batch", way=way)


def test_a_single_sequence_hides_statistics_over_batch_and_features():
    """A batch of one has no other sequence, in values and gradients (C-07). Without the features
    it shows: a position that is centred over one sequence is zero.
    """
    (with_features,) = FAULTS["statistics-over-batch"].other_ways
    alone = model(parameters(), TOKENS[:1], TARGETS[:1])
    assert blind(with_features, "decoder_loss", alone, 1.0)
    assert not blind("statistics-over-batch", "decoder_loss", alone, 1.0)
    assert not blind(with_features, "decoder_loss", model(parameters()), 1.0)
    assert rejects("layer-norm/rank-three", "statistics-over-batch", way=1)


def test_three_digits_hide_the_tanh_approximation():
    """Of the document's sublayer both round to 0.921 and 3.42 (C-13)."""
    case = SPECIFICATION.cases["feed-forward/sublayer-two-features"]
    due = Truth(SPEC / "truth").of(case)["", "y"].high
    wrong = given_by(case.id, "tanh-gelu")["y"]
    assert [f"{number:.3g}" for number in due] == [f"{number:.3g}" for number in wrong]
    assert rejects(case.id, "tanh-gelu")


@pytest.mark.parametrize(
    "name",
    ["decoder-one-head", "decoder-all-scored", "decoder-one-token", "decoder-other-mark"],
)
def test_a_loss_to_four_decimals_hides_the_tanh_approximation(name):
    """A whole decoder moves by less than 1e-4 (C-13); within its bound it is rejected."""
    case = SPECIFICATION.cases[f"loss/{name}"]
    due = Truth(SPEC / "truth").of(case)["", "loss"].high
    assert abs(given_by(case.id, "tanh-gelu")["loss"] - due) < 1e-4
    assert rejects(case.id, "tanh-gelu", ["float64"])


INCREMENTS = {
    "x": np.array([[[1.0, 3.0], [11.0, 13.0]]]),
    "increment": np.array([[[0.5, 1.0], [-0.25, 2.0]]]),
}


@pytest.mark.parametrize("name", ["increment-of-first-position", "increment-averaged"])
def test_a_single_position_hides_whose_increment_is_added(name):
    """The first is its own and the average of one is itself (C-22)."""
    single = {key: value[:, :1] for key, value in INCREMENTS.items()}
    assert blind(name, "residual_add", single, [[[2.0, -3.0]]])
    assert not blind(name, "residual_add", INCREMENTS)
    assert rejects("residual/two-positions", name)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("increment-of-first-position", "residual/two-positions"),
        ("attention-of-first-position", "attention/sublayer-five-positions"),
    ],
)
def test_a_prefix_hides_an_increment_that_is_copied_from_the_first_position(name, case):
    """The first position sees no later one, wherever its increment goes (C-22). An average over
    the positions leaks, which a prefix shows.
    """
    given = without_loss(model(parameters()))

    def leak(wrong):
        whole = asked(wrong, "decoder", given)["logits"]
        short = asked(wrong, "decoder", {**given, "tokens": TOKENS[:, :2]})["logits"]
        return np.max(np.abs(whole[:, :2] - short))

    assert leak(name) < 1e-12
    assert leak("increment-averaged") > 0.01
    assert not blind(name, "decoder", given)
    assert rejects(case, name)


# ------------------------------------------------------------------------------------- ledgers


def ledgers(*, vocab_size, block_size, d_model, n_layers, d_ff):
    """The right number of scalars, and those of thirteen wrong ledgers (C-67), by what is wrong."""
    v, c, d, n, f = vocab_size, block_size, d_model, n_layers, d_ff
    block = 4 * d * d + 2 * d * f + f + 5 * d
    right = 2 * v * d + c * d + n * block + 2 * d
    return right, {
        "biases in the attention": right + 4 * d * n,
        "a bias in the head": right + v,
        "no biases in the feed-forward": right - (f + d) * n,
        "four vectors of the width instead of five": right - d * n,
        "one norm a block": right - 2 * d * n,
        "no final norm": right - 2 * d,
        "no norms": right - 4 * d * n - 2 * d,
        "no table of positions": right - c * d,
        "as many positions as words": right + (v - c) * d,
        "no output map": right - d * d * n,
        "a tied head": right - v * d,
        "a mask that is counted": right + c * c,
        "one block shared": right - (n - 1) * block,
    }


def sizes(case):
    given = SPECIFICATION.cases[case].calls[""].given
    return {name: int(given[name]) for name in
            ("vocab_size", "block_size", "d_model", "n_layers", "d_ff")}  # fmt: skip


@pytest.mark.parametrize("total", [107776, 424, 19320, 4608, 2562])
def test_totals_of_the_chapters_are_equal_in_wrong_ledgers(total):
    """Some ledgers have one total in every configuration of the chapters; in one of the kit's own
    all differ, from the right one too. A model is asked for its count, the ledger for its total.
    """
    for case in (f"model/registered-{total}", f"resources/ledger-{total}"):
        right, wrong = ledgers(**sizes(case))
        assert right == total
        different = len({right, *wrong.values()}) == 1 + len(wrong)
        assert different == (total == 2562)
