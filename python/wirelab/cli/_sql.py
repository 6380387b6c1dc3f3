"""``wirelab sql``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from .. import _core
from .._capture import Capture
from .._capture import open as open_capture
from .._errors import NotACaptureError, UsageError
from .._sql import QueryResult, sql
from .._words import default_lang, say
from . import _reading, _table

_NAMED = re.compile(r"([^\W\d]\w*)=(.+)", re.DOTALL)
_ROWS_AT_ONCE = 1024
#: What files without a name of their own are called.
_UNNAMED = "capture"
_EMPTY = "empty:"


def run(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    if given.tables:
        _list_tables()
        return
    if given.query is None or not given.files:
        raise UsageError(say(lang, "sql_usage"))
    if given.format in ("parquet", "arrow") and given.output is None and sys.stdout.isatty():
        raise UsageError(f"{given.format} is not for a screen: name a file with -o, or send the output on")
    captures = _captures(given.files)
    files = [file for several in captures.values() for file in several]
    with _reading.Progress(files, lang) as progress:
        options = _reading.options(given)
        opened = _opened(captures, progress=progress.callback, **options)
        rows = sql(given.query, opened, _params(given.param), limits=_limits(given))
    with _table.output(given.output, files) as out:
        if given.format == "table":
            kinds = list(rows.schema.values())
            _table.write_table(rows.columns, kinds, _rows(rows), out, is_whole=True)
        else:
            rows.write(out, given.format)
    for capture in opened.values():
        if isinstance(capture, Capture):
            for in_english, in_chinese in capture._core.warnings():
                print(f"wirelab: {in_chinese if lang == 'zh' else in_english}", file=sys.stderr)


def _list_tables() -> None:
    for at, (name, meaning) in enumerate(_core.tables()):
        print(("\n" if at else "") + f"{name}: {meaning}")
        columns = [(column, kind) for column, kind, _, _ in _core.table_columns(name)]
        width = max(len(column) for column, _ in columns)
        for column, kind in columns:
            print(f"  {column:<{width}}  {kind}")


def _captures(given: list[str]) -> dict[str, list[str]]:
    """Files by the name of their capture. Those without a name are one capture, as for other commands."""
    captures: dict[str, list[str]] = {}
    for one in given:
        match = _NAMED.fullmatch(one)
        # A file may have such a name itself.
        name, file = match.groups() if match and not os.path.exists(one) else (_UNNAMED, one)
        captures.setdefault(name, []).append(file)
    return captures


def _opened(captures: dict[str, list[str]], **options: Any) -> dict[str, Any]:
    """What has tables, by name. Logs without a name are called after their tool."""
    opened: dict[str, Any] = {}
    logs: list[_core.Log] = []
    for name, files in captures.items():
        of_capture = []
        for file in files:
            log = _log(file)
            if log is None:
                of_capture.append(file)
            elif name == _UNNAMED:
                logs.append(log)
            elif len(files) > 1:
                raise UsageError(f"{name} stands for a log and for another file; give each a name of its own")
            else:
                opened[name] = log
        if of_capture:
            opened[name] = open_capture(*of_capture, **options)
    for log in logs:
        kind, number = log.kinds[0], 2
        name = kind
        while name in opened:
            name, number = f"{kind}_{number}", number + 1
        opened[name] = log
    return opened


def _log(file: str) -> _core.Log | None:
    """The log in a file that is no capture; ``empty:KIND`` is one without rows."""
    kind = file.removeprefix(_EMPTY)
    if kind != file and not os.path.exists(file):
        return _core.empty_log(kind)
    if not os.path.isfile(file):
        return None
    try:
        open_capture(file)
    except NotACaptureError:
        return _core.log(file)
    return None


def _params(given: list[str] | None) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for one in given or []:
        match = _NAMED.fullmatch(one.removeprefix(":"))
        if match is None and not one.endswith("="):
            raise UsageError(f"--param must be NAME=VALUE, not {one}")
        name, _, text = one.removeprefix(":").partition("=")
        params[name] = _value(text)
    return params


def _value(text: str) -> int | float | str:
    """A whole number, a number, or a text."""
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?", text):
        return float(text)
    return text


def _limits(given: argparse.Namespace) -> dict[str, float]:
    limits: dict[str, float] = {}
    if given.limit_time is not None:
        try:
            limits["seconds"] = float(given.limit_time)
        except ValueError:
            raise UsageError(f"--limit-time must be a number of seconds, not {given.limit_time}") from None
    rows = _reading.whole(given.limit_rows, "--limit-rows")
    if rows is not None:
        limits["rows"] = rows
    if given.limit_memory is not None:
        limits["bytes"] = _reading.size(given.limit_memory, "--limit-memory")
    return limits


def _rows(rows: QueryResult) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield from rows._rows(start, _ROWS_AT_ONCE)
