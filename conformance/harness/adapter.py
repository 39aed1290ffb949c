"""``Adapter``: the few lines that make an implementation a backend.

A subclass has one method an operation, named and with arguments named as in
``spec/operations.yaml``, in the arrays of its own library::

    class MyBackend(conformance.Adapter):
        def layer_norm(self, x, gamma, beta, *, eps):
            return my_library.layer_norm(x, gamma, beta, eps)

An operation without a method is unsupported. Gradients come from ``layer_norm_vjp(upstream, x,
gamma, beta, *, eps) -> dict`` where they are written by hand, or from one ``vjp`` for all where
the library differentiates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from conformance.errors import Rejected
from conformance.harness.returned import collect
from conformance.harness.signatures import mismatch
from conformance.harness.wording import legible, told
from conformance.model import Answer, Description, Question, Status

#: Raised in an adapter's own lines, these are slips of the adapter, not rejections of the input.
_SLIPS = (AttributeError, NameError, ImportError)


class Adapter:
    """Base class of backends written in Python; see the module for what to write.

    Class attributes: ``name`` (default: the file or class name), ``language``, ``device`` and the
    ``dtypes`` the implementation has. ``run_dtype`` is the dtype of the question at hand, for
    operations that are given no array that has it, such as ``initialize``.
    """

    name: str = ""
    language: str = "Python"
    device: str = "cpu"
    dtypes: tuple[str, ...] = ("float64", "float32")
    run_dtype: str = "float64"

    #: The arrays that were handed over for the question at hand, with what was in them.
    _given: list[tuple[str, Any, bytes]]

    # ------------------------------------------------------------------ what a subclass may give

    def versions(self) -> dict[str, str]:
        """Names and versions of what is judged, for the report."""
        return {}

    def to_native(self, array: np.ndarray) -> Any:
        """A NumPy array (of the run's dtype, int64 or bool) as an array of the library."""
        return array

    def to_numpy(self, native: Any) -> Any:
        """An array of the library as a NumPy array, in the dtype it has."""
        return native

    def evaluate(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Call the operation's method. Override to compile calls or to move data."""
        return getattr(self, operation)(**arguments)

    #: ``vjp(operation, upstream, arguments, wrt) -> dict``: one method for every gradient, where
    #: the library differentiates ``self.<operation>`` itself. ``upstream`` and ``arguments`` hold
    #: arrays of the library and Python numbers; the result maps the names in ``wrt`` to gradients.
    vjp: Callable[[str, Any, Mapping[str, Any], tuple[str, ...]], Mapping[str, Any]] | None = None

    # --------------------------------------------------------------------------------- a backend

    def describe(self) -> Description:
        """What the report says of this backend."""
        return Description(
            name=self.name or type(self).__name__,
            language=self.language,
            versions=self.versions(),
            device=self.device,
            dtypes=self.dtypes,
            operations=tuple(name for name in self._public() if not name.endswith("_vjp")),
        )

    def answer(self, question: Question) -> Answer:
        """Answer ``question`` through the method of its operation; never raises an Exception.

        An exception of the implementation is a rejection. It is an error where it can only be a
        slip: a signature that doesn't fit, or an AttributeError, NameError or ImportError raised
        in the adapter's own lines. A NotImplementedError raised there makes the question
        unsupported.
        """
        if question.dtype not in self.dtypes:
            return Answer(status="unsupported", message=f"{self.name} has no {question.dtype}")
        by_hand = self._by_hand(question)
        method = by_hand or self._method(question)
        if method is None:
            return Answer(status="unsupported", message=self._missing(question))
        unfit = mismatch(method, question, ("upstream",) if by_hand else ())
        if unfit:
            return Answer(status="error", message=unfit)
        self.run_dtype = question.dtype
        # A floating-point warning that is turned into an exception must not pass for a rejection.
        with np.errstate(all="ignore"):
            try:
                result = self._result(question)
            except Rejected as rejected:
                return _refusal("rejected", rejected, kind=rejected.kind)
            except MemoryError:
                raise  # out of memory is a crash, wherever it shows
            except Exception as error:  # whatever an implementation raises is its answer
                return self._raised(error)
            changed = tuple(name for name, *given in self._given if self._differs(*given))
            answer = collect(question, result, self.to_numpy)
            return msgspec.structs.replace(answer, changed=changed)

    # ------------------------------------------------------------------------------------- inside

    def _method(self, question: Question) -> Callable[..., Any] | None:
        method = getattr(self, question.operation, None)
        usable = callable(method) and (question.mode == "evaluate" or self.vjp is not None)
        return method if usable else None

    def _missing(self, question: Question) -> str:
        """What is not there, and what there is under a name that looks like a slip."""
        from difflib import get_close_matches  # only where something is missing

        wanted = question.operation
        if question.mode == "vjp" and hasattr(self, wanted):
            wanted += "_vjp"
        names = [
            name
            for name in self._public()
            if name != question.operation
            and not name.startswith(wanted)
            # a gradient beside its operation is meant as it is
            and not (name.endswith("_vjp") and hasattr(self, name.removesuffix("_vjp")))
        ]
        near = get_close_matches(wanted, names, n=1, cutoff=0.75)
        return f"no method for {self._wanted(question)}" + "".join(f"; there is {n}" for n in near)

    def _wanted(self, question: Question) -> str:
        operation = question.operation
        if question.mode == "evaluate" or not hasattr(self, operation):
            return operation
        return f"the gradient of {operation} (neither {operation}_vjp nor vjp)"

    def _public(self) -> list[str]:
        """The methods that a subclass has added."""
        return [
            name
            for name in dir(type(self))
            if not name.startswith("_")
            and not hasattr(Adapter, name)
            and callable(getattr(type(self), name))
        ]

    def _by_hand(self, question: Question) -> Callable[..., Any] | None:
        """The gradient that is asked for, where it is written by hand and there is a value."""
        if question.mode == "evaluate" or getattr(self, question.operation, None) is None:
            return None
        method = getattr(self, f"{question.operation}_vjp", None)
        return method if callable(method) else None

    def _result(self, question: Question) -> Any:
        """What the implementation returns, in its own arrays."""
        self._given = []
        arguments = {name: self._native(value, name) for name, value in question.arguments.items()}
        if question.mode == "evaluate":
            return self.evaluate(question.operation, arguments)
        upstream = {
            name: self._native(value, f"upstream {name}")
            for name, value in question.upstream.items()
        }
        seed = upstream if len(upstream) > 1 else next(iter(upstream.values()))
        by_hand = self._by_hand(question)
        if by_hand is not None:
            return by_hand(seed, **arguments)
        assert self.vjp is not None  # _method has seen to it
        return self.vjp(question.operation, seed, arguments, question.wrt)

    def _differs(self, native: Any, before: bytes) -> bool:
        """Whether an array of the library has other numbers than ``before`` the call."""
        with suppress(Exception):  # it may be gone, or have become what can't be read
            return np.asarray(self.to_numpy(native)).tobytes() != before
        return False

    def _native(self, value: Any, name: str) -> Any:
        """``value`` in the arrays of the library, remembered, so that a change is seen."""
        if isinstance(value, np.ndarray):
            native = self.to_native(value)
            if native is not value:  # whoever asks has a copy of that
                with suppress(Exception):  # what can't be read back can't be compared
                    before = np.asarray(self.to_numpy(native)).tobytes()
                    self._given.append((name, native, before))
            return native
        if isinstance(value, Mapping):
            return {inner: self._native(item, inner) for inner, item in value.items()}
        return value

    def _raised(self, error: Exception) -> Answer:
        """What an exception says: a rejection, but for some that come from the adapter's lines."""
        file, line = _raised_at(error)
        own = {_source(cls) for cls in type(self).__mro__ if cls not in (Adapter, object)}
        where = f" ({Path(file).name}:{line})" if file in own else ""
        if isinstance(error, NotImplementedError) and file in own:
            return Answer(status="unsupported", message=f"{told(error)}{where}")
        slip = isinstance(error, _SLIPS) and file in own
        return _refusal("error" if slip else "rejected", error, where)


def _refusal(status: Status, error: Exception, where: str = "", kind: str | None = None) -> Answer:
    message = f"{told(error)}{where}"
    return Answer(status=status, kind=kind, message=message, legible=legible(error))


def _raised_at(error: Exception) -> tuple[str, int]:
    """File and line that raised; a library's ``__getattr__`` stands for the one that misspelled."""
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append((traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    while frames and frames[-1][0].co_name == "__getattr__":
        frames.pop()
    return (frames[-1][0].co_filename, frames[-1][1]) if frames else ("", 0)


def _source(cls: type) -> str:
    try:
        return inspect.getsourcefile(cls) or ""
    except TypeError:
        return ""
