"""The table, the bars, and the same as Markdown and JSON."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .bench import Row
from .programs import CHECKSUMS, COUNTING, DECODING, TCP, wirelab_name

HEADINGS = (
    "input", "program", "CPU s", "wall s", "packets/s", "MB/s", "ns CPU/packet", "peak anon MiB", "CPU : wirelab",
)  # fmt: skip
INPUT_HEADINGS = "| input | frames | MB | TCP connections | segments that passed the tap again |"
NOTE = (
    "CPU is user and system time; programs of up to five seconds ran three times, those of up to half a second nine "
    "times, in turn; the table shows the median of each figure and the highest memory. Files were in the page cache. "
    "Packets/s and MB/s are by wall time and the uncompressed capture. "
    "The last column is CPU per packet divided by that of wirelab's first row on the same input. Programs that only "
    "read the first frames, and nfstream, are counted without the start of their interpreter."
)


@dataclass(frozen=True)
class Bar:
    """Something wirelab wants to hold: `value` and how it must compare with `limit`."""

    text: str
    value: float
    # None for a figure that no bar is set for.
    limit: float | None
    at_least: bool

    @property
    def is_met(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        if self.limit is None:
            return f"{self.text}: {self.value:.2f}"
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
        figure(cost.cpu_s, ".3f"),
        f"{cost.wall_s:.3f}",
        f"{row.frames / max(cost.wall_s, 1e-9):,.0f}",
        f"{read_bytes / 1e6 / max(cost.wall_s, 1e-9):,.0f}",
        figure(own_ns, ",.0f"),
        mebibytes(cost.peak_anon_bytes),
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


def markdown(
    rows: Sequence[Row],
    mode: str,
    about: Sequence[str],
    parts: Sequence[str] = (),
    more_bars: Sequence[Bar] = (),
    notes: str = "",
) -> str:
    """The report. `parts` are the lines of further sections; `notes` is what was written on bars that are missed."""
    out = ["# Performance", "", f"Written by `make bench` ({mode} mode).", "", *(f"- {line}" for line in about), ""]
    if rows:
        out += _inputs_and_costs(rows)
    out += [*parts, "## Bars", "", *(f"- {bar.line()}" for bar in (*bars(rows), *more_bars)), ""]
    if notes.strip():
        out += ["## Why bars are missed", "", notes.strip(), ""]
    return "\n".join(out)


def _inputs_and_costs(rows: Sequence[Row]) -> list[str]:
    out = [
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
    out += ["", "## Costs", "", NOTE, ""]
    return [*out, *markdown_table(HEADINGS, [cells(rows, row) for row in rows], left=(0, 1)), ""]


def markdown_table(headings: Sequence[str], lines: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """A table whose columns hold figures, but for those of `left`."""
    rule = "|" + "".join("---|" if column in left else "--:|" for column in range(len(headings)))
    return [_markdown_line(headings), rule, *(_markdown_line(line) for line in lines)]


def read_notes(path: Path) -> str:
    """What a file says on missed bars, without the comments in it that tell how to write it."""
    if not path.is_file():
        return ""
    return re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL).strip()


def as_json(
    rows: Sequence[Row],
    mode: str,
    about: Sequence[str],
    parts: Mapping[str, Sequence[Row]] | None = None,
    more_bars: Sequence[Bar] = (),
) -> str:
    all_bars = (*bars(rows), *more_bars)
    met = [{"text": bar.text, "value": bar.value, "limit": bar.limit, "met": bar.is_met} for bar in all_bars]
    shown = {name: [_row_as_dict(row) for row in some] for name, some in {"rows": rows, **(parts or {})}.items()}
    return json.dumps({"mode": mode, "about": list(about), **shown, "bars": met}, indent=1) + "\n"


def _row_as_dict(row: Row) -> dict[str, object]:
    runs = [vars(cost) for cost in row.costs]
    return {"input": row.capture.name, "program": row.program.name, "frames": row.frames, "runs": runs}


def bars(rows: Sequence[Row]) -> list[Bar]:
    """The bars that these rows can speak to."""
    found = []
    for name in dict.fromkeys(row.capture.name for row in rows):
        here = {row.program.name: row for row in rows if row.capture.name == name}
        full = here.get(wirelab_name(TCP.replace(",", "+"), 1))
        two = here.get(wirelab_name(TCP.replace(",", "+"), 2))
        if full is not None and full.capture.compression is None:
            found += _bars_on_peers(name, full, here)
            if two is not None:
                text = f"{name}: speed of two threads over one, wall time"
                found.append(Bar(text, full.cost.wall_s / max(two.cost.wall_s, 1e-9), 1.7, True))
            found += _bars_on_stages(name, here)
        elif two is not None and f"{two.capture.compression} -dc" in here:
            peer = here[f"{two.capture.compression} -dc"]
            text = f"{name}: wall time of two threads over that of {peer.program.name}"
            found.append(Bar(text, two.cost.wall_s / max(peer.cost.wall_s, 1e-9), 1.1, False))
    for what, of_roce, of_tcp in (
        ("packets and headers", "packets+roce", TCP.replace(",", "+")),
        ("all tables", "all RoCE tables", "all TCP tables"),
    ):
        tcp = _cpu_ns(rows, "bulk", wirelab_name(of_tcp, 1))
        roce = _cpu_ns(rows, "roce", wirelab_name(of_roce, 1))
        if tcp and roce:
            found.append(Bar(f"wirelab's CPU per packet, {what}: roce over bulk TCP", roce / tcp, 2.0, False))
    return found


def _bars_on_peers(name: str, full: Row, here: Mapping[str, Row]) -> list[Bar]:
    found = []
    own_ns = full.cpu_ns_per_frame
    if not own_ns:
        return []
    for peer, limit in (("tshark -T fields", 100.0), ("tcptrace -n -r -l", 3.0), ("nfstream", 10.0)):
        if peer in here and (peer_ns := here[peer].cpu_ns_per_frame) is not None:
            found.append(Bar(f"{name}: {peer}'s CPU over wirelab's", peer_ns / own_ns, limit, True))
    bare_ns = here["bare loop"].cpu_ns_per_frame if "bare loop" in here else None
    if bare_ns:
        found.append(Bar(f"{name}: wirelab's CPU over the bare loop's", own_ns / bare_ns, 3.0, False))
        packets = here.get(wirelab_name("packets", 1))
        if packets is not None and (packets_ns := packets.cpu_ns_per_frame) is not None:
            text = f"{name}: wirelab's CPU for packets alone over the bare loop's"
            found.append(Bar(text, packets_ns / bare_ns, 2.0, False))
    return found


def _bars_on_stages(name: str, here: Mapping[str, Row]) -> list[Bar]:
    """Counting rows against decoding them, and what verifying checksums adds."""
    found = []
    cpu_s = {label: here[key].cost.cpu_s for label in (DECODING, COUNTING, CHECKSUMS, "packets")
             if (key := wirelab_name(label, 1)) in here}  # fmt: skip
    counting, decoding = cpu_s.get(COUNTING), cpu_s.get(DECODING)
    if counting and decoding:
        found.append(Bar(f"{name}: CPU of {COUNTING} over that of {DECODING}", counting / decoding, 1.1, False))
    verified, plain = cpu_s.get(CHECKSUMS), cpu_s.get("packets")
    if verified and plain and verified > plain:
        capture = here[wirelab_name(CHECKSUMS, 1)].capture
        # Small frames are mostly headers: there it is calls that cost, and not bytes.
        speed = capture.capture_bytes / 1e9 / (verified - plain)
        found.append(Bar(f"{name}: checksums, GB/s (CPU with them less CPU without)", speed, None, True))
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


def figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def mebibytes(value: int | None) -> str:
    return "-" if value is None else f"{value / 2**20:.1f}"
