"""Many captures to a dataset of files, for DuckDB, Polars, pandas and whatever else reads Hive partitions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _arguments, _core
from ._errors import ConversionError, UsageError


class ConvertedCapture:
    """One capture of a dataset, and what became of it."""

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    @property
    def name(self) -> str:
        """Its value in the column ``capture``."""
        return str(self._data["name"])

    @property
    def files(self) -> list[str]:
        """The files that it is read from."""
        return list(self._data["files"])

    @property
    def status(self) -> str:
        """``written``; ``unchanged``, since all was there; or ``failed``."""
        return str(self._data["status"])

    @property
    def rows(self) -> dict[str, int]:
        """The tables that were written, with the number of their rows."""
        return dict(self._data["rows"])

    @property
    def error(self) -> BaseException | None:
        """Why it failed."""
        error: BaseException | None = self._data["error"]
        return error

    def warnings(self, lang: str = "en") -> list[str]:
        """What is wrong with its files (cut, damaged), though they were read as far as they go."""
        return [chinese if lang == "zh" else english for english, chinese in self._data["warnings"]]

    def __repr__(self) -> str:
        return f"<{self.name}: {self.status}{f', {self.error}' if self.error else ''}>"


class Conversion:
    """How a conversion went."""

    __slots__ = ("_captures", "_gone_count", "_outdated_count", "_path")

    def __init__(self, path: str, data: dict[str, Any]) -> None:
        self._path = path
        self._captures = [ConvertedCapture(one) for one in data["captures"]]
        self._outdated_count = int(data["outdated_count"])
        self._gone_count = int(data["gone_count"])

    @property
    def path(self) -> str:
        """The dataset's directory."""
        return self._path

    @property
    def captures(self) -> list[ConvertedCapture]:
        """All captures named, in order."""
        return list(self._captures)

    @property
    def written(self) -> list[ConvertedCapture]:
        """Those of which tables were written."""
        return [one for one in self._captures if one.status == "written"]

    @property
    def unchanged(self) -> list[ConvertedCapture]:
        """Those of which all was there."""
        return [one for one in self._captures if one.status == "unchanged"]

    @property
    def failed(self) -> list[ConvertedCapture]:
        """Those that could not be converted."""
        return [one for one in self._captures if one.status == "failed"]

    @property
    def outdated_count(self) -> int:
        """Captures of the dataset that were not named, and were made by another version or with other options."""
        return self._outdated_count

    @property
    def gone_count(self) -> int:
        """Captures of the dataset that were not named, and whose files are not where they were; their rows stay."""
        return self._gone_count

    def __repr__(self) -> str:
        counts = f"{len(self.written)} written, {len(self.unchanged)} unchanged, {len(self.failed)} failed"
        return f"<wirelab.Conversion to {self._path}: {counts}>"


def convert(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    tables: Iterable[str] | None = None,
    *,
    format: str = "parquet",
    group_by: str | int = "file",
    jobs: int | None = None,
    errors: str = "raise",
    threads: int | None = None,
    link_speed_bps: int | None = None,
    vxlan_ports: int | Iterable[int] | None = None,
    roce_ports: int | Iterable[int] | None = None,
    checksums: str = "auto",
    pause_storm_ns: int | None = None,
    logs: Any = None,
    roce_endpoints: Iterable[tuple[Any, ...]] | None = None,
    progress: _arguments.Progress | None = None,
) -> Conversion:
    """Converts captures to a dataset ``out/TABLE/capture=NAME/part-0.parquet``; a second run does what is missing.

    ``paths``: capture files; a folder stands for those in it and in its folders.
    ``out``: a directory that is empty, not there, or a dataset of an earlier run.
    ``tables``: names; all tables by default.
    ``format``: ``"parquet"`` or ``"arrow"`` (IPC files).
    ``group_by``: which files are one capture: each (``"file"``), those of a ring (``"ring"``), ``"all"``, or as many in
    a row as fit so many bytes (a number).
    ``jobs``: captures at once at most; as many as threads by default. Memory stays at about 1 GiB.
    ``errors``: where captures failed, ``"raise"`` raises :class:`ConversionError` once all others are done; with
    ``"report"``, see ``failed`` of what is returned.
    ``threads`` (shared by all captures), ``link_speed_bps``, ``vxlan_ports``, ``roce_ports``, ``checksums``,
    ``pause_storm_ns``, ``logs``, ``roce_endpoints``, ``progress``: as of :func:`wirelab.open`; sizes are of all
    captures that are converted. Ctrl-C raises ``KeyboardInterrupt``; where all was done by then, it has an attribute
    ``conversion``.
    """
    if errors not in ("raise", "report"):
        raise UsageError(f'errors must be "raise" or "report", not {errors!r}')
    if isinstance(group_by, str):
        if group_by not in ("file", "ring", "all"):
            raise UsageError(f'group_by must be "file", "ring", "all" or a number of bytes, not {group_by!r}')
        group = group_by
    else:
        group = str(_arguments.whole(group_by, "group_by", 1, 2**63 - 1))
    target = os.fsdecode(os.fspath(out))
    options = _arguments.options(
        threads, link_speed_bps, vxlan_ports, roce_ports, checksums, pause_storm_ns, logs, roce_endpoints
    )
    most = None if jobs is None else _arguments.whole(jobs, "jobs", 1, 1024)
    told = _arguments.progress(progress)
    try:
        done = _core.convert(_paths(paths), target, _tables(tables), format, group, most, options, told)
    except KeyboardInterrupt as stop:
        # It came when all was done, and is no reason to say that something is left.
        if isinstance(finished := getattr(stop, "conversion", None), dict):
            stop.conversion = Conversion(target, finished)  # type: ignore[attr-defined]
        raise
    conversion = Conversion(target, done)
    if errors == "raise" and conversion.failed:
        first = conversion.failed[0]
        count = len(conversion.failed)
        more = f" (and {count - 1} more)" if count > 1 else ""
        error = ConversionError(f"{count} of {len(conversion.captures)} captures failed: {first.error}{more}")
        error.conversion = conversion
        raise error from first.error
    return conversion


def _paths(given: Any) -> list[str]:
    if isinstance(given, (str, os.PathLike)):
        given = [given]
    try:
        return [os.fsdecode(os.fspath(one)) for one in given]
    except TypeError:
        raise UsageError("convert takes paths of files: it must be able to read them again") from None


def _tables(given: Iterable[str] | None) -> list[str] | None:
    if isinstance(given, str):
        raise UsageError(f"tables must be a list of names, not the text {given!r}")
    return None if given is None else [str(one) for one in given]
