"""Parameters by their names: those of one sublayer, of each block, and among other arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")

#: For each argument of ``attention_sublayer`` the parameter of a block that it is.
ATTENTION = {
    "gamma": "attention_norm.gamma",
    "beta": "attention_norm.beta",
    "w_q": "attention.w_q",
    "w_k": "attention.w_k",
    "w_v": "attention.w_v",
    "w_o": "attention.w_o",
}

#: For each argument of ``feed_forward_sublayer`` the parameter of a block that it is.
FEED_FORWARD = {
    "gamma": "feed_forward_norm.gamma",
    "beta": "feed_forward_norm.beta",
    "w_1": "feed_forward.w_1",
    "b_1": "feed_forward.b_1",
    "w_2": "feed_forward.w_2",
    "b_2": "feed_forward.b_2",
}


def chosen(parameters: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    """The parameters of a block as the arguments of a sublayer, whose ``names`` those are."""
    return {argument: parameters[name] for argument, name in names.items()}


def blocks(parameters: Mapping[str, T]) -> list[dict[str, T]]:
    """The parameters of each block of a decoder in order, without the prefix ``blocks.K.``."""
    found: dict[int, dict[str, T]] = {}
    for name, parameter in parameters.items():
        if name.startswith("blocks."):
            _, number, inner = name.split(".", 2)
            found.setdefault(int(number), {})[inner] = parameter
    return [found[number] for number in sorted(found)]


def by_name(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments and, beside them, each of the parameters by its own name."""
    return {**arguments, **arguments.get("parameters", {})}


def replaced(arguments: Mapping[str, Any], leaves: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with ``leaves`` in their places, among the parameters too."""
    return {
        name: replaced(item, leaves) if isinstance(item, Mapping) else leaves.get(name, item)
        for name, item in arguments.items()
    }
