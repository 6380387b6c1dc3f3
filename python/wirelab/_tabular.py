"""What tables and batches have in common: ways to dataframes and files, and a look at the first rows."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from . import _core, _show
from ._errors import UsageError, WirelabError

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


def write(out: Any, format: str, rows: Callable[[Any], int], inputs: Iterable[str] = ()) -> int:
    """Has ``rows`` written to what takes bytes: ``out`` itself, or the file at that path, which is replaced once all is
    written and may be none of the inputs. Returns what ``rows`` does.
    """
    if not isinstance(format, str):
        raise UsageError(f"format must be a text, such as 'csv', not {format!r}")
    if isinstance(out, (str, bytes, os.PathLike)):
        path = os.fsdecode(out)
        if not path:
            raise UsageError("the path to write to is empty")
        if any(is_same(name, path) for name in inputs):
            raise UsageError(f"{path} is one of the captures: it would be overwritten; name another file")
        with WholeFile(path) as file:
            return rows(file)
    if isinstance(out, io.TextIOBase):
        raise UsageError("out takes text, and bytes are written: open the file with 'wb', or give sys.stdout.buffer")
    if not callable(getattr(out, "write", None)):
        raise UsageError(f"out must be a path or a binary file-like object, not {type(out).__name__}")
    return rows(out)


def is_same(name: str, path: str) -> bool:
    """Whether both name one file, by whatever links."""
    try:
        return name != "-" and os.path.samefile(name, path)
    except (OSError, ValueError):
        return False


class WholeFile:
    """A file that is replaced when all is written, and stays as it was where that fails.

    Whatever goes wrong with it is an ``OSError`` with the path given: a full disk does not say which file it was.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            # Devices and pipes are written as they are.
            self._is_plain = not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)
            # Following a link keeps it a link.
            self._real = os.path.realpath(path)
            self._writing = f"{self._real}.{os.getpid()}.part" if self._is_plain else path
            self._out = io.BufferedWriter(_NamedFile(self._writing, path), 1 << 16)
        except OSError as error:
            raise _named(error, path) from None

    def __enter__(self) -> BinaryIO:
        return cast("BinaryIO", self._out)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_whole = False
        try:
            if kind is None:
                self._out.close()
                if self._is_plain:
                    os.replace(self._writing, self._real)
                is_whole = True
        except OSError as failure:
            raise _named(failure, self._path) from None
        finally:
            if not is_whole:
                # What could not be written cannot be flushed either; why that is so is told already.
                with contextlib.suppress(OSError):
                    self._out.close()
                if self._is_plain:
                    with contextlib.suppress(OSError):
                        os.remove(self._writing)


class _NamedFile(io.FileIO):
    """A file whose errors name the path that a caller knows."""

    def __init__(self, path: str, told: str) -> None:
        self._told = told
        super().__init__(path, "wb")

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise _named(error, self._told) from None


def _named(error: OSError, path: str) -> OSError:
    # The class follows from the number, so a broken pipe stays one.
    return OSError(error.errno, error.strerror or str(error), path)
