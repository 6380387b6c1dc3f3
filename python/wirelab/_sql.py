"""SQL over the tables of captures."""

from __future__ import annotations

import datetime
import ipaddress
import operator
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _arguments, _core
from ._errors import NotACaptureError, UsageError
from ._table import Table
from ._times import to_ns

if TYPE_CHECKING:
    from . import _capture

_LIMITS = ("seconds", "rows", "bytes")


class QueryResult(Table):
    """The rows that a query gave."""

    __slots__ = ("_query", "_types")

    def __init__(self, query: str, data: _core.Table) -> None:
        self._name = "result"
        self._columns = data.columns
        self._types = data.types
        self._query = query
        self._data = data
        self._load = lambda _: data

    @property
    def schema(self) -> dict[str, str]:
        """Type of each column."""
        return dict(zip(self._columns, self._types, strict=True))

    @property
    def docs(self) -> dict[str, str]:
        """Nothing: what the columns mean, the query says."""
        return dict.fromkeys(self._columns, "")

    @property
    def description(self) -> str:
        """The query."""
        return self._query


def sql(
    query: str,
    captures: Mapping[str, _capture.Capture | str | os.PathLike[str] | bytes],
    /,
    params: Mapping[str, Any] | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    **named: Any,
) -> QueryResult:
    """Runs one query over several captures, whose tables are named by theirs: ``jumbo.tcp_flows``.

    ``captures``: captures, or what :func:`wirelab.open` takes, by name; at most ten. A bare table name means the first
    that has it. A path may be that of a log too, such as the output of iperf3: then its tables are those of logs.
    ``params``, and further keywords: the values of ``:name`` in the query, which are bound and never become part of it.
    ``limits``: most ``seconds`` (30), ``rows`` (10,000,000) and ``bytes`` (2**30) of the result.
    """
    if not isinstance(captures, Mapping):
        raise UsageError(
            'captures must be a mapping of names to captures, such as {"a": capture}, '
            f"not {type(captures).__name__}; one opened capture has a method sql of its own"
        )
    if not captures:
        raise UsageError("there is no capture to query")
    for name in captures:
        if not isinstance(name, str):
            raise UsageError(f"the name of a capture is a text, not {name!r}")
    return run(query, {name: source(one) for name, one in captures.items()}, params, limits, named)


def source(given: Any, **options: Any) -> _core.Capture | _core.Log:
    """What has tables: a capture, or a log where a path leads to one."""
    from ._capture import Capture, open

    if isinstance(given, (_core.Capture, _core.Log)):
        return given
    if isinstance(given, Capture):
        return given._core
    try:
        return open(given, **options)._core
    except NotACaptureError:
        log = _core.log(os.fsdecode(given)) if isinstance(given, (str, os.PathLike)) else None
        if log is None:
            raise
        return log


def run(
    query: str,
    captures: Mapping[str, _core.Capture | _core.Log],
    params: Mapping[str, Any] | None,
    limits: Mapping[str, float] | None,
    named: Mapping[str, Any],
) -> QueryResult:
    if not isinstance(query, str):
        raise UsageError(f"a query is a text, not {type(query).__name__}")
    if params is not None and not isinstance(params, Mapping):
        raise UsageError("params must be a mapping of names to values")
    given = [(name, _value(name, value)) for name, value in {**(params or {}), **named}.items()]
    return QueryResult(query, _core.sql(query, list(captures.items()), given, _limits(limits)))


def _value(name: str, value: Any) -> int | float | str | None:
    """A value as SQL has it: times as nanoseconds, addresses as text."""
    if value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, datetime.datetime):
        return to_ns(value, name)
    if isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return str(value)
    try:
        number = operator.index(value)
    except TypeError:
        pass
    else:
        # SQL writes true as 1.
        return _arguments.whole(int(number), f"parameter {name}", -(2**63), 2**63 - 1)
    try:
        return float(value)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise UsageError(f"parameter {name} must be a number, text, time, address or None, not {kind}") from None


def _limits(given: Mapping[str, float] | None) -> tuple[float | None, int | None, int | None]:
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise UsageError(f"limits must be a mapping of names to figures, such as {{'seconds': 60}}, not {given!r}")
    for name in given:
        if name not in _LIMITS:
            raise UsageError(f"there is no limit {name!r}; there are {', '.join(_LIMITS)}")
    seconds = None if given.get("seconds") is None else _seconds(given["seconds"])
    if seconds is not None and not 0 < seconds <= 1e9:
        raise UsageError(f"the limit of seconds must be above 0 and at most 1,000,000,000, not {seconds}")
    rows, size = (
        None if (most := given.get(name)) is None else _arguments.whole(most, f"the limit of {name}", 1, 2**63 - 1)
        for name in ("rows", "bytes")
    )
    return seconds, rows, size


def _seconds(given: Any) -> float:
    try:
        # A text would be read as a number, and True as 1.
        if not isinstance(given, (bool, str, bytes)):
            return float(given)
    except (TypeError, ValueError, OverflowError):
        pass
    raise UsageError(f"the limit of seconds must be a number, not {given!r}")
