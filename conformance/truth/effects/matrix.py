"""The kill matrix: which family of cases rejects which fault, and how sharply.

Read from the frozen kills, without the oracle; ``conformance check`` proves them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from conformance.frozen import Truth
from conformance.precision import DTYPES, Dtype
from conformance.truth.effects.visibility import BEYOND, SEPARATES
from conformance.truth.faults import Fault, catalogue

#: A case and its D.
Kill = tuple[str, float]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: what it is, and by dtype the sharpest case that separates it.

    ``unseen`` says, by dtype, why no case can show it.
    """

    name: str
    breaks: str
    also: tuple[str, ...]
    sources: tuple[str, ...]
    says: str
    mend: str
    killed_by: dict[str, Kill]
    unseen: dict[str, str]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All faults; ``families`` has the sharpest kills by family, fault and dtype."""

    faults: tuple[Row, ...]
    families: dict[str, dict[str, dict[str, Kill]]]


def matrix(spec: Path) -> Matrix:
    """The matrix of the specification in the folder ``spec``.

    Raises SpecificationError where its frozen truth can't be read.
    """
    truth = Truth(spec / "truth")
    families = {
        path.stem: {
            fault: {dtype: pairs[0] for dtype, pairs in by_dtype.items() if pairs}
            for fault, by_dtype in truth.family(path.stem).kills.items()
        }
        for path in sorted((spec / "truth").glob("*.json"))
    }
    rows = [_row(name, fault, families) for name, fault in catalogue().items()]
    return Matrix(faults=tuple(rows), families=families)


def missed(found: Matrix) -> list[tuple[Row, Dtype]]:
    """Faults that no case separates, with the dtype, unless it is known why none can."""
    return [
        (row, dtype)
        for row in found.faults
        for dtype in DTYPES
        if dtype not in row.killed_by and dtype not in row.unseen
    ]


def as_json(rows: Sequence[Row]) -> bytes:
    """``{"faults": [...]}`` of the rows, indented."""
    return msgspec.json.format(msgspec.json.encode({"faults": rows}), indent=1)


def lines(found: Matrix) -> Iterator[str]:
    """The matrix as text: a row a fault, in each family the largest D in each dtype."""
    head = ["fault", "breaks", *found.families, "sharpest case"]
    body = [_cells(row, found) for row in found.faults]
    widths = [max(len(cells[column]) for cells in (head, *body)) for column in range(len(head))]
    yield f"D, the largest effect over the bound, in {' and '.join(DTYPES)}; above 2 a case rejects"
    for cells in (head, *body):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        yield "  ".join(padded).rstrip()
    for row in found.faults:
        for dtype, reason in row.unseen.items():
            yield f"{row.name} can't be seen in {dtype}: {reason}"


def _row(
    name: str, fault: type[Fault], families: Mapping[str, Mapping[str, Mapping[str, Kill]]]
) -> Row:
    killed_by: dict[str, Kill] = {}
    for dtype in DTYPES:
        found = [kills[name][dtype] for kills in families.values() if dtype in kills.get(name, {})]
        sharp = [kill for kill in found if kill[1] > SEPARATES]
        if sharp:
            killed_by[dtype] = min(sharp, key=lambda kill: (-kill[1], kill[0]))
    return Row(
        name=name,
        breaks=fault.breaks,
        also=fault.also,
        sources=fault.sources,
        says=fault.says(),
        mend=fault.mend,
        killed_by=killed_by,
        unseen=dict(fault.unseen),
    )


def _cells(row: Row, found: Matrix) -> list[str]:
    cells = [row.name, row.breaks]
    for kills in found.families.values():
        sizes = kills.get(row.name, {})
        texts = [_size(sizes[dtype][1]) if dtype in sizes else "-" for dtype in DTYPES]
        cells.append(" ".join(text.ljust(7) for text in texts).rstrip() if sizes else "")
    sharpest = [row.killed_by[dtype][0] for dtype in DTYPES if dtype in row.killed_by]
    return [*cells, sharpest[0] if sharpest else "none"]


def _size(size: float) -> str:
    """D to two digits; what no bound could hide (another shape, no answer) is without end."""
    return "∞" if size >= BEYOND else f"{size:.2g}".replace("e+", "e")
