"""How costs grow with packets and with flows, and how much memory large captures take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from . import bench, checks, programs
from .bench import Outcome, Row, Settings
from .inputs import Spec, Store
from .measure import Cost
from .programs import Facts, Program, Tools
from .report import Bar, figure, markdown_table, mebibytes

# Cost per packet may differ by so much between sizes, and memory between 1 GB and 10 GB.
FLAT = 1.2
MOST_MEMORY_MIB = 1024.0
# Captures made for one part are not kept when they are larger than this.
KEPT_BYTES = 500_000_000
# Bytes of a frame of `small`, with its record header.
SMALL_FRAME_BYTES = 110
TABLES = ("packets", "tcp_flows", programs.TCP)


@dataclass(frozen=True)
class Point:
    """One capture of a series, and what programs cost on it."""

    series: str
    size: int
    flows: int
    rows: list[Row]


@dataclass
class Part:
    """What one part of the run found. `left_out` says what was not measured, and why."""

    points: list[Point] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def rows(self) -> list[Row]:
        return [row for point in self.points for row in point.rows]

    def figures(self, series: str) -> dict[str, list[tuple[int, Row]]]:
        """Rows of a series by program, in the order of sizes."""
        found: dict[str, list[tuple[int, Row]]] = {}
        for point in self.points:
            if point.series == series:
                for row in point.rows:
                    found.setdefault(row.program.name, []).append((point.size, row))
        return found


def growth_specs(mode: str) -> list[tuple[str, int, Spec]]:
    """Series, size and capture: more packets of as many flows, and as many packets of more flows."""
    if mode == "quick":
        packets, flows, of_flows, of_packets = (10_000, 100_000), (10, 1_000), 100, 50_000
    else:
        # A million flows of the generator are 14 million packets at least.
        packets, flows = (100_000, 1_000_000, 10_000_000), (100, 10_000, 1_000_000)
        of_flows, of_packets = 1_000, 16_000_000
    more_packets = [("packets", size, _small(size, of_flows)) for size in packets]
    return more_packets + [("flows", size, _small(of_packets, size)) for size in flows]


def memory_specs(mode: str) -> list[tuple[str, int, Spec]]:
    sizes = (30_000_000, 90_000_000) if mode == "quick" else (1_000_000_000, 10_000_000_000)
    flows, packets = (1_000, 50_000) if mode == "quick" else (1_000_000, 16_000_000)
    bulk = [("bytes", size, Spec("bulk", "bulk", {"bytes": size, "flows": 8})) for size in sizes]
    return [*bulk, ("flows", flows, _small(packets, flows))]


def measure_growth(mode: str, store: Store, tools: Tools, settings: Settings, outcome: Outcome) -> Part:
    def chosen(capture: bench.Capture) -> list[Program]:
        bench.warm(capture.path)
        return [programs.wirelab(tools, capture, tables, 1) for tables in TABLES]

    return _measure(growth_specs(mode), store, tools, settings, outcome, chosen, bench.SHORT_REPETITIONS)


def measure_memory(mode: str, store: Store, tools: Tools, settings: Settings, outcome: Outcome) -> Part:
    def chosen(capture: bench.Capture) -> list[Program]:
        scan = programs.wirelab(tools, capture, programs.TCP, settings.threads)
        return [scan, programs.converting(tools, capture, settings.threads)]

    return _measure(memory_specs(mode), store, tools, settings, outcome, chosen, 1)


def growth_bars(part: Part) -> list[Bar]:
    bars = []
    for series in ("packets", "flows"):
        for program, rows in part.figures(series).items():
            costs = [row.cpu_ns_per_frame for _, row in rows]
            known = [cost for cost in costs if cost]
            if len(known) > 1:
                text = f"{program}: highest CPU per packet over lowest, {_sizes(rows)} {series}"
                bars.append(Bar(text, max(known) / min(known), FLAT, False))
    return bars


def memory_bars(part: Part) -> list[Bar]:
    bars = []
    for series in ("bytes", "flows"):
        for program, rows in part.figures(series).items():
            peaks = [(size, row.cost.peak_anon_bytes) for size, row in rows if row.cost.peak_anon_bytes]
            if len(peaks) > 1:
                text = f"{program}: peak anonymous memory at {peaks[-1][0]:,} {series} over that at {peaks[0][0]:,}"
                bars.append(Bar(text, peaks[-1][1] / peaks[0][1], FLAT, False))
            for size, peak in peaks:
                text = f"{program}: peak anonymous MiB at {size:,} {series}"
                bars.append(Bar(text, peak / 2**20, MOST_MEMORY_MIB, False))
    return bars


def markdown(title: str, note: str, part: Part) -> list[str]:
    lines = [f"## {title}", "", note, ""]
    table = [_cells(point, row) for point in part.points for row in point.rows]
    headings = ("series", "packets", "flows", "MB", "program", "CPU s", "wall s", "ns CPU/packet", "peak anon MiB")
    lines += markdown_table(headings, table, left=(0, 4))
    return [*lines, "", *(f"- {line}" for line in part.left_out), *([""] if part.left_out else [])]


GROWTH_NOTE = (
    "Captures of kind `small`, one thread. Series `packets`: more packets of as many flows, which grow longer; series "
    "`flows`: as many packets of more flows, each of which has fewer to share what its opening and end cost."
)
MEMORY_NOTE = (
    "Anonymous memory of the whole process. `convert` writes all tables to Parquet. Captures of kind `bulk`, but for "
    "the series `flows`, which is one of `small`."
)


def _small(packets: int, flows: int) -> Spec:
    return Spec("small", "small", {"packets": packets, "flows": flows})


def _measure(specs, store, tools, settings, outcome, chosen, repetitions) -> Part:  # type: ignore[no-untyped-def]
    part = Part()
    kept = set(store.folder.glob("*.pcap"))
    for series, size, spec in specs:
        expected = spec.options.get("bytes", spec.options.get("packets", 0) * SMALL_FRAME_BYTES)
        # Beside the capture there must be room for what is made of it.
        needed, room = int(expected * 1.5) + 200_000_000, store.room_bytes()
        if room < needed and not store.has(spec):
            line = f"{series} {size:,}: left out, {needed / 1e9:.1f} GB are needed and {room / 1e9:.1f} GB are free"
            part.left_out.append(line)
            settings.say(line)
            continue
        capture = store.capture(spec)
        try:
            rows = [Row(capture, program) for program in chosen(capture)]
            _run(f"{series} {size:,}", rows, tools, settings, outcome, repetitions)
        finally:
            if capture.capture_bytes > KEPT_BYTES and capture.path not in kept:
                store.remove(capture)
        part.points.append(Point(series, size, spec.options["flows"], [row for row in rows if row.costs]))
    return part


def _run(label: str, rows: Sequence[Row], tools: Tools, settings: Settings, outcome: Outcome, repetitions: int) -> None:
    facts_by_source: dict[str, Facts] = {checks.GENERATOR: checks.truth_facts(rows[0].capture.truth)}
    for repetition in range(repetitions):
        for row in rows:
            if repetition > 0 and not bench.is_worth_repeating(row, repetition):
                continue
            settings.say(f"{label}: {row.program.name}" + (f" ({repetition + 1})" if repetition else ""))
            facts = bench.run_once(row, tools, settings, outcome)
            if facts is not None:
                facts_by_source[f"{row.program.name} ({repetition + 1})"] = facts
    outcome.failures += [f"{label}: {line}" for line in checks.disagreements(facts_by_source)]


def _sizes(rows: Sequence[tuple[int, Row]]) -> str:
    return ", ".join(f"{size:,}" for size, _ in rows)


def _cells(point: Point, row: Row) -> tuple[str, ...]:
    cost: Cost = row.cost
    capture = row.capture
    return (
        point.series,
        f"{capture.frames:,}",
        f"{point.flows:,}",
        f"{capture.capture_bytes / 1e6:,.0f}",
        row.program.name,
        figure(cost.cpu_s, ".3f"),
        f"{cost.wall_s:.3f}",
        figure(row.cpu_ns_per_frame, ",.0f"),
        mebibytes(cost.peak_anon_bytes),
    )
