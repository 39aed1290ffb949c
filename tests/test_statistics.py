"""Honest samples stay within the limits; other distributions leave them, and the tail tells."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from conformance.judging import statistics
from conformance.model import Drawn

WEIGHT = ("", "weight")
NORMAL = Drawn(terms=(WEIGHT,), distribution="normal", size=Decimal("0.02"))
UNIFORM = Drawn(terms=(WEIGHT,), distribution="uniform", size=Decimal("0.5"))

SIZES = (1, 2, 6, 150, 1000, 5000)


def ratios(sample, due):
    """By name, the worse one where the largest magnitude has a limit on either side."""
    found: dict[str, float] = {}
    for statistic in statistics.of(np.asarray(sample, float), due):
        found[statistic.name] = max(found.get(statistic.name, 0.0), statistic.ratio)
    return found


def worst(sample, due):
    return max(ratios(sample, due).values())


def normal(count, seed=0, deviation=0.02, mean=0.0):
    return np.random.default_rng(seed).normal(mean, deviation, count)


def uniform(count, seed=0, limit=0.5, low=None):
    return np.random.default_rng(seed).uniform(-limit if low is None else low, limit, count)


# --------------------------------------------------------------------------------- honest draws


@pytest.mark.parametrize("count", SIZES)
def test_honest_draws_pass_whatever_the_seed(count):
    """Three hundred seeds, of both distributions and of every size, in float32 too."""
    for seed in range(300):
        for sample, due in ((normal(count, seed), NORMAL), (uniform(count, seed), UNIFORM)):
            assert worst(sample, due) <= 1
            assert worst(sample.astype(np.float32), due) <= 1


def test_the_limit_of_a_uniform_distribution_may_be_rounded():
    """A draw at the very limit passes, also where float32 has rounded the limit up."""
    due = Drawn(terms=(WEIGHT,), distribution="uniform", size=Decimal("0.1"))
    highest = float(np.float32(0.1))
    assert highest > 0.1
    assert ratios([highest, -highest], due)["largest magnitude"] <= 1
    assert ratios([0.1 * (1 + 1e-6)], due)["largest magnitude"] > 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_no_draw(bad):
    """A single NaN or infinity is enough."""
    for due in (NORMAL, UNIFORM):
        assert worst([*normal(500), bad], due) == math.inf


# --------------------------------------------------------------------- what is drawn otherwise

#: Samples of five thousand, and the distribution that they are taken for.
WRONG = {
    "twice the deviation": (normal(5000, deviation=0.04), NORMAL),
    "half the deviation": (normal(5000, deviation=0.01), NORMAL),
    "a fifth more": (normal(5000, deviation=0.024), NORMAL),
    "another mean": (normal(5000, mean=0.01), NORMAL),
    "uniform with the same deviation": (uniform(5000, limit=0.02 * math.sqrt(3)), NORMAL),
    "one constant": (np.full(5000, 0.02), NORMAL),
    "two signs": (np.where(normal(5000) < 0, -0.02, 0.02), NORMAL),
    "zeros": (np.zeros(5000), NORMAL),
    "a limit a tenth larger": (uniform(5000, limit=0.55), UNIFORM),
    "a limit a fifth smaller": (uniform(5000, limit=0.4), UNIFORM),
    "positive alone": (uniform(5000, low=0.0), UNIFORM),
    "normal with the same deviation": (normal(5000, deviation=0.5 / math.sqrt(3)), UNIFORM),
    "Laplace with the same deviation": (
        np.random.default_rng(0).laplace(0, 0.02 / math.sqrt(2), 20_000),
        NORMAL,
    ),
    "logistic with the same deviation": (
        np.random.default_rng(0).logistic(0, 0.02 * math.sqrt(3) / math.pi, 60_000),
        NORMAL,
    ),
    "triangular with the same deviation": (
        np.random.default_rng(0).triangular(-1, 0, 1, 5000) / math.sqrt(2),
        UNIFORM,
    ),
    "cut off": (np.clip(uniform(5000), -0.44, 0.44), UNIFORM),
    "zeros for uniform": (np.zeros(5000), UNIFORM),
}


@pytest.mark.parametrize(("sample", "due"), WRONG.values(), ids=WRONG)
def test_another_distribution_fails(sample, due):
    """By more than its limits, at a size that models have."""
    assert worst(sample, due) > 1


@pytest.mark.parametrize("count", [600, 5000, 70_000])
def test_draws_of_twenty_three_bits_repeat_themselves_less_than_they_may(count):
    """As the uniform draws of float32 are, whose normal ones are a function of them."""
    for seed in range(20):
        steps = np.random.default_rng(seed).integers(-(2**22), 2**22, count)
        found = ratios(steps * 0.5 / 2**22, UNIFORM)
        assert found[statistics.REPEATED] <= 0.9


REPEATING = {
    "a row of zeros": np.concatenate([np.zeros(64), normal(5000)]),
    "the first half again": np.tile(normal(2500), 2),
    "the first half with the other sign": np.concatenate([normal(2500), -normal(2500)]),
    "a row that is another one": np.concatenate([normal(5000), normal(5000)[:64]]),
    "draws of twelve bits": np.round(normal(5000) * 2**17) / 2**17,
}


@pytest.mark.parametrize("sample", REPEATING.values(), ids=REPEATING)
def test_values_that_are_there_before_are_no_draws(sample):
    """Their distribution may be as it should: only that they are repeated tells."""
    found = ratios(sample, NORMAL)
    assert found.pop(statistics.REPEATED) > 1
    assert max(found.values()) <= 1


def test_outputs_that_are_copies_are_no_draws_together():
    """Each by itself is; so is the one turned around."""
    first, other = normal(2000).reshape(50, 40), normal(2000, seed=1).reshape(50, 40)
    both = Drawn(terms=(("", "a"), ("", "b")), distribution="normal", size=Decimal("0.02"))
    for second, repeats in ((other, False), (first, True), (first.T, True)):
        sample = statistics.sample({("", "a"): first, ("", "b"): second}, both)
        assert (worst(sample, both) > 1) is repeats


def test_a_truncated_normal_has_no_tail():
    """Drawn again beyond two deviations, and its spread restored: the tail alone tells."""
    sample = normal(20_000)
    while np.any(beyond := np.abs(sample) > 0.04):
        sample[beyond] = normal(int(beyond.sum()), seed=int(beyond.sum()))
    assert ratios(sample, NORMAL)["largest magnitude"] == math.inf
    restored = sample * (0.02 / np.sqrt(np.mean(sample**2)))
    narrow = np.clip(restored, -0.0399, 0.0399)
    found = ratios(narrow, NORMAL)
    assert found["largest magnitude"] == math.inf
    assert max(found["mean"], found["mean square"]) <= 1


@pytest.mark.parametrize("count", [2, 20, 400, 8000, 60_000])
def test_the_tail_reaches_as_far_as_the_size_of_the_sample_says(count):
    """The largest draw is beyond the edge that all draws stay within too rarely to be believed."""
    special = pytest.importorskip("scipy.special")
    inside = math.exp(math.log(statistics.FALSE_ALARM) / count)
    for due, edge in (
        (NORMAL, 0.02 * math.sqrt(2) * special.erfinv(inside)),
        (UNIFORM, 0.5 * inside),
    ):
        for largest, verdict in ((edge * (1 - 1e-6), math.inf), (edge * (1 + 1e-6), 0.0)):
            sample = np.zeros(count)
            sample[0] = largest
            assert ratios(sample, due)["largest magnitude"] == verdict


@pytest.mark.parametrize(("cut", "count"), [(2.0, 500), (2.5, 2000), (3.0, 9000), (3.5, 50_000)])
def test_draws_that_are_cut_show_in_a_sample_of_some_size(cut, count):
    """The further out the cut, the more draws it takes; no smaller sample is blamed."""
    sample = np.clip(normal(count), -0.02 * cut, 0.02 * cut)
    assert ratios(sample, NORMAL)["largest magnitude"] == math.inf
    assert ratios(sample[: count // 4], NORMAL)["largest magnitude"] == 0


# ------------------------------------------------------------------------------------ the limits


def false_alarms(due, draw, monkeypatch, allowed=0.05, count=100, tries=4000):
    """How often each statistic of honest draws leaves limits of a false alarm of ``allowed``."""
    monkeypatch.setattr(statistics, "FALSE_ALARM", allowed)
    found: dict[str, int] = {}
    for seed in range(tries):
        for statistic in statistics.of(draw(count, seed), due):
            found[statistic.name] = found.get(statistic.name, 0) + (statistic.ratio > 1)
    return {name: number / tries for name, number in found.items()}


@pytest.mark.parametrize(("due", "draw"), [(NORMAL, normal), (UNIFORM, uniform)])
def test_the_limits_keep_what_they_promise(due, draw, monkeypatch):
    """At a rate that can be counted, each statistic alarms no more often than it says."""
    rates = false_alarms(due, draw, monkeypatch)
    assert set(rates) == {
        "mean", "mean square", "largest magnitude", "distribution function", statistics.REPEATED
    }  # fmt: skip
    # The tail meets its rate exactly, so that one that is counted may lie a little above it.
    assert rates.pop("largest magnitude") <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
    assert all(rate <= 0.05 for rate in rates.values())


def test_the_limit_of_repeated_values_keeps_its_promise_at_the_likeliest(monkeypatch):
    """Of so many values, each as likely as any may be, few enough are drawn twice."""

    def coarse(count, seed):
        values = round(1 / statistics.LIKELIEST)
        steps = np.random.default_rng(seed).integers(-values // 2, values // 2, count)
        return (steps + 0.5) * statistics.LIKELIEST

    rates = false_alarms(UNIFORM, coarse, monkeypatch, allowed=0.2, count=3000)
    assert 0.01 < rates[statistics.REPEATED] <= 0.2


def test_the_limits_are_not_idle(monkeypatch):
    """The mean of a normal sample leaves them, if less often than it may: they are near."""
    rates = false_alarms(NORMAL, normal, monkeypatch, allowed=0.2)
    assert 0.005 < rates["mean"] <= 0.2
    assert 0.001 < rates["mean square"] <= 0.2


@pytest.mark.parametrize("count", [2, 20, 1000, 100_000])
def test_the_limits_hold_against_the_exact_distributions(count):
    """Of a normal sample the mean is normal and the sum of squares chi-squared, at any size."""
    special = pytest.importorskip("scipy.special")
    found = {each.name: each for each in statistics.of(np.full(count, 0.02), NORMAL)}
    mean = found["mean"].allowed / (0.02 / math.sqrt(count))
    assert 2 * special.ndtr(-mean) <= statistics.FALSE_ALARM
    low, high = (
        {each.name: each for each in statistics.of(np.full(count, size), NORMAL)}["mean square"]
        for size in (0.0, 0.021)
    )
    above = count * (1 + high.allowed / 0.02**2)
    below = max(0.0, count * (1 - low.allowed / 0.02**2))
    total = special.gammaincc(count / 2, above / 2) + special.gammainc(count / 2, below / 2)
    assert total <= statistics.FALSE_ALARM
    assert high.allowed > low.allowed


def test_all_statistics_of_a_sample_share_the_promised_rate():
    """There are at most as many as the rate is divided by."""
    assert math.isclose(statistics.FALSE_ALARM * statistics.STATISTICS, 1e-9)
    for due in (NORMAL, UNIFORM):
        assert len(list(statistics.of(normal(100_000), due))) <= statistics.STATISTICS
