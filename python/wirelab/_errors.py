"""The exceptions of the package. A file that cannot be read raises the ``OSError`` that Python itself would raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._convert import Conversion


class WirelabError(Exception):
    """Anything that is wirelab's own to complain about."""

    #: The message by language, where there are several.
    messages: dict[str, str]


class NotACaptureError(WirelabError, ValueError):
    """The input holds no capture; ``looks_like`` says what it seems to be instead."""

    path: str
    looks_like: str


class UsageError(WirelabError, ValueError):
    """The call is at fault: an unknown table or column, a time that does not parse."""


class LimitError(WirelabError):
    """A stated limit was exceeded, and nothing useful could be kept."""

    limit: str


class ConversionError(WirelabError):
    """Captures could not be converted; all others were. ``conversion`` has what became of each."""

    conversion: Conversion


class SqlError(UsageError):
    """The query is at fault: no SQL, an unknown name, a parameter that was not given, or more than reading.

    ``offset`` is the character's place in the query as UTF-8, in bytes, where it is known.
    """

    offset: int | None


class QueryLimitError(SqlError, LimitError):
    """The query reached a limit: ``query_time``, ``query_rows`` or ``query_bytes``."""
