"""``wirelab match``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, BinaryIO

from .. import _format, _text
from .._errors import UsageError
from .._match import Matches, match
from .._words import default_lang
from . import _reading, _table

_SHOWN_ROWS = 20
_WORDS = {
    "en": {
        "direction": "direction", "a_to_b": "A to B", "b_to_a": "B to A", "unknown": "unknown", "sent": "sent",
        "delivered": "delivered", "lost": "lost", "duplicated": "duplicated", "reordered": "reordered",
        "raw": "raw delay min / median / p99", "more": "and {count} more (see --limit, --format)",
    },
    "zh": {
        "direction": "方向", "a_to_b": "A 到 B", "b_to_a": "B 到 A", "unknown": "未知", "sent": "发送",
        "delivered": "到达", "lost": "丢失", "duplicated": "重复", "reordered": "乱序",
        "raw": "原始时延 最小 / 中位 / p99", "more": "另有 {count} 行（见 --limit、--format）",
    },
}  # fmt: skip


def run(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    limit = _reading.whole(given.limit, "--limit")
    if limit is not None and limit < 0:
        raise UsageError("--limit must not be negative")
    if given.format in ("parquet", "arrow") and given.output is None and sys.stdout.isatty():
        raise UsageError(f"{given.format} is not for a screen: name a file with -o, or send the output on")
    read = _reading.options(given)
    options = {name: read[name] for name in ("threads", "vxlan_ports", "roce_ports")}
    with _reading.Progress([given.a, given.b], lang) as progress:
        matches = match(
            given.a,
            given.b,
            unmatched_only=given.unmatched_only,
            same_clock=given.same_clock,
            max_packets=_reading.whole(given.max_packets, "--max-packets"),
            progress=progress.callback,
            **options,
        )
    with _table.output(given.output, [given.a, given.b]) as out:
        if given.summary:
            figures = {**matches.summary, "notes": matches.notes(lang)}
            out.write((json.dumps(figures, ensure_ascii=False, indent=2) + "\n").encode())
        elif given.format == "table":
            _show(matches, out, lang, _SHOWN_ROWS if limit is None else limit)
        else:
            matches.write(out, given.format, limit)
    if given.format != "table" and not given.summary:
        for note in matches.notes(lang):
            print(note, file=sys.stderr)


def _show(matches: Matches, out: BinaryIO, lang: str, limit: int) -> None:
    words = _WORDS[lang]
    summary = matches.summary
    head = [words[name] for name in ("direction", "sent", "delivered", "lost", "duplicated", "reordered", "raw")]
    lines = [
        head,
        *(
            _travel(words, name, summary[name])
            for name in ("a_to_b", "b_to_a", "unknown")
            if any(summary[name].values())
        ),
    ]
    _put(out, lines, [False, True, True, True, True, True, False])
    for note in matches.notes(lang):
        out.write(("\n".join(_text.wrapped(note, 100)) + "\n").encode())
    rows = matches._rows(0, limit)
    kinds = list(matches.schema.values())
    cells = [[_cell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows]
    if rows:
        out.write(b"\n")
        _put(out, [matches.columns, *cells], [_format.is_number(kind) for kind in kinds])
    if len(rows) < len(matches):
        out.write((words["more"].format(count=len(matches) - len(rows)) + "\n").encode())


def _travel(words: dict[str, str], name: str, counts: dict[str, Any]) -> list[str]:
    arrived = counts["delivered_count"] + counts["resegmented_count"]
    figures = [
        counts["sent_count"],
        arrived,
        *(counts[f"{what}_count"] for what in ("lost", "duplicated", "reordered")),
    ]
    delays = [counts[f"delay_{what}_ns"] for what in ("min", "median", "p99")]
    delay = "-" if delays[0] is None else " / ".join(_format.duration(ns) for ns in delays)
    return [words[name], *(_format.cell(figure, "uint64") for figure in figures), delay]


def _cell(value: Any, kind: str) -> str:
    return "-" if value is None else _format.cell(value, kind)


def _put(out: BinaryIO, lines: list[list[str]], is_right: list[bool]) -> None:
    out.write(("\n".join(_text.columns(lines, is_right)) + "\n").encode())
