"""What all commands that read captures share: options and the progress line."""

from __future__ import annotations

import argparse
import collections
import math
import os
import re
import sys
import time
from typing import Any

from .. import _format
from .._errors import UsageError
from .._words import say

#: Progress is worth a line from this size on.
LONG_BYTES = 50_000_000
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s)")
_SIZE = re.compile(r"(\d+)\s*([kMGT]?)(i?)B?", re.IGNORECASE)
_SPEED = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(?:bit/s|bps)?", re.IGNORECASE)


def options(given: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of ``open`` and ``scan``."""
    return {
        "threads": whole(given.threads, "--threads"),
        "link_speed_bps": _speed(given.link_speed),
        "vxlan_ports": wholes(given.vxlan_port, "--vxlan-port"),
        "roce_ports": wholes(given.roce_port, "--roce-port"),
        "checksums": given.checksums,
        "pause_storm_ns": _span(given.pause_storm),
        "logs": given.log,
    }


def whole(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name} must be a whole number, not {text}") from None


def wholes(texts: list[str] | None, name: str) -> list[int] | None:
    """Repeated options, and lists with commas."""
    if texts is None:
        return None
    return [number for text in texts for part in text.split(",") if (number := whole(part, name)) is not None]


def size(text: str, name: str, what: str = "a size, as 500M or 2GiB") -> int:
    """Bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{name} must be {what}, not {text}")
    number, unit, binary = match.groups()
    return int(number) * int(1024 if binary else 1000) ** "_kmgt".index(unit.lower() or "_")


def _speed(text: str | None) -> int | None:
    if text is None:
        return None
    match = _SPEED.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--link-speed must be a speed in bit/s, as 100G or 25000000000, not {text}")
    number, unit = match.groups()
    factor = 1000 ** "_kmgt".index(unit.lower() or "_")
    whole_part, _, fraction = number.partition(".")
    bits_per_s: int = int(whole_part + fraction) * factor // 10 ** len(fraction)
    return bits_per_s


def _span(text: str | None) -> int | None:
    if text is None:
        return None
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--pause-storm must be a time, as 200ms or 1.5s, not {text}")
    number, unit = match.groups()
    whole_part, _, fraction = number.partition(".")
    return int(whole_part + fraction) * {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit] // 10 ** len(fraction)


class Progress:
    """A line on standard error that follows the reading, for long inputs and where a person looks on."""

    #: Rate and time left are those of so many seconds.
    _LOOK_BACK_S = 15.0

    def __init__(self, files: list[str], lang: str, verb: str = "reading", least_bytes: int = LONG_BYTES) -> None:
        self._lang = lang
        self._verb = verb
        self._is_shown = sys.stderr is not None and sys.stderr.isatty() and _bytes(files) >= least_bytes
        self._is_there = False
        self._seen: collections.deque[tuple[float, int]] = collections.deque([(time.monotonic(), 0)])

    @property
    def callback(self) -> Any:
        return self._tell if self._is_shown else None

    def _tell(self, done: int, total: int | None) -> None:
        parts = [_format.size(done)]
        if total:
            filled = min(30, 30 * done // total)
            share = f"{100 * done // total:3d} %"
            parts = [f"[{'#' * filled}{'.' * (30 - filled)}] {share}", f"{_format.size(done)} / {_format.size(total)}"]
        rate = self._rate(done)
        if rate:
            parts.append(f"{_format.size(int(rate))}/s")
            if total and done < total:
                left = _format.duration(math.ceil((total - done) / rate) * 1_000_000_000)
                parts.append(say(self._lang, "time_left", time=left))
        self._write(f"\r{say(self._lang, self._verb)} {'  '.join(parts)}\x1b[K")
        self._is_there = True

    def _rate(self, done: int) -> float | None:
        """Bytes a second of late."""
        now = time.monotonic()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > self._LOOK_BACK_S:
            self._seen.popleft()
        since, before = self._seen[0]
        return (done - before) / (now - since) if now - since > 0.5 and done > before else None

    def clear(self) -> None:
        if self._is_there:
            self._write("\r\x1b[K")
            self._is_there = False

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


def _bytes(files: list[str]) -> int:
    """Size of all files; standard input may be long."""
    total = 0
    for file in files:
        try:
            total += LONG_BYTES if file == "-" else os.stat(file).st_size
        except (OSError, ValueError):
            continue
    return total
