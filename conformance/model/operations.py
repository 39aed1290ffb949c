"""What can be asked: the named functions and their arguments."""

from __future__ import annotations

from typing import Literal

import msgspec

Mode = Literal["evaluate", "vjp"]
#: How the arrays of a question lie in memory: last axis fastest, first axis fastest, or every
#: second element of a larger buffer.
Layout = Literal["contiguous", "transposed", "sliced", "padded", "mixed"]


class ArgumentRule(msgspec.Struct, frozen=True, kw_only=True):
    """One argument or attribute of an operation.

    ``kind``: ``real`` (given in the run's dtype), ``index`` (int64), ``count`` (a Python int),
    ``flag`` (a Python bool) or ``parameters`` (real tensors by name). ``shape`` is for people:
    ``[..., d_in]``; ``shapes`` are those of parameters, where ``blocks.K`` stands for each block.
    """

    kind: Literal["real", "index", "count", "flag", "parameters"]
    shape: str = "[]"
    optional: bool = False
    shapes: dict[str, str] = {}


class OutputRule(msgspec.Struct, frozen=True, kw_only=True):
    """One output of an operation: ``real`` in the run's dtype, or ``whole`` numbers of ``dtype``.

    ``named``: not one array but many, each under ``output.name``, as ``shapes.head``.
    """

    kind: Literal["real", "whole"] = "real"
    shape: str = "[]"
    dtype: Literal["int64", "uint64"] = "int64"
    named: bool = False


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A named function: its arguments, attributes (keyword-only), outputs and what it must reject.

    ``uses`` names the operations it is composed of, for finding the root cause of a failure.
    ``free`` says why its values are not determined: only relations between them are.
    """

    name: str
    summary: str
    arguments: dict[str, ArgumentRule]
    attributes: dict[str, ArgumentRule] = {}
    outputs: dict[str, OutputRule]
    uses: tuple[str, ...] = ()
    rejects: dict[str, str] = {}
    free: str | None = None

    def output(self, name: str) -> OutputRule | None:
        """The rule of an output, or of the named outputs that ``name`` is one of."""
        rule = self.outputs.get(name)
        if rule is None:
            rule = self.outputs.get(name.partition(".")[0])
            return rule if rule is not None and rule.named else None
        return None if rule.named else rule

    def rule(self, name: str) -> ArgumentRule | None:
        """The rule of an argument or attribute, or None where there is no such name."""
        return self.arguments.get(name) or self.attributes.get(name)

    @property
    def differentiable(self) -> tuple[str, ...]:
        """Arguments that have gradients: real ones and parameters; attributes never have any.

        None where there is more than one output, or one of whole numbers.
        """
        kinds = ("real", "parameters")
        if [(rule.kind, rule.named) for rule in self.outputs.values()] != [("real", False)]:
            return ()
        return tuple(name for name, rule in self.arguments.items() if rule.kind in kinds)
