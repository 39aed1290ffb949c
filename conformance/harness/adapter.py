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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from conformance.errors import Rejected
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
        in the adapter's own lines. A NotImplementedError raised there
        makes the question unsupported.
        """
        if question.dtype not in self.dtypes:
            return Answer(status="unsupported", message=f"{self.name} has no {question.dtype}")
        by_hand = self._by_hand(question)
        method = by_hand or self._method(question)
        if method is None:
            return Answer(status="unsupported", message=self._missing(question))
        mismatch = _signature_mismatch(method, question, ("upstream",) if by_hand else ())
        if mismatch:
            return Answer(status="error", message=mismatch)
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
            return msgspec.structs.replace(self._collect(question, result), changed=changed)

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
        return f"no method for {_wanted(question)}" + "".join(f"; there is {n}" for n in near)

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

    def _collect(self, question: Question, result: Any) -> Answer:
        """The returned arrays by name, or an error that says what came instead."""
        if question.mode == "evaluate" and len(question.outputs) == 1:
            alone = isinstance(result, Mapping) and question.outputs[0] in result
            result = result if alone else {question.outputs[0]: result}
        if not isinstance(result, Mapping):
            wanted = ", ".join(question.outputs or question.wrt)
            return _not_arrays(question, f"returned {_kind(result)}, not a dict of {wanted}")
        wanted_names = question.outputs if question.mode == "evaluate" else question.wrt
        if question.mode == "vjp":
            result = _unfolded(result)
        strangers = set(result) - set(wanted_names) - set(_unfolded(question.arguments))
        if strangers and (question.mode == "vjp" or not set(wanted_names) <= set(result)):
            missing = [name for name in wanted_names if name not in result]
            names = ", ".join(sorted(map(str, strangers)))
            if question.mode == "evaluate":
                message = f"returned {names}, but not {', '.join(missing)}"
            else:
                message = f"returned names that are not asked for: {names}"
            return _not_arrays(question, message)
        outputs: dict[str, np.ndarray] = {}
        for name, value in _each(result, wanted_names):
            if value is None and question.mode == "vjp":
                continue  # an absent gradient; the judge misses what it needs
            try:
                array = self._array(value)
            except Exception as error:
                detail = f"{name}: {_kind(value)} is not an array: {told(error)}"
                return _not_arrays(question, detail)
            if not isinstance(array, np.ndarray):
                return _not_arrays(question, f"{name} is {_kind(array)}, not an array")
            outputs[name] = array
        return Answer(outputs=outputs)

    def _array(self, value: Any) -> Any:
        """What was returned as a NumPy array; whole numbers may come as Python has them."""
        if isinstance(value, np.ndarray):
            return value
        whole = isinstance(value, list | tuple) and all(type(item) is int for item in value)
        if whole or type(value) is int:
            return np.asarray(value, dtype=np.int64)
        array = self.to_numpy(value)
        return np.asarray(array) if isinstance(array, np.generic) else array

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


def _unfolded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments or their gradients by name, the parameters among them by their own names."""
    named: dict[str, Any] = {}
    for name, value in values.items():
        named |= value if isinstance(value, Mapping) else {name: value}
    return named


def _each(result: Mapping[str, Any], wanted: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The results asked for, one by one: many that have one name are ``name.inner`` each."""
    for name in wanted:
        value = result.get(name)
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", item) for inner, item in value.items())
        elif name in result:
            yield name, value


def _wanted(question: Question) -> str:
    if question.mode == "evaluate":
        return question.operation
    return f"the gradient of {question.operation} (neither {question.operation}_vjp nor vjp)"


def _signature_mismatch(
    method: Callable[..., Any], question: Question, leading: tuple[str, ...]
) -> str:
    """Why ``method`` can't take ``leading`` and the arguments of ``question``; empty if it can."""
    signature = _signature(method)
    if signature is None:  # a builtin without a signature: let the call decide
        return ""
    try:
        signature.bind(*leading, **question.arguments)
    except TypeError as error:
        name = getattr(method, "__name__", question.operation)
        asked = ", ".join((*leading, *question.arguments))
        return f"{name}{signature} can't be called with {asked}: {error}"
    return ""


def _signature(method: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a bound method, without self."""
    function = getattr(method, "__func__", None)
    try:
        if function is None:
            return inspect.signature(method)
        return _signature_of_function(function)
    except (TypeError, ValueError):
        return None


@lru_cache(maxsize=256)
def _signature_of_function(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _not_arrays(question: Question, detail: str) -> Answer:
    suffix = "_vjp" if question.mode == "vjp" else ""
    hint = "return arrays that to_numpy turns into numpy.ndarray"
    return Answer(status="error", message=f"{question.operation}{suffix}: {detail}; {hint}")


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


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
