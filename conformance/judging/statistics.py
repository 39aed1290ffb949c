"""Whether a sample looks like draws of a distribution: limits whose false alarms are bounded.

Each statistic of n honest draws lies outside its limits with a probability of at most
``FALSE_ALARM``, by inequalities that hold for every n; so all of them together alarm falsely at
most ``STATISTICS`` times as often. For x = log(2 / FALSE_ALARM):

* normal with deviation s: the mean is normal with deviation s / sqrt(n), and a standard normal
  exceeds t with probability at most exp(-t^2 / 2), so |mean| <= s sqrt(2 x / n). The sum of squares
  over s^2 is chi-squared with n degrees, which is above n + 2 sqrt(n x) + 2 x, or below
  n - 2 sqrt(n x), with probability at most exp(-x) each (B. Laurent and P. Massart, "Adaptive
  estimation of a quadratic functional by model selection", Annals of Statistics 28, 2000, lemma 1);
* uniform up to a limit c: the mean of n numbers in [-c, c] is off by more than t with probability
  at most 2 exp(-n t^2 / (2 c^2)), and the mean of their squares, which lie in [0, c^2] and have the
  mean c^2 / 3, by more than t with probability at most 2 exp(-2 n t^2 / c^4) (W. Hoeffding,
  "Probability inequalities for sums of bounded random variables", JASA 58, 1963, theorem 2);
* the distribution function: the share of n draws that lie below a number differs from what it
  should be by more than t, at any number, with probability at most 2 exp(-2 n t^2) (P. Massart,
  "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of Probability 18,
  1990); it is looked at at ``QUANTILES``;
* repeated values: an honest generator gives each single value with a probability of at most
  q = ``LIKELIEST``, and each magnitude with 2 q. Whatever came before, the draw number i has one of
  the magnitudes so far with probability at most 2 i q, so that the number of those that do is at
  most a sum of independent indicators with the mean m = n^2 q. It is above m + t with probability
  at most exp(-t^2 / (2 m + 2 t / 3)) (S. Bernstein's inequality), which is ``FALSE_ALARM`` where,
  for y = log(1 / FALSE_ALARM), t = y / 3 + sqrt(y^2 / 9 + 2 m y). Rows that are copied, negated or
  left at zero are far beyond;
* the tail: all n draws stay within an edge that one draw stays within with probability p, with
  probability p^n. Where that is ``FALSE_ALARM``, an honest sample has one beyond the edge: for 8000
  normal draws it is at 3 s. A uniform sample isn't normal, for it ends at sqrt(3) s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from statistics import NormalDist

import msgspec
import numpy as np

from conformance.model import Drawn

#: How many statistics are taken of one sample, at most.
STATISTICS = 6

#: The probability that one of them lies outside its limits for an honest sample, at most.
FALSE_ALARM = 1e-9 / STATISTICS


#: The probability of any single value, at most: twice that of a generator of 23 bits.
LIKELIEST = 2.0**-22

#: The probabilities at whose quantiles the distribution function is looked at.
QUANTILES = np.arange(1, 64) / 64

#: The name of the statistic that tells a copy from draws of its own.
REPEATED = "number of repeated magnitudes"


class Statistic(msgspec.Struct, frozen=True):
    """``got`` may differ from ``want`` by ``allowed``."""

    name: str
    got: float
    want: float
    allowed: float

    @property
    def ratio(self) -> float:
        """The share of what is allowed; infinite for what is no number."""
        error = abs(self.got - self.want)
        if error == 0:
            return 0.0
        return error / self.allowed if error < math.inf and self.allowed else math.inf


def sample(outputs: Mapping[tuple[str, str], np.ndarray], due: Drawn) -> np.ndarray:
    """What ``due`` speaks of, as doubles of rank 1."""
    parts = [np.asarray(outputs[term], dtype=np.float64).reshape(-1) for term in due.terms]
    return np.concatenate(parts)


def of(sample: np.ndarray, due: Drawn) -> Iterator[Statistic]:
    """The statistics of ``sample``, doubles of rank 1 and at least one, that ``due`` speaks of."""
    size, count = float(due.size), sample.size
    x = math.log(2 / FALSE_ALARM)
    mean, mean_square = float(np.mean(sample)), float(np.mean(sample * sample))
    largest = float(np.max(np.abs(sample)))
    if due.distribution == "normal":
        yield Statistic("mean", mean, 0.0, size * math.sqrt(2 * x / count))
        excess = 2 * math.sqrt(count * x) + (2 * x if mean_square > size**2 else 0)
        yield Statistic("mean square", mean_square, size**2, size**2 * excess / count)
        edge = size * NormalDist().inv_cdf((1 + _inside(count)) / 2)
    else:
        yield Statistic("mean", mean, 0.0, size * math.sqrt(2 * x / count))
        spread = size**2 * math.sqrt(x / (2 * count))
        yield Statistic("mean square", mean_square, size**2 / 3, spread)
        yield _at_most("largest magnitude", largest, size)
        edge = size * _inside(count)
    yield _at_least("largest magnitude", largest, edge)
    below = np.searchsorted(np.sort(sample), size * _quantiles(due.distribution), side="right")
    furthest = float(np.max(np.abs(below / count - QUANTILES)))
    yield Statistic("distribution function", furthest, 0.0, math.sqrt(x / (2 * count)) + LIKELIEST)
    yield _repeated(sample)


@cache
def _quantiles(distribution: str) -> np.ndarray:
    """The quantiles of the normal distribution of deviation 1, or the uniform one up to 1."""
    if distribution == "uniform":
        return 2 * QUANTILES - 1
    return np.array([NormalDist().inv_cdf(each) for each in QUANTILES])


def _repeated(sample: np.ndarray) -> Statistic:
    """How many draws have a magnitude that is there already, be it of another sign."""
    count, y = sample.size, -math.log(FALSE_ALARM)
    mean = count**2 * LIKELIEST
    limit = mean + y / 3 + math.sqrt(y**2 / 9 + 2 * mean * y)
    return Statistic(REPEATED, float(count - np.unique(np.abs(sample)).size), 0.0, limit)


def _inside(count: int) -> float:
    """The p with p^count = ``FALSE_ALARM``, rounded so that p^count is no more than that."""
    return max(0.0, math.exp(math.log(FALSE_ALARM) / count) - 1e-15)


#: The limit of a uniform distribution may itself be rounded, in float32 too.
_ROUNDED = 1 + 2.0**-22


def _at_most(name: str, got: float, limit: float) -> Statistic:
    return Statistic(name, max(got, limit), limit, limit * (_ROUNDED - 1))


def _at_least(name: str, got: float, limit: float) -> Statistic:
    return Statistic(name, min(got, limit), limit, 0.0)
