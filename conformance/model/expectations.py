"""What is due: values, a rejection, no value, or relations between the outputs."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, TypeAlias

import msgspec

from conformance.model.tensors import Tensor


class Values(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The right values are the proven ones of the truth. ``expect`` and ``printed`` are claims
    that people wrote, held to the truth by ``conformance check``.
    """

    expect: dict[str, Tensor] = {}
    printed: dict[str, Tensor] = {}


class Rejection(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The arguments must be rejected; counts only if the valid twin ``beside`` was answered."""

    kind: str
    beside: str


class Undefined(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The output has no value: raising or a non-finite result is right, a finite number is not."""

    output: str
    beside: str


class Same(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Two outputs agree within their two bounds, or in every bit.

    ``where`` has a slice for each side, so that a permutation can be said.
    """

    left: tuple[str, str]
    right: tuple[str, str]
    where: tuple[str, str] = ("", "")
    identical: bool = False


class Differ(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Two outputs differ, by more than their two bounds, somewhere in ``where``."""

    left: tuple[str, str]
    right: tuple[str, str]
    where: tuple[str, str] = ("", "")


class Combination(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An integer combination of outputs equals a value, within the summed bounds."""

    terms: tuple[tuple[str, str, int], ...]
    equals: Tensor
    where: str = ""


class MeanSquare(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The mean of the squares of an output equals a value."""

    term: tuple[str, str]
    equals: Decimal | int


class Less(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Every element of an output, in ``where``, is proven less than a number."""

    term: tuple[str, str]
    than: Decimal | int
    where: str = ""


class Greater(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Every element of an output, in ``where``, is proven greater than a number."""

    term: tuple[str, str]
    than: Decimal | int
    where: str = ""


class Drawn(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The elements of one output, or of several together, look like draws of a distribution.

    It lies around 0; ``size`` is the deviation of a normal one, the limit of a uniform one.
    """

    terms: tuple[tuple[str, str], ...]
    distribution: Literal["normal", "uniform"]
    size: Decimal | int


Relation: TypeAlias = Same | Differ | Combination | MeanSquare | Less | Greater | Drawn


class Relations(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What must hold between the outputs of the calls, whatever their values."""

    relate: tuple[Relation, ...]


Expectation: TypeAlias = Values | Rejection | Undefined | Relations
