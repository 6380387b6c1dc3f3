"""What tables and batches have in common: ways to dataframes, and a look at the first rows."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from . import _core, _show
from ._errors import WirelabError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

SHOWN_ROWS = 10


class Tabular(ABC):
    """Rows and columns that speak the Arrow PyCapsule interface."""

    __slots__ = ("_columns", "_name")

    _name: str
    _columns: list[str]

    @property
    def name(self) -> str:
        """Name of the table."""
        return self._name

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def schema(self) -> dict[str, str]:
        """Type of each column."""
        types = {name: kind for name, kind, _, _ in _core.table_columns(self._name)}
        return {name: types[name] for name in self._columns}

    @property
    def docs(self) -> dict[str, str]:
        """Meaning and unit of each column."""
        meanings = {name: meaning for name, _, _, meaning in _core.table_columns(self._name)}
        return {name: meanings[name] for name in self._columns}

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def _rows(self, start: int, limit: int) -> list[tuple[Any, ...]]:
        """Some of them, as tuples."""

    def __len__(self) -> int:
        return self.num_rows

    def to_arrow(self) -> pyarrow.Table:
        """As a pyarrow table, without a copy."""
        return needed("pyarrow", "arrow").table(self)

    def to_polars(self) -> polars.DataFrame:
        """As a Polars frame."""
        frame: polars.DataFrame = needed("polars", "polars").DataFrame(self)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas frame.

        Texts that repeat (addresses, names) are categories. Whole numbers stay whole numbers where some are missing
        (pandas' nullable integers), so that no large one loses digits.
        """
        pandas = needed("pandas", "pandas")
        table = needed("pyarrow", "pandas").table(self)
        types = {
            str(kind).lower(): kind
            for kind in (getattr(pandas, f"{sign}Int{bits}Dtype")() for sign in ("", "U") for bits in (8, 16, 32, 64))
        }

        def series(column: Any) -> Any:
            nullable = types.get(str(column.type)) if column.null_count else None
            return column.to_pandas(types_mapper=None if nullable is None else lambda _: nullable)

        columns = {name: series(table.column(name)) for name in table.column_names}
        return pandas.DataFrame(columns, columns=table.column_names, index=pandas.RangeIndex(table.num_rows))

    def __repr__(self) -> str:
        rows = self._rows(0, SHOWN_ROWS)
        return _show.table_text(self._name, self.schema, rows, self.num_rows)

    def _repr_html_(self) -> str:
        rows = self._rows(0, SHOWN_ROWS)
        return _show.table_html(self._name, self.schema, self.docs, rows, self.num_rows)


def needed(module: str, extra: str) -> Any:
    """A library that only some need."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingLibraryError(
            f"this needs {module}, which is not installed: pip install 'wirelab[{extra}]'", name=module
        ) from error


class MissingLibraryError(WirelabError, ImportError):
    """An optional library is not installed."""
