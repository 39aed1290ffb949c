"""Honest GELUs and their gradients, each rounded in places of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tests.honest_kernels import Array, Function

#: The normal density from x and x / sqrt 2.
Density: TypeAlias = Callable[[Array, Array], Array]


def erf(a: Array) -> Array:
    return np.array([math.erf(v) for v in a.reshape(-1)], a.dtype).reshape(a.shape)


def erfc(a: Array) -> Array:
    return np.array([math.erfc(v) for v in a.reshape(-1)], a.dtype).reshape(a.shape)


def by_product(x: Array) -> Array:
    return x * x.dtype.type(math.sqrt(0.5))


def by_division(x: Array) -> Array:
    return x / x.dtype.type(math.sqrt(2))


#: x / sqrt 2.
ARGUMENTS: dict[str, Function] = {"product": by_product, "division": by_division}


def erf_form(x: Array, argument: Function) -> Array:
    return np.asarray((0.5 * x) * (1 + erf(argument(x))))


def erfc_form(x: Array, argument: Function) -> Array:
    return np.asarray((0.5 * x) * erfc(-argument(x)))


def ndtr_form(x: Array, argument: Function) -> Array:
    return np.asarray(x * (0.5 * (1 + erf(argument(x)))))


def split_form(x: Array, argument: Function) -> Array:
    """The distribution function from erf in the middle and from erfc in both tails."""
    s = argument(x)
    tail = 0.5 * erfc(np.abs(s))
    cdf = np.where(np.abs(s) < 1, 0.5 + 0.5 * erf(s), np.where(s > 0, 1 - tail, tail))
    return np.asarray(x * cdf)


GELUS: dict[str, Callable[[Array, Function], Array]] = {
    "erf": erf_form,
    "erfc": erfc_form,
    "ndtr": ndtr_form,
    "split": split_form,
}


# -------------------------------------------------------------------------------------- gradients


def cdf_by_erf(s: Array) -> Array:
    return np.asarray(0.5 * (1 + erf(s)))


def cdf_by_erfc(s: Array) -> Array:
    return np.asarray(0.5 * erfc(-s))


CDFS: dict[str, Function] = {"erf": cdf_by_erf, "erfc": cdf_by_erfc}


def density(x: Array, _: Array) -> Array:
    """exp(-x^2 / 2) / sqrt(2 pi)."""
    return np.exp(x * x * -0.5) * x.dtype.type(1 / math.sqrt(2 * math.pi))


def density_of_argument(_: Array, s: Array) -> Array:
    """The same from s = x / sqrt 2, with the constants in three factors."""
    slope = np.exp(-(s * s)) * s.dtype.type(2 / math.sqrt(math.pi))
    return np.asarray(slope * s.dtype.type(math.sqrt(0.5)) * 0.5)


DENSITIES: dict[str, Density] = {
    "of x": density,
    "of argument": density_of_argument,
}


def together(g: Array, x: Array, argument: Function, cdf: Function, density: Density) -> Array:
    s = argument(x)
    return np.asarray(g * (cdf(s) + x * density(x, s)))


def apart(g: Array, x: Array, argument: Function, cdf: Function, density: Density) -> Array:
    """Both paths are multiplied by the upstream gradient before they meet."""
    s = argument(x)
    return np.asarray(g * cdf(s) + g * x * density(x, s))


GRADIENTS: dict[str, Callable[[Array, Array, Function, Function, Density], Array]] = {
    "together": together,
    "apart": apart,
}
