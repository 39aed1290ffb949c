"""What a training recorded is a table beside the report: one row a step, of each quantity."""

import csv

import numpy as np
import pytest

from conformance import Answer
from conformance.running.answers import AnswerFile
from conformance.running.curves import COLUMNS
from conformance.truth.arithmetic.balls import Balls, precision
from conformance.truth.arithmetic.tape import Tape
from conformance.truth.reference import Reference

TRAINED = Answer(
    outputs={
        "losses": np.array([1.5, 0.1], np.float32),
        "gradient_norms.head": np.array([np.nan, 1e-30]),
        "parameters.head": np.ones(2),
        "optimised.head": np.array(2),
    }
)


def written(path, *answers):
    with AnswerFile(path / "mine.answers.msgpack") as file:
        for answer in answers:
            file.add("training/two, or three", "float32", "a", answer)
    return path / "mine.training.csv"


def test_every_step_of_losses_and_norms_is_a_row(tmp_path):
    """In the shortest digits of their dtype, counted from 1; other outputs are no curves."""
    with written(tmp_path, TRAINED).open(newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert {(row[0], row[1], row[2]) for row in rows} == {
        ("training/two, or three", "float32", "a")
    }
    assert [row[3:] for row in rows] == [
        ["losses", "1", "1.5"],
        ["losses", "2", "0.1"],
        ["gradient_norms.head", "1", "nan"],
        ["gradient_norms.head", "2", "1e-30"],
    ]


def test_no_training_leaves_no_file(tmp_path):
    """Nor that of an earlier run, which would pass for this one's."""
    assert written(tmp_path, TRAINED).exists()
    other = Answer(outputs={"losses": np.array("text"), "y": np.ones(3)})
    assert not written(tmp_path, other).exists()


def test_an_interrupted_run_leaves_no_part_of_a_file(tmp_path):
    """Neither under its name nor beside it."""
    stopped = Answer(outputs={**TRAINED.outputs, "z": None})  # no array: it can't be packed
    with pytest.raises(AttributeError):
        written(tmp_path, TRAINED, stopped)
    assert not list(tmp_path.iterdir())


def test_the_largest_logit_is_found_whatever_its_rounding():
    """A ball lies above or below the double next to it; both ways it is the largest."""
    for tenths in (1.0, 3.0):
        with precision():
            tape = Tape(Balls())
            logits = tape.floats(np.array([[0.0, tenths, 0.25]])) / 10
            assert Reference().largest(logits).tolist() == [1]
