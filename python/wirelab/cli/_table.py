"""``wirelab table`` and ``wirelab tables``."""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from .. import _core, _format, _text
from .._errors import UsageError
from .._scan import Scan, scan
from .._tabular import WholeFile, is_same
from .._words import default_lang
from . import _reading

FORMATS = ("table", "csv", "json", "jsonl", "parquet", "arrow")
_BINARY = ("parquet", "arrow")
#: Rows that the widths of columns are judged by; further rows are streamed.
_JUDGED_ROWS = 200
#: On a screen a cell that is wider goes on in the next line.
_CELL_PLACES = 60


def run(given: argparse.Namespace) -> None:
    columns = None if given.columns is None else [name.strip() for name in given.columns.split(",") if name.strip()]
    if columns == []:
        raise UsageError("--columns names no column")
    limit = _reading.whole(given.limit, "--limit")
    if limit is not None and limit < 0:
        raise UsageError("--limit must not be negative")
    if given.format in _BINARY and given.output is None and sys.stdout.isatty():
        raise UsageError(f"{given.format} is not for a screen: name a file with -o, or send the output on")
    lang = given.lang or default_lang()
    with _reading.Progress(given.files, lang) as progress:
        rows = scan(
            given.files,
            given.table,
            columns,
            time_from=_time(given.time_from),
            time_to=_time(given.time_to),
            host=None if given.host is None else [host for text in given.host for host in text.split(",")],
            port=_reading.wholes(given.port, "--port"),
            progress=progress.callback if given.output or not sys.stdout.isatty() else None,
            **_reading.options(given),
        )
        with output(given.output, given.files) as out:
            if given.format == "table":
                known = {name: kind for name, kind, _, _ in _core.table_columns(rows.table)}
                kinds = [known[name] for name in rows.columns]
                write_table(
                    rows.columns, kinds, _rows(rows, limit), out, given.columns is not None or given.output is not None
                )
            else:
                rows.write(out, given.format, limit)
    for warning in rows.warnings(lang):
        print(f"wirelab: {warning}", file=sys.stderr)


def run_tables(given: argparse.Namespace) -> None:
    if given.table is None:
        for name, meaning in _core.tables():
            print(f"{name:<16}  {meaning}")
        return
    width = max(60, shutil.get_terminal_size((120, 24)).columns)
    columns = _core.table_columns(given.table)
    names = max(len(name) for name, *_ in columns)
    kinds = max(len(kind) for _, kind, *_ in columns)
    for name, kind, is_nullable, meaning in columns:
        head = f"{name:<{names}}  {kind:<{kinds}}  {'null ' if is_nullable else '     '} "
        lines = _text.wrapped(meaning, max(30, width - len(head)))
        print(head + ("\n" + " " * len(head)).join(lines))


def _time(text: str | None) -> int | str | None:
    if text is not None and text.lstrip("-").isdecimal():
        return int(text)
    return text


@contextlib.contextmanager
def output(path: str | None, inputs: Sequence[str] = ()) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is whole. It may not be one of the inputs.

    What goes wrong while it is written is an ``OSError`` with its path.
    """
    if path is None:
        sys.stdout.flush()
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is not None:
            yield buffer
            buffer.flush()
        else:
            # A notebook's standard output, or one that is redirected to text.
            gathered = io.BytesIO()
            yield gathered
            sys.stdout.write(gathered.getvalue().decode(errors="backslashreplace"))
        return
    if not path:
        raise UsageError("-o names no file")
    if any(is_same(name, path) for name in inputs):
        raise UsageError(f"{path} is one of the captures: it would be overwritten; name another file with -o")
    try:
        file = WholeFile(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None
    with file as out:
        yield out


def write_table(
    names: Sequence[str], kinds: Sequence[str], rows: Iterable[Sequence[Any]], out: BinaryIO, is_whole: bool
) -> None:
    """Rows for people, one line each. On a screen, columns that do not fit are named at the end, unless they were asked
    for, and long cells go on in further lines.
    """
    cells = ([_cell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows)
    judged = list(itertools.islice(cells, _JUDGED_ROWS))
    places = [max(_text.width(name), *(_text.width(row[at]) for row in judged), 0) for at, name in enumerate(names)]
    shown = len(names)
    is_screen = out is getattr(sys.stdout, "buffer", None) and sys.stdout.isatty()
    room = shutil.get_terminal_size().columns
    if is_screen:
        # A single wide column takes what the others leave.
        left = room - sum(min(width, _CELL_PLACES) + 2 for width in places) + 2
        wide = [at for at, width in enumerate(places) if width > _CELL_PLACES]
        more = max(0, left) if len(wide) == 1 else 0
        places = [min(width, _CELL_PLACES + more) for width in places]
    if is_screen and not is_whole:
        used = 0
        for at, width in enumerate(places):
            used += width + (2 if at else 0)
            if used > room and at:
                shown = at
                break
    is_right = [_format.is_number(kind) for kind in kinds]

    def put(row: Sequence[str]) -> None:
        lines = [row]
        if is_screen:
            wrapped = [_text.wrapped(cell, width) for cell, width in zip(row[:shown], places, strict=False)]
            lines = list(itertools.zip_longest(*wrapped, fillvalue=""))
        for line in lines:
            out.write((_text.line(line[:shown], places[:shown], is_right[:shown]) + "\n").encode())

    put(names)
    for row in judged:
        put(row)
    for row in cells:
        put(row)
    out.flush()
    if shown < len(names):
        others = ", ".join(names[shown:])
        print("\n".join(_text.wrapped(f"more columns (see --columns): {others}", room)), file=sys.stderr)


def _rows(rows: Scan, limit: int | None) -> Iterator[tuple[Any, ...]]:
    left = limit
    if left == 0:
        return
    for batch in rows:
        start, step = 0, 1024
        while values := batch._rows(start, step if left is None else min(step, left)):
            yield from values
            start += len(values)
            if left is not None:
                left -= len(values)
                if left <= 0:
                    return


def _cell(value: Any, kind: str) -> str:
    return "-" if value is None else _format.cell(value, kind)
