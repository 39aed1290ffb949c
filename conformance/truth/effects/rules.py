"""Which rules of the reference a computation comes to, and which ones a fault replaces.

A fault that replaces none of the rules that a case comes to changes nothing there, and needs no
evaluation: most faults touch few operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.truth.reference import Reference

#: The names of all rules.
RULES: tuple[str, ...] = tuple(
    name
    for part in reversed(Reference.__mro__[:-1])
    for name, rule in vars(part).items()
    if callable(rule) and not name.startswith("_")
)


#: What was found, for it is asked of every fault in every case.
_REPLACED: dict[type[Reference], frozenset[str]] = {}


def replaced(reference: type[Reference]) -> frozenset[str]:
    """The rules that ``reference`` does otherwise than the specification.

    All of them where it reads other numbers than it is given.
    """
    if reference not in _REPLACED:
        reads = getattr(reference, "reads", None) is not None
        _REPLACED[reference] = frozenset(
            name
            for name in RULES
            if reads or getattr(reference, name) is not getattr(Reference, name)
        )
    return _REPLACED[reference]


def recording() -> tuple[Reference, set[str]]:
    """A reference, and the names of the rules that it has come to, which grow as it is used."""
    reached: set[str] = set()
    members = {name: _recorded(name, reached) for name in RULES}
    reference: Reference = type("Recording", (Reference,), members)()
    return reference, reached


def _recorded(name: str, reached: set[str]) -> Callable[..., Any]:
    rule = getattr(Reference, name)

    def recorded(*positional: Any, **named: Any) -> Any:
        reached.add(name)
        return rule(*positional, **named)

    return recorded
