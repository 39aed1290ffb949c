"""What was found of a backend."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from conformance.model.exchange import Description
from conformance.model.operations import Mode
from conformance.precision import Dtype

VerdictName = Literal["pass", "fail", "error", "crash", "timeout", "unsupported", "no-verdict"]
VERDICTS: tuple[VerdictName, ...] = get_args(VerdictName)

#: How the message begins of a rejection whose valid twin was not answered either: it follows from
#: another failure.
NOT_COUNTED = "does not count"

#: The line of a message after which it shows what the backend printed.
PRINTED = "it printed last:"

#: How the message begins of a crash that stands for a question that was not asked.
NOT_ASKED = "not asked"

#: How the message begins of a failure that is a rejection where none is due.
REFUSED = "rejected valid arguments"

#: How the last line begins of a failure whose mistake was not looked for; then it says why.
NOT_DIAGNOSED = "not diagnosed:"

#: How the line begins that tells what is known of a failure that no known mistake explains.
DIAGNOSED = "no known mistake, but"


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

    ``kit`` and ``specification`` have the version and the digests; ``selection`` the patterns;
    ``notes`` what is no verdict and yet worth a look.
    """

    format: Literal["conformance-report/1"] = "conformance-report/1"
    kit: dict[str, str]
    specification: dict[str, str]
    backend: Description
    environment: dict[str, str]
    selection: tuple[str, ...] = ()
    dtypes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    planned: int
    run: int
    totals: dict[str, int]
    verdicts: tuple[Verdict, ...]
