"""The wording of verdicts and of a whole report, the same in the terminal, Markdown and JUnit.

Messages come from the backend and are hostile until shown otherwise: ``visible`` takes from them
whatever a terminal, a browser or an XML parser would obey, and their lines are quoted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from conformance.model import VERDICTS, Diagnosis, Report, Verdict, VerdictName
from conformance.model.verdicts import NOT_DIAGNOSED
from conformance.report.causes import RootCause, measured, root_causes, severity
from conformance.report.numbers import share_of_bound, short

#: A longer message is cut in text; the JSON report has all of it.
LONGEST_MESSAGE = 2000

#: So many root causes are told in full by ``cause_lines``, the others by name and count.
CAUSES_IN_FULL = 3

#: What was asked but not judged.
UNJUDGED: tuple[VerdictName, ...] = ("unsupported", "no-verdict")


def visible(text: str) -> str:
    """``text`` with everything but lines and printable characters shown as its escape."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line if line.isprintable() else _escaped(line) for line in lines)


def _escaped(line: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in line
    )


# --------------------------------------------------------------------------------- one verdict


def place(verdict: Verdict) -> str:
    """``case [mode dtype]``: what names a verdict within a report."""
    return visible(f"{verdict.case} [{verdict.mode} {verdict.dtype}]")


def headline(verdict: Verdict) -> str:
    """One line for tables and attributes: the message's first line, the element, the error."""
    ratio = measured(verdict)
    error = "" if ratio is None else f"error {share_of_bound(ratio)}"
    known = " or ".join(each.fault for each in verdict.diagnosis or ())
    parts = (_first_line(verdict), _values(verdict), error, f"diagnosis {known}" if known else "")
    return visible("; ".join(part for part in parts if part)).replace("\n", " ") or verdict.verdict


def failure_text(verdict: Verdict) -> str:
    """Everything known about a verdict, for people, as plain lines without a final newline.

    The first line names case, mode, dtype and verdict; then come the message, the worst element,
    the error against the bound, the clauses, the root cause, and every fault that explains it.
    """
    lines = [f"{place(verdict)}: {verdict.verdict}", *_quoted(verdict.message)]
    lines += [f"  {line}" for line in (_values(verdict), _error(verdict)) if line]
    if verdict.kind_right is False:
        lines.append("  rejected with another kind than the specification names")
    if verdict.clauses:
        lines.append(f"  clauses: {', '.join(verdict.clauses)}")
    if verdict.because is not None:
        lines.append(f"  because: {verdict.because} (it fails too, and this is built on it)")
    return visible("\n".join(lines + _diagnosis_lines(verdict)))


def _quoted(message: str) -> list[str]:
    """The lines of a message, marked so that none can pass for a line of ours."""
    cut = len(message) - LONGEST_MESSAGE
    lines = visible(message[:LONGEST_MESSAGE].rstrip()).split("\n") if message.strip() else []
    return [f"  | {line}" for line in lines] + [f"  | ... {cut} characters more"] * (cut > 0)


def _first_line(verdict: Verdict) -> str:
    return _cut(verdict.message.strip().partition("\n")[0])


def _further_lines(verdict: Verdict, most: int = 3) -> list[str]:
    """What a message says after its first line, such as what can be said of an unknown mistake."""
    further = visible(verdict.message.strip()).split("\n")[1 : 1 + most]
    return [_cut(line) for line in further]


def _cut(line: str, most: int = 200) -> str:
    return line if len(line) <= most else f"{line[:most]} …"


def _values(verdict: Verdict) -> str:
    """``y[0, 1]: got 0.7, want 0.9``; empty where neither is known."""
    element = verdict.output or ""
    if element and verdict.mode == "vjp":
        element = f"gradient of {element}"
    if verdict.index:
        element += f"[{', '.join(map(str, verdict.index))}]"
    known = (("got", verdict.got), ("want", verdict.want))
    told = ", ".join(f"{word} {value}" for word, value in known if value is not None)
    return ": ".join(part for part in (element, told) if part) if told else ""


