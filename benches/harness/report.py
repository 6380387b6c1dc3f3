"""The table, the bars, and the same as Markdown and JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .bench import Row

HEADINGS = (
    "input", "program", "CPU s", "wall s", "packets/s", "MB/s", "ns CPU/packet", "peak anon MiB", "CPU : wirelab",
)  # fmt: skip
INPUT_HEADINGS = "| input | frames | MB | TCP connections | segments that passed the tap again |"
NOTE = (
    "CPU is user and system time; fast programs ran three times, the table shows the median of each figure and the "
    "highest memory. Files were in the page cache. Packets/s and MB/s are by wall time and the uncompressed capture. "
    "The last column is CPU per packet divided by that of wirelab's first row on the same input. Programs that only "
    "read the first frames, and nfstream, are counted without the start of their interpreter."
)


@dataclass(frozen=True)
class Bar:
    """Something wirelab wants to hold: `value` and how it must compare with `limit`."""

    text: str
    value: float
    limit: float
    at_least: bool

    @property
    def is_met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        relation = "at least" if self.at_least else "at most"
        return f"{self.text}: {self.value:.2f} ({relation} {self.limit:g}): {'met' if self.is_met else 'MISSED'}"


def reference_row(rows: Sequence[Row], row: Row) -> Row | None:
    """Wirelab's full work on the row's input: the first row the input has."""
    first = next(other for other in rows if other.capture.name == row.capture.name)
    return first if first.program.is_wirelab else None


def cells(rows: Sequence[Row], row: Row) -> tuple[str, ...]:
    cost = row.cost
    reference = reference_row(rows, row)
    own_ns, wirelab_ns = row.cpu_ns_per_frame, reference.cpu_ns_per_frame if reference else None
    ratio = f"{own_ns / wirelab_ns:.2f}" if own_ns is not None and wirelab_ns else "-"
    read_bytes = row.capture.capture_bytes * row.frames / row.capture.frames
    return (
        row.capture.name,
        row.program.name,
        _figure(cost.cpu_s, ".3f"),
        f"{cost.wall_s:.3f}",
        f"{row.frames / max(cost.wall_s, 1e-9):,.0f}",
        f"{read_bytes / 1e6 / max(cost.wall_s, 1e-9):,.0f}",
        _figure(own_ns, ",.0f"),
        _mebibytes(cost.peak_anon_bytes),
        ratio,
    )


def text_table(rows: Sequence[Row]) -> str:
    lines = [HEADINGS, *(cells(rows, row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    out = []
    for number, line in enumerate(lines):
        left = [line[column].ljust(widths[column]) for column in (0, 1)]
        right = [line[column].rjust(widths[column]) for column in range(2, len(HEADINGS))]
        if number > 1 and line[0] != lines[number - 1][0]:
            out.append("")
        out.append("  ".join(left + right).rstrip())
        if number == 0:
            out.append("  ".join("-" * width for width in widths))
    return "\n".join(out)


def markdown(rows: Sequence[Row], mode: str, about: Sequence[str]) -> str:
    out = ["# Performance", "", f"Written by `make bench` ({mode} mode).", "", *(f"- {line}" for line in about), ""]
    out += [
        "## Inputs",
        "",
        "| input | frames | MB | TCP connections | segments sent again past the tap |",
        "|---|--:|--:|--:|--:|",
    ]
    seen = set()
    for row in rows:
        if row.capture.name not in seen:
            seen.add(row.capture.name)
            truth = row.capture.truth
            out.append(
                f"| {row.capture.name} | {truth['frames']:,} | {truth['bytes'] / 1e6:,.0f} | {truth['tcp_flows']:,} "
                f"| {truth['retransmissions']:,} |"
            )
    out += [
        "",
        "## Costs",
        "",
        NOTE,
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---|---|" + "--:|" * (len(HEADINGS) - 2),
    ]
    out += [_markdown_line(cells(rows, row)) for row in rows]
    out += ["", "## Bars", "", *(f"- {bar.line()}" for bar in bars(rows)), ""]
    return "\n".join(out)


def as_json(rows: Sequence[Row], mode: str, about: Sequence[str]) -> str:
    shown = [
        {
            "input": row.capture.name,
            "program": row.program.name,
            "frames": row.frames,
            "runs": [vars(cost) for cost in row.costs],
        }
        for row in rows
    ]
    met = [{"text": bar.text, "value": bar.value, "limit": bar.limit, "met": bar.is_met} for bar in bars(rows)]
    return json.dumps({"mode": mode, "about": list(about), "rows": shown, "bars": met}, indent=1) + "\n"


def bars(rows: Sequence[Row]) -> list[Bar]:
    """The bars that these rows can speak to."""
    found = []
    for name in dict.fromkeys(row.capture.name for row in rows):
        here = {row.program.name: row for row in rows if row.capture.name == name}
        full = here.get("wirelab packets+tcp+tcp_flows, 1 thread")
        own_ns = full.cpu_ns_per_frame if full else None
        if full is not None and own_ns and full.capture.compression is None:
            for peer, limit in (("tshark -T fields", 100.0), ("tcptrace -n -r -l", 3.0), ("nfstream", 10.0)):
                if peer in here and (peer_ns := here[peer].cpu_ns_per_frame) is not None:
                    found.append(Bar(f"{name}: {peer}'s CPU over wirelab's", peer_ns / own_ns, limit, True))
            bare_ns = here["bare loop"].cpu_ns_per_frame if "bare loop" in here else None
            if bare_ns:
                found.append(Bar(f"{name}: wirelab's CPU over the bare loop's", own_ns / bare_ns, 3.0, False))
                packets = here.get("wirelab packets, 1 thread")
                if packets is not None and (packets_ns := packets.cpu_ns_per_frame) is not None:
                    text = f"{name}: wirelab's CPU for packets alone over the bare loop's"
                    found.append(Bar(text, packets_ns / bare_ns, 2.0, False))
            two = here.get("wirelab packets+tcp+tcp_flows, 2 threads")
            if two is not None:
                text = f"{name}: speed of two threads over one, wall time"
                found.append(Bar(text, full.cost.wall_s / max(two.cost.wall_s, 1e-9), 1.7, True))
    tcp = _cpu_ns(rows, "bulk", "wirelab packets+tcp+tcp_flows, 1 thread")
    roce = _cpu_ns(rows, "roce", "wirelab packets+roce, 1 thread")
    if tcp and roce:
        found.append(Bar("wirelab's CPU per packet, roce over bulk TCP", roce / tcp, 2.0, False))
    return found


def about_machine(versions: Sequence[str], missing: Sequence[str]) -> list[str]:
    lines = [f"{_cpu_model()}, {os.cpu_count()} logical CPUs, {platform.system()} {platform.release()}"]
    if hasattr(os, "getloadavg"):
        load = os.getloadavg()[0]
        lines.append(f"load average before the run: {load:.2f}" + (" (the machine was not idle)" if load > 0.5 else ""))
    lines.append("peers: " + "; ".join(versions))
    if missing:
        lines.append("not installed: " + ", ".join(missing))
    lines.append(f"Python {sys.version.split()[0]}")
    return lines


def _cpu_ns(rows: Sequence[Row], capture: str, program: str) -> float | None:
    matching = (row for row in rows if row.capture.name == capture and row.program.name == program)
    row = next(matching, None)
    return row.cpu_ns_per_frame if row else None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _markdown_line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _mebibytes(value: int | None) -> str:
    return "-" if value is None else f"{value / 2**20:.1f}"
