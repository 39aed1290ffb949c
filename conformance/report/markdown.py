"""A report as Markdown, for reading and for publishing; several reports side by side.

The dialect is CommonMark with tables. Long texts stand in code blocks whose fence is longer than
any run of backticks in them, so that nothing a backend said is read as Markdown; what stands in a
table is escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from conformance.model import VERDICTS, Mode, Report, Verdict
from conformance.precision import DTYPES, Dtype
from conformance.report.causes import failures
from conformance.report.numbers import share
from conformance.report.text import (
    UNJUDGED,
    cause_lines,
    counts,
    failure_text,
    headline,
    place,
    summary_lines,
    totals_text,
    visible,
    worst,
)

#: How every page begins.
TITLE = "# Conformance of "

#: What a table has a row for.
Row: TypeAlias = tuple[str, Mode, Dtype]

_PLAIN = re.compile(r"[A-Za-z0-9_./:, @+\[\]-]+")
_SPECIAL = re.compile(r"([\\`*_\[\]|~$!#])")


def escape(text: str) -> str:
    """``text`` in one line that Markdown shows as it is, in a table too."""
    line = visible(text).replace("\n", " ")
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", line)


def render(report: Report, *, published: bool, curves: str | None = None) -> str:
    """The page of one backend: header, summary, totals, operations, failures, what isn't judged.

    ``published`` leaves out what changes although nothing about the numerics did: the environment
    (times, machine) and the digests of the kit. ``curves`` is the file beside it that has what
    trainings recorded, if there is one.
    """
    header = list(_header(report, published=published))
    if curves is not None:
        header.append(("losses and gradient norms by step", _name(curves)))
    sections = [
        f"{TITLE}{_name(report.backend.name)}",
        _table(("", ""), header),
        "## Summary",
        _fence(summary_lines(report)),
        "## Totals",
        _table(("verdict", "count"), [(n, str(c)) for n, c in counts(report.verdicts).items()]),
        "## Operations",
        _operations(report.verdicts),
        *_failures(report.verdicts),
        "## Not judged",
        *_unjudged(report),
    ]
    return "\n\n".join(sections) + "\n"


def render_summary(reports: Sequence[Report]) -> str:
    """All backends side by side, where their verdicts differ, and what each has to mend.

    A cell counts the passes among all verdicts of its row; ``worst`` is the largest share of the
    bound that an answer took, passing or not.
    """
    specifications = {tuple(sorted(report.specification.items())) for report in reports}
    sections = [f"{TITLE}the backends"]
    if len(specifications) > 1:
        sections.append("The reports are about different specifications; compare with care.")
    rows = [
        (report.backend.name, *_described(report), _pairs(report.specification))
        for report in reports
    ]
    sections += [
        _table(
            ("backend", "language", "versions", "device", "specification"),
            [(_name(name), *map(escape, rest)) for name, *rest in rows],
        ),
        "## Verdicts",
        _side_by_side(reports),
        "## Differences",
        _differences(reports),
        "## Root causes",
    ]
    for report in reports:
        told = cause_lines(report)
        heading = f"### {_name(report.backend.name)}"
        sections += [heading, escape(totals_text(report)), *([_fence(told)] if told else [])]
    return "\n\n".join(sections) + "\n"


# ------------------------------------------------------------------------------ one backend


def _header(report: Report, *, published: bool) -> Iterator[tuple[str, str]]:
    language, versions, device = _described(report)
    yield "language", escape(language)
    yield "versions", escape(versions)
    yield "device", escape(device)
    yield "dtypes", escape(", ".join(report.dtypes))
    yield "selection", escape(", ".join(report.selection) or "everything")
    yield "specification", escape(_pairs(report.specification))
    if published:
        yield "kit", escape(report.kit.get("version", ""))
    else:
        yield "source", escape(report.backend.source or "unknown")
        yield "kit", escape(_pairs(report.kit))
        yield from ((escape(key), escape(value)) for key, value in report.environment.items())


def _described(report: Report) -> tuple[str, str, str]:
    backend = report.backend
    return backend.language, _pairs(backend.versions), backend.device


def _operations(verdicts: Iterable[Verdict]) -> str:
    head = ("operation", "mode", "dtype", *VERDICTS, "kind right", "worst", "case")
    rows = []
    for row, group in _grouped(verdicts).items():
        largest = worst(group)
        told = (share(largest[1]), _name(largest[0].case)) if largest else ("", "")
        kinds = [verdict.kind_right for verdict in group if verdict.kind_right is not None]
        kind = f"{sum(kinds)}/{len(kinds)}" if kinds else ""
        rows.append((*map(_name, row), *map(str, counts(group).values()), kind, *told))
    return _table(head, rows)


def _failures(verdicts: Iterable[Verdict]) -> Iterator[str]:
    yield "## Failures"
    failed = failures(verdicts)
    if not failed:
        yield "None."
    for operation in dict.fromkeys(verdict.operation for verdict in failed):
        yield f"### {_name(operation)}"
        for verdict in failed:
            if verdict.operation == operation:
                yield _fence([failure_text(verdict)])


def _unjudged(report: Report) -> Iterator[str]:
    """What was planned but has no verdict, and rejections whose kind is wrong: nothing hidden."""
    missing = report.planned - report.run
    if missing:
        yield f"The run was cut short: {missing} of {report.planned} planned were not run."
    groups: dict[tuple[Row, str, str], list[str]] = {}
    whole = Counter(_row(verdict) for verdict in report.verdicts)
    for verdict in report.verdicts:
        if verdict.verdict in UNJUDGED:
            key = _row(verdict), verdict.verdict, escape(headline(verdict))
            groups.setdefault(key, []).append(verdict.case)
    if groups:
        rows = [
            (*map(_name, row), _name(found), why, _all_or(cases, whole[row]))
            for (row, found, why), cases in groups.items()
        ]
        yield _table(("operation", "mode", "dtype", "verdict", "why", "cases"), rows)
    elif not missing:
        yield "Everything that was planned was judged."
    other = [verdict for verdict in report.verdicts if verdict.kind_right is False]
    if other:
        yield "## Rejected with another kind than specified"
        yield _table(
            ("case", "what the backend said"),
            [(_name(place(verdict)), escape(headline(verdict))) for verdict in other],
        )


# ------------------------------------------------------------------------------ side by side


def _side_by_side(reports: Sequence[Report]) -> str:
    columns = [_grouped(report.verdicts) for report in reports]
    rows = _ordered(row for column in columns for row in column)
    return _table(
        ("operation", "mode", "dtype", *(_name(report.backend.name) for report in reports)),
        [(*map(_name, row), *(_cell(column.get(row, ())) for column in columns)) for row in rows],
    )


def _cell(verdicts: Sequence[Verdict]) -> str:
    """``10/12, 1 unsupported, worst 8 %``; fails are what is left of the 12."""
    if not verdicts:
        return "not run"
    found = counts(verdicts)
    others = [f"{n} {name}" for name, n in found.items() if n and name not in {"pass", "fail"}]
    largest = worst(verdicts)
    if largest is not None:
        others.append(f"worst {share(largest[1])}")
    return ", ".join([f"{found['pass']}/{len(verdicts)}", *others])


def _differences(reports: Sequence[Report]) -> str:
    """Cases on which backends that ran them disagree; cases that differ alike share a row."""
    told = [{place(verdict): verdict.verdict for verdict in report.verdicts} for report in reports]
    groups: dict[Row, dict[tuple[str, ...], dict[str, None]]] = {}
    whole: dict[Row, set[str]] = {}
    for report in reports:
        for verdict in report.verdicts:
            whole.setdefault(_row(verdict), set()).add(verdict.case)
            names = [column.get(place(verdict)) for column in told]
            if len({name for name in names if name is not None}) > 1:
                found = tuple(name or "not run" for name in names)
                alike = groups.setdefault(_row(verdict), {}).setdefault(found, {})
                alike[verdict.case] = None
    if not groups:
        return "None: wherever two backends ran the same case, they have the same verdict."
    backends = [_name(report.backend.name) for report in reports]
    rows = [
        (*map(_name, (*row, *found)), _all_or(cases, len(whole[row])))
        for row in _ordered(groups)
        for found, cases in groups[row].items()
    ]
    return _table(("operation", "mode", "dtype", *backends, "cases"), rows)


def _all_or(cases: Collection[str], of: int) -> str:
    """The names of ``cases``, unless they are all there are: nobody reads fifty in a cell."""
    if len(cases) == of > 1:
        return f"all {of}"
    return ", ".join(map(_name, cases))


def _row(verdict: Verdict) -> Row:
    return verdict.operation, verdict.mode, verdict.dtype


def _grouped(verdicts: Iterable[Verdict]) -> dict[Row, list[Verdict]]:
    groups: dict[Row, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(_row(verdict), []).append(verdict)
    return {row: groups[row] for row in _ordered(groups)}


def _ordered(rows: Iterable[Row]) -> list[Row]:
    """Operations as they come, within each values before gradients and float64 before float32."""
    unique = dict.fromkeys(rows)
    operations = list(dict.fromkeys(operation for operation, _, _ in unique))
    return sorted(unique, key=lambda row: (operations.index(row[0]), row[1], DTYPES.index(row[2])))


def _name(text: str) -> str:
    """A name as code, or escaped where it is no ordinary name."""
    return f"`{text}`" if _PLAIN.fullmatch(text) and text.strip() == text else escape(text)


def _pairs(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def _fence(lines: Iterable[str]) -> str:
    text = visible("\n".join(lines))
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
