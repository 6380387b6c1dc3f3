"""One table of an opened capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _arguments, _core, _tabular
from ._tabular import Tabular


class Table(Tabular):
    """One table of a capture. It is computed when its rows are first needed, then kept.

    ``pl.DataFrame(table)``, ``pa.table(table)``, ``duckdb.from_arrow(table)`` and whatever else speaks the Arrow
    PyCapsule interface take it as it is; each gets a stream of its own.
    """

    __slots__ = ("_data", "_load")

    def __init__(self, name: str, load: Callable[[str], _core.Table]) -> None:
        self._name = name
        self._columns = [column for column, _, _, _ in _core.table_columns(name)]
        self._load = load
        self._data: _core.Table | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._loaded().num_rows

    @property
    def description(self) -> str:
        """What a row is."""
        return dict(_core.tables())[self._name]

    def write(self, out: Any, format: str, limit: int | None = None) -> int:
        """Writes the rows, at most ``limit``, to a path or a binary file-like object as ``csv``, ``json``, ``jsonl``,
        ``parquet``, ``arrow`` (file) or ``arrow_stream``; returns how many rows. A file that is there is replaced once
        all is written."""
        most = None if limit is None else _arguments.whole(limit, "limit", 0, 2**63 - 1)
        return _tabular.write(out, format, lambda file: self._loaded().write(file, format, most))

    def __arrow_c_schema__(self) -> object:
        return self._loaded().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._loaded().__arrow_c_stream__(requested_schema)

    def _rows(self, start: int, limit: int) -> list[tuple[Any, ...]]:
        return self._loaded().rows(start, limit)

    def _loaded(self) -> _core.Table:
        if self._data is None:
            self._data = self._load(self._name)
        return self._data