def _error(verdict: Verdict) -> str:
    """``error 6.6e+13 x the bound 4.4e-16 (1.3e+15 ulp, 0.5 correct digits)``."""
    bound = "" if verdict.bound is None else f"{verdict.bound:.3g}".replace("inf", "infinite")
    told = f"bound {bound}" if bound else ""
    if (ratio := measured(verdict)) is not None:
        told = f"error {share_of_bound(ratio)} {bound}".rstrip()
    measures = []
    if verdict.ulps is not None and math.isfinite(verdict.ulps):
        measures.append(f"{short(verdict.ulps)} ulp")
    if verdict.digits is not None and math.isfinite(verdict.digits):
        measures.append(f"{verdict.digits:.1f} correct digits")
    return told + (f" ({', '.join(measures)})" if told and measures else "")


def _diagnosis_lines(verdict: Verdict) -> list[str]:
    known = verdict.diagnosis or ()
    if not known:
        undiagnosed = verdict.verdict == "fail" and measured(verdict) is not None
        undiagnosed = undiagnosed and NOT_DIAGNOSED not in verdict.message
        return ["  diagnosis: no known mistake gives this answer"] if undiagnosed else []
    if len(known) == 1:
        return [f"  diagnosis: {known[0].fault}: {known[0].says}", *_remedy(known[0], "    ")]
    lines = [f"  diagnosis: each of {len(known)} faults gives this answer"]
    for each in known:
        lines += [f"    {each.fault}: {each.says}", *_remedy(each, "      ")]
    return lines


def _remedy(diagnosis: Diagnosis, margin: str) -> list[str]:
    return [f"{margin}breaks {diagnosis.clause}", f"{margin}mend: {diagnosis.mend}"]


# --------------------------------------------------------------------------------- all verdicts


def counts(verdicts: Iterable[Verdict]) -> dict[VerdictName, int]:
    """How many verdicts there are of each name, in the order of ``VERDICTS``, zeros included."""
    found = Counter(verdict.verdict for verdict in verdicts)
    return {name: found[name] for name in VERDICTS}


def worst(verdicts: Iterable[Verdict]) -> tuple[Verdict, float] | None:
    """The verdict with the largest share of its bound, and the share; None if none was measured."""
    ratios = ((verdict, measured(verdict)) for verdict in verdicts)
    known = [(verdict, ratio) for verdict, ratio in ratios if ratio is not None]
    return max(known, key=lambda each: severity(each[1]), default=None)


def totals_text(report: Report) -> str:
    """``212 pass, 24 fail, 4 unsupported of 240``, and what a run that was cut short left out."""
    found = counts(report.verdicts)
    told = ", ".join(f"{n} {name}" for name, n in found.items() if n or name in {"pass", "fail"})
    missing = report.planned - report.run
    cut = f"; cut short: {missing} of {report.planned} planned were not run" if missing else ""
    return f"{told} of {len(report.verdicts)}{cut}"


def summary_lines(report: Report, asked: str = "BACKEND") -> tuple[str, ...]:
    """A report in about twenty lines: totals, then what to mend, root causes first.

    ``asked`` is what the backend is called on the command line.
    """
    verdicts = report.verdicts
    lines = [f"{report.backend.name}: {totals_text(report)}"]
    lines += [f"note: {note}" for note in report.notes]
    if largest := worst(verdict for verdict in verdicts if verdict.verdict == "pass"):
        lines.append(f"worst that passes: {share_of_bound(largest[1])}, {place(largest[0])}")
    for name in UNJUDGED:
        unjudged = [verdict for verdict in verdicts if verdict.verdict == name]
        lines += [f"{name}: {_by_operation(unjudged)}"] if unjudged else []
        lines += [f"   {hint}" for hint in sorted(_near_names(unjudged))]
    if other := [verdict for verdict in verdicts if verdict.kind_right is False]:
        lines.append(f"rejected with another kind than specified: {_by_operation(other)}")
    if all(verdict.verdict in UNJUDGED for verdict in verdicts):
        lines.append("nothing received a verdict")
    told = cause_lines(report, asked)
    return (*visible("\n".join(lines)).split("\n"), *(("", *told) if told else ()))


