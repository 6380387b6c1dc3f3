"""One benchmark run: captures, programs, repetitions, and the check that all agree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import checks, measure, programs
from .inputs import Capture, Spec, Store
from .measure import Cost
from .programs import Facts, Program, Tools

REPETITIONS = 3
# A program that takes longer than this is not repeated.
FAST_S = 5.0
# One that takes less than this is repeated more often: what else the machine does for a moment weighs more.
SHORT_S = 0.5
SHORT_REPETITIONS = 9


@dataclass
class Row:
    """A program's cost on a capture."""

    capture: Capture
    program: Program
    costs: list[Cost] = field(default_factory=list)

    @property
    def cost(self) -> Cost:
        return measure.median(self.costs)

    @property
    def frames(self) -> int:
        return self.program.frames or self.capture.frames

    @property
    def cpu_ns_per_frame(self) -> float | None:
        return None if self.cost.cpu_s is None else self.cost.cpu_s * 1e9 / self.frames


@dataclass(frozen=True)
class Settings:
    full: bool
    threads: int
    timeout_s: float
    say: Callable[[str], None]


@dataclass
class Outcome:
    """Rows in the order they are shown, and everything that makes the run fail."""

    rows: list[Row] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def run_all(specs: list[Spec], store: Store, tools: Tools, settings: Settings, compressed: bool) -> Outcome:
    outcome = Outcome()
    for spec in specs:
        capture = store.capture(spec)
        sliced = store.slice(capture) if spec.kind in ("bulk", "small") else None
        _run_capture(capture, sliced, tools, settings, outcome)
        if spec.kind == "bulk" and compressed:
            for compression in ("gzip", "zstd"):
                packed = store.compressed(capture, compression)
                if packed is None:
                    settings.say(f"no {compression} here: that capture is left out")
                else:
                    _run_capture(packed, None, tools, settings, outcome)
    return outcome


def _run_capture(capture: Capture, sliced: Capture | None, tools: Tools, settings: Settings, outcome: Outcome) -> None:
    rows = [
        Row(capture, program)
        for program in programs.for_capture(tools, capture, sliced, settings.threads, settings.full)
    ]
    facts_by_source: dict[str, Facts] = {checks.GENERATOR: checks.truth_facts(capture.truth)}
    slice_facts: dict[str, Facts] = {}
    if sliced is not None:
        # The bare loop's answer on the slice is what programs that read only the slice are held against.
        slice_row = Row(sliced, programs.bare(tools, sliced))
        slice_facts["bare loop"] = run_once(slice_row, tools, settings, outcome) or {}
        slice_facts[checks.GENERATOR] = {"frames": sliced.frames}
    warm(capture.path)
    for repetition in range(SHORT_REPETITIONS):
        # Round about, not one program after the other: what else the machine does then hits all alike.
        for row in rows:
            if repetition > 0 and not is_worth_repeating(row, repetition):
                continue
            settings.say(f"{capture.name}: {row.program.name}" + (f" ({repetition + 1})" if repetition else ""))
            facts = run_once(row, tools, settings, outcome)
            if facts is None:
                continue
            into = facts_by_source if row.program.frames is None else slice_facts
            if into.setdefault(row.program.name, facts) != facts:
                outcome.failures.append(f"{capture.name}: {row.program.name} answers differently each time")
    for line in checks.disagreements(facts_by_source):
        outcome.failures.append(f"{capture.name}: {line}")
    for line in checks.disagreements(slice_facts):
        outcome.failures.append(f"{capture.name}, first frames: {line}")
    outcome.rows += [row for row in rows if row.costs]


def run_once(row: Row, tools: Tools, settings: Settings, outcome: Outcome) -> Facts | None:
    """Runs a program, notes its cost, and returns what it says; None if it failed or took too long."""
    program = row.program
    stdout, stderr = (tools.folder / f"{name}-{os.getpid()}.tmp" for name in ("stdout", "stderr"))
    label = f"{row.capture.name}: {program.name}"
    # Decompressors write what they unpack; where it goes is not their cost.
    sink = Path("/dev/null") if not program.needs and Path("/dev/null").exists() else stdout
    try:
        _remove(program.makes)
        done = measure.run(program.command, sink, stderr, program.environment, settings.timeout_s)
        if done.is_over_time:
            line = f"{label}: not done after {settings.timeout_s:.0f} s"
            if program.is_wirelab:
                outcome.failures.append(line)
            settings.say(f"{line}, left out")
            return None
        if done.exit_code != 0:
            said = stderr.read_text(errors="replace").strip().splitlines()
            outcome.failures.append(f"{label}: exit code {done.exit_code}: {said[-1] if said else 'no message'}")
            return None
        try:
            facts = program.facts(sink)
            setup_s = programs.setup_cpu_s(sink) if program.reports_setup else 0.0
        except (ValueError, KeyError, IndexError, TypeError) as error:
            outcome.failures.append(f"{label}: its output was not understood: {error!r}")
            return None
        for line in checks.missing_facts(program.needs, facts):
            outcome.failures.append(f"{label}: {line}")
        row.costs.append(_without_setup(done.cost, setup_s))
        return facts
    finally:
        stdout.unlink(missing_ok=True)
        stderr.unlink(missing_ok=True)
        _remove(program.makes)


def is_worth_repeating(row: Row, repetition: int) -> bool:
    """Whether a program is to run once more after so many times."""
    longest_s = FAST_S if repetition < REPETITIONS else SHORT_S
    return bool(row.costs) and not row.program.runs_once and row.costs[0].wall_s <= longest_s


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _without_setup(cost: Cost, setup_s: float) -> Cost:
    if setup_s == 0.0 or cost.cpu_s is None:
        return cost
    wall_s, cpu_s = max(cost.wall_s - setup_s, 0.0), max(cost.cpu_s - setup_s, 0.0)
    return Cost(wall_s, cpu_s, cost.peak_rss_bytes, cost.peak_anon_bytes)


def warm(path: Path) -> None:
    """Brings the file into the page cache: disks are not what is compared."""
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 22):
            pass
