"""The parameters of an operation: many tensors by name, written out or drawn.

The names are those of ``operations.yaml``; there ``blocks.K`` stands for each block of a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from conformance.model import ArgumentRule, Number, Parameters, Tensor
from conformance.specification import slices
from conformance.specification.tensors import Malformed, fill, is_dyadic, is_number, tensor

_BLOCK = "blocks.K."


def parameters(value: Any, rule: ArgumentRule) -> Parameters:
    """The parameters that ``value`` stands for: ``{name: tensor, …}`` or ``{fill: …, set: …}``.

    Beside a fill, ``reversed: true`` names them in the opposite order, which has no meaning.

    Raises Malformed where a name is unknown or missing, or a tensor is none.
    """
    if not isinstance(value, dict):
        raise Malformed("parameters are {name: tensor, …} or {fill: {seed, sizes, …}, set: …}")
    if "fill" not in value:
        tensors = {name: _tensor(item, name) for name, item in value.items()}
        _check_names(tensors, rule)
        return Parameters(tensors=tensors)
    unknown = set(value) - {"fill", "set", "reversed"}
    if unknown:
        raise Malformed(f"unknown key {min(map(str, unknown))!r} beside fill")
    tensors = _drawn(value["fill"], rule)
    changes = value.get("set", {})
    if not isinstance(changes, dict):
        raise Malformed("set is {name[slice]: value, …}", "set")
    for target, item in changes.items():
        try:
            _change(tensors, str(target), item)
        except Malformed as error:
            raise Malformed(str(error), "set", str(target), *error.path) from None
    turned = value.get("reversed", False)
    if not isinstance(turned, bool):
        raise Malformed("reversed is true or false", "reversed")
    return Parameters(tensors=dict(reversed(tensors.items())) if turned else tensors)


def _change(tensors: dict[str, Tensor], target: str, item: Any) -> None:
    """Replaces what ``target``, a name with an optional slice, selects."""
    name, index = slices.parse_target(target)
    if name not in tensors:
        raise Malformed(f"there is no parameter {name!r}")
    tensors[name] = slices.assign(tensors[name], index, tensor(item))


def expanded(rule: ArgumentRule, blocks: int) -> dict[str, str]:
    """The names and shapes of the parameters of ``rule`` in order, for so many blocks."""
    names: dict[str, str] = {}
    inner = [name for name in rule.shapes if name.startswith(_BLOCK)]
    for name, shape in rule.shapes.items():
        if name not in inner:
            names[name] = shape
        elif name == inner[0]:
            for k in range(blocks):
                names |= {each.replace("K", str(k), 1): rule.shapes[each] for each in inner}
    return names


def _drawn(written: Any, rule: ArgumentRule) -> dict[str, Tensor]:
    """Parameter number i, counted from 0, is a fill with the seed ``seed`` + i.

    A scale of the features (gamma) is drawn around 1, with half the spread.
    """
    if not isinstance(written, dict) or not {"seed", "sizes"} <= set(written):
        raise Malformed("a fill of parameters is {seed, sizes} and maybe blocks and scale", "fill")
    unknown = set(written) - {"seed", "sizes", "blocks", "scale"}
    if unknown:
        raise Malformed(f"unknown key {min(map(str, unknown))!r}", "fill")
    seed, scale = _whole(written, "seed"), written.get("scale", 1)
    if not is_number(scale) or not is_dyadic(scale):
        raise Malformed("scale is a binary fraction, so that all is exact", "fill", "scale")
    repeated = any(name.startswith(_BLOCK) for name in rule.shapes)
    if repeated != ("blocks" in written):
        raise Malformed("blocks belongs to the parameters of a model, which need it", "fill")
    names = expanded(rule, _whole(written, "blocks") if repeated else 0)
    sizes = _sizes(written["sizes"], names)
    tensors: dict[str, Tensor] = {}
    for position, (name, symbols) in enumerate(names.items()):
        shape = tuple(sizes[symbol] for symbol in _symbols(symbols))
        tensors[name] = _parameter(name, seed + position, shape, scale)
    return tensors


def _parameter(name: str, seed: int, shape: tuple[int, ...], scale: Number) -> Tensor:
    if name.endswith("gamma"):
        return fill(seed, shape, Decimal(scale) / 2, 1)
    return fill(seed, shape, scale)


def _sizes(written: Any, names: dict[str, str]) -> dict[str, int]:
    wanted = {symbol for shape in names.values() for symbol in _symbols(shape)}
    if not isinstance(written, dict) or set(written) != wanted:
        raise Malformed(f"sizes gives {', '.join(sorted(wanted))}", "fill", "sizes")
    return {symbol: _whole(written, symbol, "sizes") for symbol in written}


def _whole(written: dict[str, Any], key: str, *path: str) -> int:
    value = written[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Malformed(f"{key} is a whole number, not negative", "fill", *path, key)
    return value


def _symbols(shape: str) -> Iterator[str]:
    """``"[d, f]"`` as d and f."""
    yield from re.findall(r"\w+", shape)


def _tensor(value: Any, *path: str) -> Tensor:
    try:
        return tensor(value)
    except Malformed as error:
        raise Malformed(str(error), *path, *error.path) from None


def _check_names(tensors: dict[str, Tensor], rule: ArgumentRule) -> None:
    """Exactly the parameters of the operation, if it names any, of as many blocks as are named."""
    if not rule.shapes:
        return  # any names: the operation does the same to all of them
    named = {int(found[1]) for name in tensors if (found := re.match(r"blocks\.(\d+)\.", name))}
    # Blocks count from 0 without a gap, so there are no more than the names that are written.
    wanted = expanded(rule, min(max(named, default=-1) + 1, len(tensors)))
    for name in tensors:
        if name not in wanted:
            raise Malformed(f"there is no parameter {name!r}; there is {', '.join(wanted)}")
    for name in wanted:
        if name not in tensors:
            raise Malformed(f"the parameter {name!r} is missing")