def _near_names(unsupported: Iterable[Verdict]) -> set[str]:
    """What a backend lacks and has under a name that looks like a slip."""
    messages = {verdict.message for verdict in unsupported if verdict.verdict == "unsupported"}
    return {message for message in messages if "; there is " in message}


def cause_lines(report: Report, asked: str = "BACKEND") -> tuple[str, ...]:
    """What to mend: the largest group first, dependants last; empty where all pass."""
    causes = root_causes(report.verdicts)
    if not causes.failures:
        return ()
    lines = ["what to mend, root causes first:"]
    for number, cause in enumerate(causes.roots[:CAUSES_IN_FULL], 1):
        count = f"{len(cause.failures)} of {causes.failures} failures"
        lines += [f"{number}. {_name(cause)}: {count}{_where(cause, report)}", *_details(cause)]
    if rest := causes.roots[CAUSES_IN_FULL:]:
        told = ", ".join(f"{_name(cause)} {len(cause.failures)}" for cause in rest)
        lines.append(f"and {len(rest)} more: {told}")
    if causes.dependants:
        reasons = sorted({verdict.because for verdict in causes.dependants if verdict.because})
        told = _by_operation(causes.dependants)
        lines.append(f"dependants: {told}; mend {', '.join(reasons)} first")
    if causes.roots:
        lines.append(f"next: conformance explain {causes.roots[0].worst.case} --backend {asked}")
    return tuple(visible("\n".join(lines)).split("\n"))


def _name(cause: RootCause) -> str:
    if cause.diagnosis is not None:
        return f"fault {cause.diagnosis.fault}"
    verdict = cause.failures[0]
    if verdict.verdict != "fail" or measured(verdict) is None:
        return f"{verdict.operation} {verdict.verdict}"
    if NOT_DIAGNOSED in verdict.message:
        return f"{verdict.operation} fail, not diagnosed"
    return f"{verdict.operation} fail, no known mistake"


def _where(cause: RootCause, report: Report) -> str:
    """`` (layer_norm 6; dependants block 8; float32 only)``."""
    parts = [_by_operation(cause.roots)]
    if cause.dependants:
        parts.append(f"dependants {_by_operation(cause.dependants)}")
    operations = {verdict.operation for verdict in cause.failures}
    judged = [
        verdict
        for verdict in report.verdicts
        if verdict.operation in operations and verdict.verdict not in UNJUDGED
    ]
    for noun in ("mode", "dtype"):
        failing = {getattr(verdict, noun) for verdict in cause.failures}
        if len(failing) == 1 and len({getattr(verdict, noun) for verdict in judged}) > 1:
            parts.append(f"{failing.pop()} only")
    return f" ({'; '.join(parts)})"


def _details(cause: RootCause) -> list[str]:
    lines = []
    if cause.diagnosis is not None:
        lines = [cause.diagnosis.says, "; ".join(_remedy(cause.diagnosis, ""))]
        if cause.coinciding:
            names = ", ".join(each.fault for each in cause.coinciding)
            lines.append(f"explained by {names} as well; these cases can't tell them apart")
    elif clauses := Counter(clause for verdict in cause.failures for clause in verdict.clauses):
        lines = [f"clauses: {', '.join(clause for clause, _ in clauses.most_common(5))}"]
    lines.append(f"worst: {place(cause.worst)}")
    if cause.diagnosis is None and (message := _first_line(cause.worst)):
        lines.append(message)
        lines += [f"| {line}" for line in _further_lines(cause.worst)]
    if told := "; ".join(part for part in (_values(cause.worst), _error(cause.worst)) if part):
        lines.append(told)
    return [f"   {line}" for line in lines]


def _by_operation(verdicts: Iterable[Verdict]) -> str:
    found = Counter(verdict.operation for verdict in verdicts)
    return ", ".join(f"{operation} {count}" for operation, count in found.most_common())
