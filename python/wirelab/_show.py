"""The first rows of a table, as text and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from . import _format, _text

#: Columns and places of a cell in a text; everything is in the table itself.
TEXT_PLACES = 110
CELL_PLACES = 40

TABLE_STYLE = (
    "<style>.wirelab-table{border-collapse:collapse;font-size:12px;font-variant-numeric:tabular-nums}"
    ".wirelab-table th,.wirelab-table td{padding:2px 8px;text-align:left;white-space:nowrap;border:0;"
    "border-bottom:1px solid rgba(128,128,128,.25)}"
    ".wirelab-table th{font-weight:600;vertical-align:bottom}"
    ".wirelab-table th small{display:block;font-weight:400;opacity:.6}"
    ".wirelab-table .n{text-align:right}</style>"
)


def table_text(name: str, schema: Mapping[str, str], rows: Sequence[Sequence[Any]], num_rows: int) -> str:
    lines = [f"{name}: {_format.counted(num_rows, 'row')}, {_format.counted(len(schema), 'column')}"]
    names, kinds = list(schema), list(schema.values())
    cells = [[_text.cut(cell, CELL_PLACES) for cell in _cells(row, kinds)] for row in rows]
    # Columns with nothing in these rows would only push others off the edge.
    shown: list[int] = []
    places = 0
    for at, column in enumerate(names):
        widths = [_text.width(row[at]) for row in cells]
        if any(widths) and (not shown or places + 2 + max(_text.width(column), *widths) <= TEXT_PLACES):
            shown.append(at)
            places += 2 + max(_text.width(column), *widths)
    if shown:
        is_right = [_format.is_number(kinds[at]) for at in shown]
        lines += _text.columns([[row[at] for at in shown] for row in (names, *cells)], is_right)
        if num_rows > len(rows):
            lines.append("…")
    left = [name for at, name in enumerate(names) if at not in shown]
    if left:
        lines += _text.wrapped(("more columns: " if shown else "columns: ") + ", ".join(left), TEXT_PLACES)
    return "\n".join(lines)


def table_html(
    name: str, schema: Mapping[str, str], docs: Mapping[str, str], rows: Sequence[Sequence[Any]], num_rows: int
) -> str:
    """The meaning of a column shows when the mouse rests on its name."""
    kinds = list(schema.values())
    sides = [_side(kind) for kind in kinds]
    head = "".join(
        f'<th title="{escape(docs[column])}"{_side(kind)}>{escape(column)}<small>{escape(_short(kind))}</small></th>'
        for column, kind in schema.items()
    )
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{escape(cell)}</td>" for side, cell in zip(sides, _cells(row, kinds), strict=True))
        for row in rows
    )
    shown = _format.counted(num_rows, "row")
    if num_rows > len(rows):
        shown = f"first {len(rows)} of {shown}"
    return (
        f'{TABLE_STYLE}<div style="overflow-x:auto"><p style="margin:0 0 4px"><b>{escape(name)}</b>: {shown}, '
        f'{_format.counted(len(schema), "column")}</p><table class="wirelab-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cells(row: Sequence[Any], kinds: Sequence[str]) -> list[str]:
    return [_format.cell(value, kind) for value, kind in zip(row, kinds, strict=True)]


def _short(kind: str) -> str:
    return "text" if kind in ("utf8", "dictionary<int32, utf8>") else kind.removesuffix("[ns, UTC]")


def _side(kind: str) -> str:
    return ' class="n"' if _format.is_number(kind) else ""
