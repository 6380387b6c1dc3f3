"""Times, exact to the nanosecond. No floats: a double holds today's time to about 240 ns only."""

from __future__ import annotations

import operator
import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

from ._errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.IGNORECASE | re.ASCII,
)


def to_ns(time: Any, name: str) -> int | None:
    """Nanoseconds since 1970-01-01 UTC of such, of ISO 8601 text or of a datetime (UTC where it names no zone)."""
    if time is None:
        return None
    if isinstance(time, str):
        ns = _of_text(time, name)
    elif isinstance(time, datetime):
        ns = _of_datetime(time)
    elif type(time).__name__ == "datetime64" and hasattr(time, "astype"):
        ns = int(time.astype("datetime64[ns]").astype("int64"))
    else:
        try:
            ns = operator.index(time)
        except TypeError:
            raise UsageError(f"{name} must be nanoseconds (int), ISO 8601 text or a datetime, not {time!r}") from None
        if isinstance(time, bool):
            raise UsageError(f"{name} must be a time, not {time!r}")
    if not -(2**63) <= ns < 2**63:
        raise UsageError(f"{name} is out of the range of nanoseconds in 64 bits (years 1678 to 2262): {time!r}")
    return ns


def to_text(ns: int) -> str:
    """RFC 3339 with nine digits, UTC: ``2026-01-31T12:00:00.000000001Z``."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return f"{_whole_seconds(seconds)}.{rest:09}Z"


@lru_cache(maxsize=64)
def _whole_seconds(seconds: int) -> str:
    # Neighbouring rows share their second, and formatting it costs more than all the rest of a row.
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def _of_datetime(time: datetime) -> int:
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    since = time - _EPOCH
    # Times of pandas count nanoseconds beside the microseconds.
    beside = int(getattr(time, "nanosecond", 0))
    micros = time.microsecond
    seconds = since.days * 86_400 + since.seconds
    return seconds * 1_000_000_000 + micros * 1_000 + beside


def _of_text(text: str, name: str) -> int:
    match = _ISO.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{name} is no ISO 8601 time (as 2026-01-31T12:00:00.5Z): {text!r}")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    offset_s = 0
    if zone and zone.upper() != "Z":
        digits = zone[1:].replace(":", "")
        offset_s = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60
        offset_s = -offset_s if zone[0] == "-" else offset_s
    try:
        parts = [int(part or 0) for part in (year, month, day, hour, minute, second)]
        whole = datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]
    except ValueError as error:
        raise UsageError(f"{name} is no time: {text!r} ({error})") from None
    since = whole - _EPOCH
    seconds = since.days * 86_400 + since.seconds - offset_s
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))
