"""An opened capture."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _arguments, _card, _core, _sql
from ._errors import UsageError
from ._table import Table
from ._words import default_lang


@dataclass(frozen=True)
class Summary:
    """What a capture holds, in a few figures."""

    frames: int
    #: Bytes on the wire.
    original_bytes: int
    #: Bytes in the file.
    captured_bytes: int
    #: Earliest and latest time, in nanoseconds since 1970-01-01 UTC; None where no frame has a time.
    first_time_ns: int | None
    last_time_ns: int | None
    #: Frames by highest protocol, most frequent first.
    protocols: dict[str, int]

    @property
    def duration_ns(self) -> int | None:
        """From the earliest to the latest frame, in nanoseconds."""
        if self.first_time_ns is None or self.last_time_ns is None:
            return None
        return self.last_time_ns - self.first_time_ns


@dataclass(frozen=True)
class Finding:
    """Something about the capture that whoever reads its figures must know."""

    code: str
    #: "info", "warning" or "error".
    severity: str
    message: str
    #: Frames or events that it concerns.
    count: int
    file_no: int | None = None
    #: First frame concerned, in its file.
    frame_no: int | None = None
    value: int | None = None
    unit: str | None = None
    #: The first frames concerned.
    frames: list[int] = field(default_factory=list)


class _Tables(Mapping[str, Table]):
    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def __getitem__(self, name: str) -> Table:
        if name not in _NAMES:
            raise KeyError(name)
        return self._capture.table(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __repr__(self) -> str:
        return f"<tables: {', '.join(_NAMES)}>"


class Capture:
    """A capture of one or more files; every table is an attribute, computed when its rows are first needed.

    ``load("tcp", "tcp_flows")`` computes several tables in one pass.
    """

    packets: Table
    tcp: Table
    tcp_flows: Table
    tcp_events: Table
    flows: Table
    roce: Table
    roce_qps: Table
    roce_messages: Table
    roce_intervals: Table
    roce_events: Table
    pause: Table
    pause_intervals: Table
    lldp: Table
    tunnels: Table
    probes: Table
    dns: Table
    icmp: Table
    arp: Table
    interfaces: Table
    capture_quality: Table

    def __init__(self, core: _core.Capture) -> None:
        self._core = core
        self._tables: dict[str, Table] = {}
        self._seen: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_") or name not in _NAMES:
            raise AttributeError(f"a capture has no attribute {name!r}; its tables are {', '.join(_NAMES)}")
        return self.table(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_NAMES})

    def table(self, name: str) -> Table:
        """The table of that name."""
        if not isinstance(name, str):
            raise UsageError(f"a table is named by a text, not {name!r}")
        if name not in self._tables:
            self._tables[name] = Table(name, self._core.table)
        return self._tables[name]

    @property
    def tables(self) -> Mapping[str, Table]:
        """All tables by name."""
        return _Tables(self)

    def load(self, *names: str) -> Capture:
        """Computes tables in one pass over the capture; without names, all."""
        for name in names:
            if not isinstance(name, str):
                raise UsageError(f"a table is named by a text, each as an argument of its own, not {name!r}")
        self._core.load(list(names or _NAMES))
        return self

    def sql(
        self,
        query: str,
        /,
        params: Mapping[str, Any] | None = None,
        *,
        limits: Mapping[str, float] | None = None,
        **named: Any,
    ) -> _sql.QueryResult:
        """Runs one query over the tables, as SQLite does: ``cap.sql("SELECT max(seq) FROM tcp WHERE src_port = :port",
        port=5201)``. Only the tables it names are computed; it can change nothing.

        ``params``, and further keywords: the values of ``:name`` in the query, which are bound and never become part of
        it. ``limits``: most ``seconds`` (30), ``rows`` (10,000,000) and ``bytes`` (2**30) of the result.
        """
        return _sql.run(query, {"capture": self._core}, params, limits, named)

    @property
    def summary(self) -> Summary:
        """Frames, bytes, time and protocols."""
        seen = self.overview()
        return Summary(
            frames=seen["frames"],
            original_bytes=seen["original_bytes"],
            captured_bytes=seen["captured_bytes"],
            first_time_ns=seen["first_time_ns"],
            last_time_ns=seen["last_time_ns"],
            protocols={one["protocol"]: one["frames"] for one in seen["protocols"]},
        )

    @property
    def files(self) -> list[dict[str, Any]]:
        """Name, format, compression, size and frames of each file."""
        return [dict(one) for one in self.overview()["files"]]

    def quality(self, lang: str | None = None) -> list[Finding]:
        """What is to be known of the capture before its figures are believed, in English or Chinese (``zh``)."""
        lang = default_lang() if lang is None else _arguments.language(lang)
        return [
            Finding(
                code=one["code"],
                severity=one["severity"],
                message=one[f"message_{lang}"],
                count=one["count"],
                file_no=one["file_no"],
                frame_no=one["frame_no"],
                value=one["value"],
                unit=one["unit"],
                frames=list(one["frames"] or []),
            )
            for one in self.overview()["findings"]
        ]

    def overview(self) -> dict[str, Any]:
        """Everything that ``wirelab info`` tells, as plain Python values; read in one pass, then kept."""
        if self._seen is None:
            self._seen = self._core.overview()
        return self._seen

    def write(
        self,
        path: str | os.PathLike[str],
        frames: Iterable[int | tuple[int, int]] | None = None,
        comments: Mapping[int | tuple[int, int], str] | None = None,
    ) -> int:
        """Writes frames as a pcapng file for Wireshark, with comments on them; returns how many were written.

        ``frames``: frame numbers, or pairs of ``file_no`` and ``frame_no`` where the capture has several files; columns
        of pandas, numpy and pyarrow are taken as they are; None writes all. ``comments``: text by frame, of frames that
        are written. A file that is there is replaced once all is written.
        """
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise UsageError(f"the path to write to is no path: {path!r}")
        name = os.fsdecode(path)
        if not name:
            raise UsageError("the path to write to is empty")
        wanted = None if frames is None else _frames(frames)
        notes = _comments(comments)
        self._look_for({(file_no, frame_no) for file_no, frame_no, _ in notes}, wanted)
        written, _, comments_left_out, _ = self._core.write(name, wanted, notes)
        if comments_left_out:
            raise UsageError(
                f"{name} is written, but for {comments_left_out} of the comments: their frames have no time, and "
                "pcapng has no place for comments on such frames"
            )
        return written

    def _look_for(self, commented: set[tuple[int, int]], wanted: list[tuple[int, int]] | None) -> None:
        """A comment that would be lost is told before anything is written."""
        if not commented:
            return
        if wanted is not None:
            lost = sorted(commented.difference(wanted))
        else:
            counts = [file["frames"] for file in self.files]
            lost = sorted(
                (file_no, frame_no)
                for file_no, frame_no in commented
                if file_no > len(counts) or frame_no > counts[file_no - 1]
            )
        if lost:
            file_no, frame_no = lost[0]
            why = "the capture has no such frame" if wanted is None else "frames does not name it, so it is not written"
            raise UsageError(f"there is a comment for frame {frame_no} of file {file_no}, but {why}")

    def __repr__(self) -> str:
        return _card.line(self.overview())

    def _repr_html_(self) -> str:
        return _card.html(self.overview(), default_lang())


_FRAMES = "frames are numbers, or pairs of file_no and frame_no, all counted from 1"


def _frames(given: Any) -> list[tuple[int, int]]:
    # The bytes of a text would pass for numbers.
    if isinstance(given, (str, bytes, bytearray, memoryview)):
        raise UsageError(f"{_FRAMES}, in a list: not {given!r}")
    try:
        several = list(given)
    except TypeError:
        raise UsageError(f"{_FRAMES}, in a list: not {given!r}") from None
    return [_frame(one) for one in several]


def _frame(one: Any) -> tuple[int, int]:
    """A frame as file and frame number; a number alone is of the first file."""
    plain = _plain(one)
    pair = plain if isinstance(plain, (tuple, list)) else (1, plain)
    try:
        if len(pair) != 2:
            raise TypeError
        file_no, frame_no = (_number(number) for number in pair)
    except TypeError:
        raise UsageError(f"{_FRAMES}: not {one!r}") from None
    if not (0 < file_no < 2**32 and 0 < frame_no < 2**64):
        raise UsageError(f"{_FRAMES}: not {one!r}")
    return file_no, frame_no


def _number(given: Any) -> int:
    plain = _plain(given)
    if isinstance(plain, bool):
        raise TypeError
    return operator.index(plain)


def _plain(given: Any) -> Any:
    """What numpy (``tolist``) and pyarrow (``as_py``) hold, as Python has it."""
    for name in ("tolist", "as_py"):
        if callable(plain := getattr(given, name, None)):
            return plain()
    return given


def _comments(given: Any) -> list[tuple[int, int, str]]:
    if given is None:
        return []
    try:
        items = list(given.items())
    except (AttributeError, TypeError):
        raise UsageError(
            f"comments must be a mapping of frames to texts, such as {{17: 'lost'}}, not {given!r}"
        ) from None
    for frame, text in items:
        if not isinstance(text, str):
            raise UsageError(f"the comment for frame {frame} must be a text, not {text!r}")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UsageError(f"the comment for frame {frame} holds what is no character: {text!r}")
    return [(*_frame(frame), str(text)) for frame, text in items]


def open(
    *paths: Any,
    threads: int | None = None,
    link_speed_bps: int | None = None,
    vxlan_ports: int | Iterable[int] | None = None,
    roce_ports: int | Iterable[int] | None = None,
    checksums: str = "auto",
    pause_storm_ns: int | None = None,
    logs: Any = None,
    roce_endpoints: Iterable[tuple[Any, ...]] | None = None,
    memory_budget: int | None = None,
    progress: _arguments.Progress | None = None,
) -> Capture:
    """Opens one or more files as one capture.

    ``paths``: paths, bytes or objects with ``read(n)``; ``"-"`` is standard input. What can be read only once is kept
    in memory (2 GiB at most).
    ``threads``: workers; the rows are the same for any number. ``link_speed_bps``: turns pause quanta into nanoseconds.
    ``vxlan_ports``, ``roce_ports``: UDP destination ports, by default 4789 and 8472, and 4791.
    ``checksums``: verified or not (``"on"``, ``"off"``); ``"auto"`` where the input is not too large for it.
    ``pause_storm_ns``: a pause as long is a storm (default: 200 ms).
    ``logs``: what perftest (``ib_write_bw`` ...) printed, as paths, bytes or file-like objects: it names the queue
    pairs of both ends, which pairs those of the capture for certain. ``roce_endpoints``: the same by hand, each end as
    ``(address, qpn, psn)`` or ``(address, qpn, psn, peer_qpn)``.
    ``memory_budget``: bytes that tables may take in memory together, half of the machine's by default; larger ones are
    kept in temporary files (where ``TMPDIR`` says) and read the same.
    ``progress``: called as ``progress(done_bytes, total_bytes)`` every 100 ms at most while a table is computed, and
    once at its end; ``total_bytes`` is None where the size is not known. What it raises ends the run.
    """
    core = _core.open(
        _arguments.inputs(paths),
        _arguments.options(
            threads,
            link_speed_bps,
            vxlan_ports,
            roce_ports,
            checksums,
            pause_storm_ns,
            logs,
            roce_endpoints,
            memory_budget,
        ),
        _arguments.progress(progress),
    )
    return Capture(core)


def tables() -> dict[str, str]:
    """Name of every table, and what a row of it is."""
    return dict(_core.tables())


_NAMES = tuple(name for name, _ in _core.tables())
