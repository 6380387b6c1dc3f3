"""Two captures of the same traffic, compared."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _arguments, _core
from ._table import Table


class Matches(Table):
    """The table ``matches``: one row per packet that was seen at either of two points, with what became of it.

    ``summary`` has the figures per direction and per flow. ``notes`` must stand beside them: delays are raw differences
    of two clocks, and what the captures cannot tell is said there.
    """

    __slots__ = ("_summary",)

    def __init__(self, data: _core.Table, summary: dict[str, Any]) -> None:
        super().__init__("matches", lambda _: data)
        self._summary = summary

    @property
    def description(self) -> str:
        """What a row is."""
        return "One row per packet that was seen at either of two capture points."

    @property
    def summary(self) -> dict[str, Any]:
        """Figures: ``a_to_b``, ``b_to_a`` and ``unknown`` by direction of travel, ``flows``, the clocks' offset, and
        what was read at ``a`` and ``b``."""
        return {name: value for name, value in self._summary.items() if name != "notes"}

    def notes(self, lang: str = "en") -> list[str]:
        """What a reader of the figures must know, in English (``en``) or Chinese (``zh``)."""
        return list(self._summary["notes"][_arguments.language(lang)])

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *self.notes()])


def match(
    a: str | os.PathLike[str] | bytes | Any,
    b: str | os.PathLike[str] | bytes | Any,
    *,
    unmatched_only: bool = False,
    same_clock: bool = False,
    max_packets: int | None = None,
    threads: int | None = None,
    vxlan_ports: int | Iterable[int] | None = None,
    roce_ports: int | Iterable[int] | None = None,
    progress: _arguments.Progress | None = None,
) -> Matches:
    """Compares two captures of the same traffic, taken at two points of its path; either may be the one upstream.

    ``a``, ``b``: one path, bytes or file-like object each, or a list of them that are one capture.
    ``unmatched_only``: leaves out the rows of packets that were delivered.
    ``same_clock``: both captures were stamped by one clock (two ports of one machine), so that even traffic of one
    direction tells which point comes first.
    ``max_packets``: of each capture at most so many are compared (default: five million, at 64 bytes each).
    """
    data, summary = _core.match_captures(
        _arguments.inputs([a]),
        _arguments.inputs([b]),
        _arguments.options(threads, None, vxlan_ports, roce_ports, "off"),
        bool(same_clock),
        None if max_packets is None else _arguments.whole(max_packets, "max_packets", 1, 2**32 - 2),
        bool(unmatched_only),
        _arguments.progress(progress),
    )
    return Matches(data, summary)
