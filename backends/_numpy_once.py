"""NumPy: what the way forward has found is there on the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from conformance import Adapter

T = TypeVar("T")


class Remembering(Adapter):
    """Computes nothing twice of the same arrays, while that is asked for.

    A gradient finds the intermediates of its operation from the arguments, so that it is whole by
    itself and needs nothing handed on from the operation. Where both are found together, in a step
    of training, what both need is remembered.
    """

    _found: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] | None = None

    def _once(self, function: Callable[..., T], *arrays: Any, **settings: Any) -> T:
        """``function(*arrays, **settings)``, remembered by the identity of the arrays."""
        if self._found is None:
            return function(*arrays, **settings)
        key = (function, *map(id, arrays), *settings.values())
        kept = self._found.get(key)
        if kept is None:
            # The arrays are held, so that no other one gets the identity of one that is gone.
            self._found[key] = kept = function(*arrays, **settings), arrays
        result: T = kept[0]
        return result

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """Until the end of the outermost one, no array may be written to.

        It would be taken for what it was.
        """
        outer = self._found
        self._found = {} if outer is None else outer
        try:
            yield
        finally:
            self._found = outer
