"""Parameters by their names: of a sublayer, a block, a decoder; how they start, how they count."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

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

#: What parameters are counted as.
GROUPS = (
    "token_embedding",
    "position_embedding",
    "attention",
    "feed_forward_weights",
    "feed_forward_biases",
    "block_norms",
    "final_norm",
    "head",
)


def chosen(parameters: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    """The parameters of a block as the arguments of a sublayer, whose ``names`` those are."""
    return {argument: parameters[name] for argument, name in names.items()}


def blocks(parameters: Mapping[str, T]) -> list[dict[str, T]]:
    """The parameters of each block of a decoder in order, without the prefix ``blocks.K.``."""
    return [
        {inner: parameters[name] for inner, name in names} for names in _names(tuple(parameters))
    ]


@lru_cache(maxsize=64)
def _names(parameters: tuple[str, ...]) -> list[list[tuple[str, str]]]:
    """For each block in order, its parameters by the names that they have in it and in all."""
    found: dict[int, list[tuple[str, str]]] = {}
    for name in parameters:
        if name.startswith("blocks."):
            _, number, inner = name.split(".", 2)
            found.setdefault(int(number), []).append((inner, name))
    return [found[number] for number in sorted(found)]


def by_name(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments and, beside them, each of the parameters by its own name."""
    parameters = arguments.get("parameters")
    return {**arguments, **(parameters if isinstance(parameters, Mapping) else {})}


def replaced(arguments: Mapping[str, Any], leaves: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with ``leaves`` in their places, among the parameters too."""
    return {
        name: replaced(item, leaves) if isinstance(item, Mapping) else leaves.get(name, item)
        for name, item in arguments.items()
    }


class Sizes(NamedTuple):
    """The sizes that the shapes of a decoder's parameters depend on."""

    vocab_size: int
    block_size: int
    d_model: int
    n_layers: int
    d_ff: int


def sizes_of(parameters: Mapping[str, Any]) -> Sizes:
    """The sizes of a decoder with these parameters, arrays of any library."""
    vocab_size, d_model = parameters["token_embedding"].shape
    each = blocks(parameters)
    return Sizes(
        vocab_size=vocab_size,
        block_size=parameters["position_embedding"].shape[0],
        d_model=d_model,
        n_layers=len(each),
        d_ff=each[0]["feed_forward.w_1"].shape[1] if each else 0,
    )


def decoder_shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter of a decoder, by name; a weight is ``[in, out]``."""
    width, inner = sizes.d_model, sizes.d_ff
    norm = {"gamma": (width,), "beta": (width,)}
    block: dict[str, tuple[int, ...]] = {
        **{f"attention_norm.{name}": shape for name, shape in norm.items()},
        **{f"attention.{name}": (width, width) for name in ("w_q", "w_k", "w_v", "w_o")},
        **{f"feed_forward_norm.{name}": shape for name, shape in norm.items()},
        "feed_forward.w_1": (width, inner),
        "feed_forward.b_1": (inner,),
        "feed_forward.w_2": (inner, width),
        "feed_forward.b_2": (width,),
    }
    return {
        "token_embedding": (sizes.vocab_size, width),
        "position_embedding": (sizes.block_size, width),
        **{f"blocks.{k}.{n}": shape for k in range(sizes.n_layers) for n, shape in block.items()},
        **{f"final_norm.{name}": shape for name, shape in norm.items()},
        "head": (width, sizes.vocab_size),
    }


def starts_as(name: str) -> Literal["ones", "zeros", "drawn"]:
    """How a new decoder sets the parameter of that name: scales, shifts and biases, all else."""
    inner = name.rpartition(".")[2]
    if inner == "gamma":
        return "ones"
    return "zeros" if inner in {"beta", "b_1", "b_2"} else "drawn"


def group(name: str) -> str:
    """The group that a parameter is counted in."""
    if not name.startswith("blocks."):
        return name.partition(".")[0]
    _, _, part, inner = name.split(".")
    if part.endswith("_norm"):
        return "block_norms"
    if part == "attention":
        return part
    return "feed_forward_biases" if inner.startswith("b_") else "feed_forward_weights"
