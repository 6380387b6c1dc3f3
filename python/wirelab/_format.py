"""Figures as people read them."""

from __future__ import annotations

from typing import Any

from ._times import to_text

NOTHING = "–"


def count(number: int) -> str:
    return f"{number:,}"


def counted(number: int, thing: str) -> str:
    """``1 row``, ``2,600 rows``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def size(bytes_: int) -> str:
    return _scaled(bytes_, ("B", "kB", "MB", "GB", "TB", "PB"))


def rate(bits_per_s: int | None) -> str:
    if bits_per_s is None:
        return NOTHING
    return _scaled(bits_per_s, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def duration(ns: int | None) -> str:
    """Three digits that count, in the unit that suits."""
    if ns is None:
        return NOTHING
    if abs(ns) < 1_000:
        return f"{ns} ns"
    seconds = abs(ns) // 1_000_000_000
    sign = "-" if ns < 0 else ""
    if seconds >= 3600:
        return f"{sign}{seconds // 3600} h {seconds % 3600 // 60} min"
    if seconds >= 60:
        return f"{sign}{seconds // 60} min {seconds % 60} s"
    for unit, length in (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)):
        if abs(ns) >= length:
            return f"{_three_digits(ns / length)} {unit}"
    return f"{ns} ns"


def share(part: int, whole: int) -> str:
    """Percent; what is there is never shown as none of it."""
    if whole == 0:
        return NOTHING
    percent = 100 * part / whole
    return "<0.1 %" if 0 < percent < 0.1 else f"{percent:.1f} %"


def short_time(ns: int) -> str:
    """To the microsecond, with a space for the T."""
    return to_text(ns)[:26].replace("T", " ")


def time_span(first_ns: int, last_ns: int) -> tuple[str, str]:
    """Both ends; the later one without its date where that is the same."""
    first, last = short_time(first_ns), short_time(last_ns)
    return first, last[11:] if first[:10] == last[:10] else last


def bits_per_s(bytes_: int, ns: int | None) -> int | None:
    return bytes_ * 8 * 1_000_000_000 // ns if ns else None


def cell(value: Any, kind: str) -> str:
    """One value of a table, as a table shows it: exact, since people copy from it."""
    if value is None:
        return ""
    if kind.startswith("timestamp"):
        return to_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(cell(item, "") for item in value) + "]"
    return printable(str(value))


def printable(text: str) -> str:
    """Control characters, which a capture may bring along, as what they are and not as what they do."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def is_number(kind: str) -> bool:
    return kind.startswith(("int", "uint", "float"))


def _scaled(number: int, units: tuple[str, ...]) -> str:
    if number < 1000:
        return f"{number} {units[0]}"
    value, at = float(number), 0
    while value >= 999.5 and at + 1 < len(units):
        value /= 1000
        at += 1
    return f"{_three_digits(value)} {units[at]}"


def _three_digits(value: float) -> str:
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"
