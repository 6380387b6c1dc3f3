"""The exceptions of the package. A file that cannot be read raises the ``OSError`` that Python itself would raise."""

from __future__ import annotations


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
