"""What is kept of the truth is the truth."""

from __future__ import annotations

import shutil

import msgspec
import numpy as np
import pytest

from conformance.errors import SpecificationError
from conformance.frozen import Truth
from conformance.frozen.kept import KeptTruth
from conformance.layout import SPEC
from conformance.model import Relations, Values
from conformance.specification import load

SPECIFICATION = load()
JUDGED = [
    case
    for case in SPECIFICATION.cases.values()
    if isinstance(case.expectation, Values | Relations)
]
ONE = SPECIFICATION.cases["layer-norm/affine"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setattr("conformance.specification.cache.cache_folder", lambda name: folder / name)
    return folder


@pytest.fixture
def folder(tmp_path):
    """A copy of one family."""
    there = tmp_path / "truth"
    there.mkdir()
    shutil.copy(SPEC / "truth" / "layer-norm.json", there)
    return there


def changed(folder, change):
    """Write the family after ``change`` of its parts."""
    path = folder / "layer-norm.json"
    parts = msgspec.json.decode(path.read_bytes())
    change(parts["cases"][ONE.id])
    path.write_bytes(msgspec.json.encode(parts))


def assert_same(kept, plain):
    """To the bit, and with the same text."""
    assert list(kept) == list(plain)
    for key, proven in plain.items():
        other = kept[key]
        assert (other.shape, other.dtype, other.free) == (proven.shape, proven.dtype, proven.free)
        assert list(other.bounds) == list(proven.bounds)
        pairs = [(other.high, proven.high), (other.low, proven.low)]
        pairs += [(other.bounds[dtype], bound) for dtype, bound in proven.bounds.items()]
        for left, right in pairs:
            assert left.dtype == right.dtype == np.float64
            assert left.shape == right.shape == proven.shape
            assert left.tobytes() == right.tobytes()
        assert other.text.tolist() == proven.text.tolist()


def test_it_is_the_truth_of_every_case_when_it_is_written_and_when_it_is_read(cache):
    """High and low parts, bounds and decimals: the judge can't tell them apart."""
    plain = Truth(SPEC / "truth")
    for _ in range(2):
        kept = KeptTruth(SPEC / "truth")
        for case in JUDGED:
            assert_same(kept.of(case), plain.of(case))
    families = {case.family for case in JUDGED}
    assert len(list((cache / "truth").glob("*.msgpack"))) == len(families)


def test_nothing_stale_is_taken(cache, folder):
    """Another file has another digest, whatever was kept before."""
    before = KeptTruth(folder).of(ONE)["", "y"].high[0]

    def other(case):
        case["values"]["y"]["data"][0] = "7.25"

    changed(folder, other)
    after = KeptTruth(folder).of(ONE)["", "y"]
    assert (before != 7.25, after.high[0], after.text[0]) == (True, 7.25, "7.25")


@pytest.mark.parametrize("size", [0, 40, -1])
def test_what_is_broken_in_the_cache_only_costs_the_reading(cache, folder, size):
    """A file cut short, or one that is no MessagePack."""
    KeptTruth(folder).of(ONE)
    (path,) = (cache / "truth").glob("*.msgpack")
    path.write_bytes(path.read_bytes()[:size])
    assert_same(KeptTruth(folder).of(ONE), Truth(folder).of(ONE))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda case: case.update(digest="0"), "what it asks has changed"),
        (lambda case: case.update(bounds={}), "its frozen bounds are of other dtypes"),
        (lambda case: case["values"]["y"]["data"].pop(), "do not fit together"),
        (lambda case: case["values"]["y"]["data"].append("one"), "do not fit together"),
        (lambda case: case["bounds"]["float64"]["y"].pop(), "do not fit together"),
    ],
    ids=["digest", "dtypes", "a value less", "no number", "a bound less"],
)
def test_what_is_wrong_in_the_file_is_told_as_ever(cache, folder, change, message):
    """Of that case alone; another of the family is judged."""
    changed(folder, change)
    for _ in range(2):
        kept = KeptTruth(folder)
        with pytest.raises(SpecificationError, match=message):
            kept.of(ONE)
        other = SPECIFICATION.cases["layer-norm/one-feature"]
        assert_same(kept.of(other), Truth(folder).of(other))


def test_a_family_that_was_never_frozen_has_no_truth(cache, folder):
    """And nothing is kept of it."""
    (folder / "layer-norm.json").unlink()
    with pytest.raises(SpecificationError, match="no truth is frozen for this case"):
        KeptTruth(folder).of(ONE)
    assert not list(cache.rglob("*.msgpack"))
