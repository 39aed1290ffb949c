"""What travels to a backend and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from conformance.model.operations import Layout, Mode
from conformance.precision import Dtype

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    #: An array of the run's dtype (or int64, bool).
    Array: TypeAlias = npt.NDArray[np.generic]
    #: What an argument of a question can be. ``None`` is an optional argument left out.
    Argument: TypeAlias = Array | float | int | bool | dict[str, Array] | None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What travels to a backend. No expectation, no tolerance, no case id.

    ``arguments`` has arrays of ``dtype`` (reals), int64 arrays (indices) and Python numbers
    (attributes), by name, and parameters as a dict of arrays; an optional argument that is left
    out is absent. For ``evaluate``, ``outputs`` names the results asked for. For ``vjp``,
    ``upstream`` is the gradient with respect to each output, and the results asked for are the
    gradients with respect to ``wrt``: arguments, and parameters by their own names. A backend gets
    its arrays in the ``layout``; in a question that only travels they are contiguous.
    """

    operation: str
    mode: Mode
    dtype: Dtype
    arguments: dict[str, Any]  # name -> Argument
    outputs: tuple[str, ...] = ()
    upstream: dict[str, Any] = {}  # output -> Array
    wrt: tuple[str, ...] = ()
    layout: Layout = "contiguous"


Status = Literal["outputs", "rejected", "unsupported", "error", "crash", "timeout"]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. ``outputs`` by output name; for ``vjp`` by argument or parameter name.

    A gradient that is absent has no key; a gradient of zero is an array of zeros. ``kind`` is the
    kind given with a rejection. ``legible`` is False where the text of ``message`` could not be
    encoded, and only what could be shown of it is there. ``changed`` names arguments that the
    backend wrote into.
    """

    status: Status = "outputs"
    outputs: dict[str, Any] = {}  # name -> Array
    kind: str | None = None
    message: str = ""
    legible: bool = True
    changed: tuple[str, ...] = ()


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend says of itself; ``source`` is a digest of the file it was loaded from."""

    name: str
    language: str = "Python"
    versions: dict[str, str] = {}
    device: str = "cpu"
    dtypes: tuple[str, ...] = ("float64", "float32")
    operations: tuple[str, ...] = ()
    source: str = ""


@runtime_checkable
class Backend(Protocol):
    """Whatever answers questions. ``conformance.Adapter`` is the easy way to be one."""

    name: str

    def describe(self) -> Description:
        """Language, versions, device, dtypes and operations."""
        ...

    def answer(self, question: Question) -> Answer:
        """Answer one question; the arrays of the question belong to the caller."""
        ...
