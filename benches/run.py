#!/usr/bin/env python3
"""`make bench`: wirelab and its peers on the same generated captures, in one run.

Exit codes: 0 all programs agree, 1 some do not (then no table is printed) or one failed, 2 the call is at fault.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness import bench, inputs, report, scaling
from harness.programs import Tools

HERE = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    peers = options.peers or build_peers()
    if options.wirelab is None or not options.wirelab.is_file():
        return fault(f"no wirelab-scan at {options.wirelab}: give --wirelab or set WIRELAB_SCAN")
    if peers is None or not peers.is_file():
        return fault(f"no wirelab-bench at {peers}: give --peers, or install cargo to build it")
    specs = inputs.specs(options.mode, options.bulk_mb * 1_000_000 if options.bulk_mb else None)
    names = {spec.name for spec in specs}
    if unknown := set(options.inputs or names) - names:
        return fault(f"no input is called {sorted(unknown)}: there are {sorted(names)}")
    specs = [spec for spec in specs if not options.inputs or spec.name in options.inputs]
    store = inputs.Store(options.dir, peers.resolve(), say)
    tools = Tools.find(options.wirelab.resolve(), peers.resolve(), options.python, options.dir)
    about = report.about_machine(tools.versions(), tools.missing())
    for line in about:
        say(line)
    settings = bench.Settings(options.mode == "full", options.threads, options.timeout, say)
    outcome = bench.Outcome()
    if not options.no_comparison:
        outcome = bench.run_all(specs, store, tools, settings, compressed=not options.plain_only)
    # Titles and notes of further parts, what was found, and the bars on it.
    parts: list[tuple[str, str, scaling.Part, list[report.Bar]]] = []
    if options.growth or options.mode == "full":
        part = scaling.measure_growth(options.mode, store, tools, settings, outcome)
        parts.append(("Growth", scaling.GROWTH_NOTE, part, scaling.growth_bars(part)))
    if options.memory or options.mode == "full":
        part = scaling.measure_memory(options.mode, store, tools, settings, outcome)
        parts.append(("Memory", scaling.MEMORY_NOTE, part, scaling.memory_bars(part)))
    if outcome.failures:
        print("the programs do not agree, so there is nothing to compare:", file=sys.stderr)
        for failure in dict.fromkeys(outcome.failures):
            print(f"  {failure}", file=sys.stderr)
        return 1
    if outcome.rows:
        print(report.text_table(outcome.rows) + "\n")
    sections = [line for title, note, part, _ in parts for line in scaling.markdown(title, note, part)]
    more_bars = [bar for *_, bars in parts for bar in bars]
    print("\n".join(sections))
    for bar in (*report.bars(outcome.rows), *more_bars):
        print(bar.line())
    if options.markdown:
        notes = report.read_notes(HERE / "notes.md")
        options.markdown.write_text(
            report.markdown(outcome.rows, options.mode, about, sections, more_bars, notes), encoding="utf-8"
        )
    if options.json:
        further = {title.lower(): part.rows() for title, _, part, _ in parts}
        options.json.write_text(report.as_json(outcome.rows, options.mode, about, further, more_bars), encoding="utf-8")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py", description="Compare wirelab with its peers on generated captures.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", help="small inputs, under 90 s")
    mode.add_argument(
        "--full", dest="mode", action="store_const", const="full", help="626 MB, a million flows, growth, memory"
    )
    parser.set_defaults(mode="default")
    scan = os.environ.get("WIRELAB_SCAN")
    parser.add_argument(
        "--wirelab", type=Path, default=Path(scan) if scan else None, help="wirelab-scan [$WIRELAB_SCAN]"
    )
    peers = os.environ.get("WIRELAB_BENCH_PEERS")
    peers_help = "wirelab-bench [$WIRELAB_BENCH_PEERS]; without it, it is built"
    parser.add_argument("--peers", type=Path, default=Path(peers) if peers else None, help=peers_help)
    parser.add_argument(
        "--dir", type=Path, default=inputs.default_folder(), help="where inputs are kept [$WIRELAB_BENCH_DIR]"
    )
    parser.add_argument("--inputs", type=lambda text: text.split(","), help="only these, e.g. bulk,small")
    parser.add_argument("--plain-only", action="store_true", help="no gzip and zstd")
    parser.add_argument(
        "--growth", action="store_true", help="also how costs grow with packets and flows (--full does)"
    )
    parser.add_argument("--memory", action="store_true", help="also memory at 1 GB and 10 GB of input (--full does)")
    parser.add_argument("--no-comparison", action="store_true", help="only the parts that --growth and --memory add")
    parser.add_argument("--bulk-mb", type=int, help="size of the bulk capture")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of wirelab's second row")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds after which a peer is left out")
    parser.add_argument("--python", default=sys.executable, help="interpreter with dpkt, scapy, nfstream")
    parser.add_argument("--markdown", type=Path, help="write the report here")
    parser.add_argument("--json", type=Path, help="write every run's figures here")
    return parser.parse_args(arguments)


def build_peers() -> Path | None:
    """Builds the generator and the bare loop with cargo and says where they are."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return None
    manifest = HERE / "peers" / "Cargo.toml"
    command = [
        cargo,
        "build",
        "--release",
        "--manifest-path",
        str(manifest),
        "--message-format",
        "json-render-diagnostics",
    ]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        return None
    messages = (json.loads(line) for line in built.stdout.splitlines())
    made = [message["executable"] for message in messages if message.get("executable")]
    return Path(made[-1]) if made else None


def fault(message: str) -> int:
    say(message)
    return 2


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
