"""One table as a stream, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from . import _arguments, _core, _tabular
from ._errors import UsageError
from ._tabular import Tabular


class RecordBatch(Tabular):
    """A few thousand rows of a table."""

    __slots__ = ("_data",)

    def __init__(self, name: str, data: _core.RecordBatch) -> None:
        self._name = name
        self._columns = data.columns
        self._data = data

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._data.num_rows

    def __arrow_c_schema__(self) -> object:
        return self._data.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._data.__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)

    def _rows(self, start: int, limit: int) -> list[tuple[Any, ...]]:
        return self._data.rows(start, limit)


class Scan:
    """The batches of one table, once: iterate over it, or hand it to whatever reads Arrow streams."""

    __slots__ = ("_inputs", "_run", "_table")

    def __init__(self, table: str, run: _core.Scan, inputs: Iterable[str] = ()) -> None:
        self._table = table
        self._run = run
        self._inputs = tuple(inputs)

    @property
    def table(self) -> str:
        """Name of the table."""
        return self._table

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._run.columns

    def warnings(self, lang: str = "en") -> list[str]:
        """What is wrong with the files themselves (cut, damaged), in English or Chinese; complete once all is read."""
        is_chinese = _arguments.language(lang) == "zh"
        return [chinese if is_chinese else english for english, chinese in self._run.warnings]

    def __iter__(self) -> Iterator[RecordBatch]:
        return self

    def __next__(self) -> RecordBatch:
        return RecordBatch(self._table, next(self._run))

    def __arrow_c_schema__(self) -> object:
        return self._run.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._run.__arrow_c_stream__(requested_schema)

    def write(self, out: Any, format: str, limit: int | None = None) -> int:
        """Writes the rows, at most ``limit``, to a path or a binary file-like object; returns how many.

        Formats: ``csv``, ``json``, ``jsonl`` (an object per line), ``parquet``, ``arrow`` (file) and ``arrow_stream``.
        A file that is there is replaced once all is written.
        """
        most = None if limit is None else _arguments.whole(limit, "limit", 0, 2**63 - 1)
        return _tabular.write(out, format, lambda file: self._run.write(file, format, most), self._inputs)

    def __repr__(self) -> str:
        return f"<wirelab.Scan of {self._table}: {', '.join(self.columns)}>"


def scan(
    paths: str | os.PathLike[str] | bytes | Any,
    table: str = "packets",
    columns: Iterable[str] | None = None,
    *,
    time_from: int | str | datetime | None = None,
    time_to: int | str | datetime | None = None,
    host: Any = None,
    port: int | Iterable[int] | None = None,
    threads: int | None = None,
    link_speed_bps: int | None = None,
    vxlan_ports: int | Iterable[int] | None = None,
    roce_ports: int | Iterable[int] | None = None,
    checksums: str = "auto",
    pause_storm_ns: int | None = None,
    logs: Any = None,
    roce_endpoints: Iterable[tuple[Any, ...]] | None = None,
    progress: _arguments.Progress | None = None,
) -> Scan:
    """Streams one table of a capture, whatever its size.

    ``paths``: one path, bytes or file-like object, or a list of them that are one capture; ``"-"`` is standard input.
    ``columns``: names in the order wanted; what nobody asks for is not computed.
    ``time_from``, ``time_to``: rows from the one (included) to the other (not included), as nanoseconds since 1970
    (int), ISO 8601 text or a datetime; UTC where no zone is named.
    ``host``, ``port``: rows that speak of this IP address or port, in any role; one or several.
    ``threads``, ``link_speed_bps``, ``vxlan_ports``, ``roce_ports``, ``checksums``, ``pause_storm_ns``,
    ``logs``, ``roce_endpoints``, ``progress``: as of :func:`wirelab.open`.
    """
    if not isinstance(table, str):
        raise UsageError(f"table must be the name of one, not {table!r}")
    inputs = _arguments.inputs([paths])
    run = _core.scan(
        inputs,
        table,
        _arguments.columns(columns),
        _arguments.row_filter(time_from, time_to, host, port),
        _arguments.options(
            threads, link_speed_bps, vxlan_ports, roce_ports, checksums, pause_storm_ns, logs, roce_endpoints
        ),
        _arguments.progress(progress),
    )
    return Scan(table, run, (one for one in inputs if isinstance(one, str)))
