"""The nouns: plain, frozen data that every room of the house hands to the next.

Nothing here computes or touches a file. NumPy is named in annotations only, so importing this
module stays cheap. The glossary is in ``README.md``; the words are the same everywhere.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import msgspec

from conformance.precision import Dtype

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    #: An array of the run's dtype (or int64, bool).
    Array: TypeAlias = npt.NDArray[np.generic]
    #: What an argument of a question can be. ``None`` is an optional argument left out.
    Argument: TypeAlias = Array | float | int | bool | dict[str, Array] | None

Mode = Literal["evaluate", "vjp"]
TensorDtype = Literal["real", "float64", "float32", "int64", "int32", "bool"]
Number: TypeAlias = int | Decimal

# ---------------------------------------------------------------------------- specification


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


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """One normative statement. ``decision`` says why, where the documents are silent or disagree.

    ``unseparated`` says why no fault breaks it, for a clause that none can.
    """

    id: str
    text: str
    document: str
    section: str
    sources: tuple[str, ...] = ()
    decision: str | None = None
    unseparated: str | None = None


class Tensor(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Exact numbers with a shape, row-major. ``dtype`` ``real`` means the run's dtype."""

    shape: tuple[int, ...]
    data: tuple[Number, ...]
    dtype: TensorDtype = "real"


class FromOutput(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An argument that is the output of an earlier call of the same case."""

    call: str
    output: str


class Parameters(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An argument that is many tensors, each with a name of its own."""

    tensors: dict[str, Tensor]


Given: TypeAlias = Tensor | FromOutput | Parameters | int | Decimal | bool


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What one question of a case is made from, in exact numbers.

    ``wrt`` names arguments, and parameters by their own names; ``outputs`` the outputs asked for
    where they are not all.
    """

    given: dict[str, Given]
    outputs: tuple[str, ...] = ()
    upstream: dict[str, Tensor] = {}
    wrt: tuple[str, ...] = ()

    def differentiable(self, operation: Operation) -> tuple[str, ...]:
        """Everything given that has a gradient, in the order of the operation's arguments."""
        names: list[str] = []
        for name in operation.differentiable:
            value = self.given.get(name)
            if isinstance(value, Parameters):
                names += value.tensors
            elif value is not None:
                names.append(name)
        return tuple(names)


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
    """Two outputs agree within their two bounds, or in every bit."""

    left: tuple[str, str]
    right: tuple[str, str]
    where: str = ""
    identical: bool = False


class Differ(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Two outputs differ, by more than their two bounds, somewhere in ``where``."""

    left: tuple[str, str]
    right: tuple[str, str]
    where: str = ""


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
    """The elements of an output look like draws of a distribution around 0.

    ``size`` is the standard deviation of a normal distribution, the limit of a uniform one.
    """

    term: tuple[str, str]
    distribution: Literal["normal", "uniform"]
    size: Decimal | int


Relation: TypeAlias = Same | Differ | Combination | MeanSquare | Less | Greater | Drawn


class Relations(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What must hold between the outputs of the calls, whatever their values."""

    relate: tuple[Relation, ...]


Expectation: TypeAlias = Values | Rejection | Undefined | Relations


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One fixture. A case with a single call names it ``""``.

    ``free`` says why its values are not determined, or not to within a bound: its relations alone
    are judged then, without any allowance.
    """

    id: str
    title: str
    operation: str
    mode: Mode
    clauses: tuple[str, ...]
    sources: tuple[str, ...]
    calls: dict[str, Call]
    expectation: Expectation
    dtypes: tuple[Dtype, ...]
    derived: str | None = None
    degenerate: str | None = None
    free: str | None = None
    file: str = ""
    line: int = 0

    @property
    def family(self) -> str:
        """The folder under ``spec/cases``, which is the first part of the id."""
        return self.id.partition("/")[0]


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A statement about the mathematics alone; ``case`` holds its calls and its claim.

    ``fault`` computes the values as a known mistake would (a wrong value that a document prints);
    ``central_difference`` claims that differences at ``step`` agree with the gradient.
    """

    case: Case
    fault: str | None = None
    central_difference: CentralDifference | None = None


class CentralDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Central differences at ``step`` in ``dtype`` lie ``within`` of the gradient everywhere."""

    step: Decimal
    within: Decimal
    dtype: Dtype = "float64"


class Erratum(msgspec.Struct, frozen=True, kw_only=True):
    """A figure or statement of a document that is wrong, and the reading used instead."""

    id: str
    document: str
    where: str
    printed: str
    right: str
    reason: str
    kind: str
    cases: tuple[str, ...] = ()


# ------------------------------------------------------------------------ question and answer


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What travels to a backend. No expectation, no tolerance, no case id.

    ``arguments`` has arrays of ``dtype`` (reals), int64 arrays (indices) and Python numbers
    (attributes), by name, and parameters as a dict of arrays; an optional argument that is left
    out is absent. For ``evaluate``, ``outputs`` names the results asked for. For ``vjp``,
    ``upstream`` is the gradient with respect to each output, and the results asked for are the
    gradients with respect to ``wrt``: arguments, and parameters by their own names.
    """

    operation: str
    mode: Mode
    dtype: Dtype
    arguments: dict[str, Any]  # name -> Argument
    outputs: tuple[str, ...] = ()
    upstream: dict[str, Any] = {}  # output -> Array
    wrt: tuple[str, ...] = ()


Status = Literal["outputs", "rejected", "unsupported", "error", "crash", "timeout"]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. ``outputs`` by output name; for ``vjp`` by argument or parameter name.

    A gradient that is absent has no key; a gradient of zero is an array of zeros. ``kind`` is the
    kind given with a rejection. ``changed`` names arguments that the backend wrote into.
    """

    status: Status = "outputs"
    outputs: dict[str, Any] = {}  # name -> Array
    kind: str | None = None
    message: str = ""
    changed: tuple[str, ...] = ()


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend says of itself."""

    name: str
    language: str = "Python"
    versions: dict[str, str] = {}
    device: str = "cpu"
    dtypes: tuple[str, ...] = ("float64", "float32")
    operations: tuple[str, ...] = ()


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


# -------------------------------------------------------------------------------- verdict

VerdictName = Literal["pass", "fail", "error", "crash", "timeout", "unsupported", "no-verdict"]
VERDICTS: tuple[VerdictName, ...] = get_args(VerdictName)


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """A known mistake that gives the answer that came."""

    fault: str
    says: str
    mend: str
    clause: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of one case in one dtype. ``ratio`` is error / bound at the worst element."""

    case: str
    operation: str
    mode: Mode
    dtype: Dtype
    verdict: VerdictName
    message: str = ""
    kind_right: bool | None = None
    ratio: float | None = None
    output: str | None = None
    index: tuple[int, ...] | None = None
    got: str | None = None
    want: str | None = None
    bound: float | None = None
    ulps: float | None = None
    digits: float | None = None
    clauses: tuple[str, ...] = ()
    because: str | None = None
    diagnosis: tuple[Diagnosis, ...] | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All verdicts of one backend. ``planned`` and ``run`` differ where a run was cut short.

    ``kit`` and ``specification`` have the version and the digests; ``selection`` the patterns.
    """

    format: Literal["conformance-report/1"] = "conformance-report/1"
    kit: dict[str, str]
    specification: dict[str, str]
    backend: Description
    environment: dict[str, str]
    selection: tuple[str, ...] = ()
    dtypes: tuple[str, ...]
    planned: int
    run: int
    totals: dict[str, int]
    verdicts: tuple[Verdict, ...]
