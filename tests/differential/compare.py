#!/usr/bin/env python3
"""Compares wirelab's tables with what tshark prints of the same captures, field by field and frame by frame.

    python3 tests/differential/compare.py CORPUS... --dump target/debug/examples/dump_tables --work DIR

A cell counts where at least one of the two has a value. `exceptions.py` names the differences that are meant; all
others are listed. Exit status 1 where the share of equal cells, exceptions put aside, is below `--least`.
"""

import argparse
import collections
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import corpus
import exceptions
import expected
import oracle
import pyarrow.ipc
from stack import Stack

TABLES = ["packets", "tcp", "icmp", "arp", "roce", "pause", "tunnels"]


def dump(captures: list[Path], program: Path, work: Path) -> dict[Path, Path]:
    directories = {
        capture: work / "tables" / hashlib.sha256(str(capture).encode()).hexdigest()[:24] for capture in captures
    }
    listing = work / "captures.tsv"
    listing.write_text(
        "".join(f"{capture}\t{directory}\n" for capture, directory in directories.items()), encoding="utf-8"
    )
    subprocess.run([program, listing, ",".join(TABLES)], check=True)
    return directories


def rows(directory: Path, table: str) -> dict[int, list[dict]]:
    """Rows of a table by frame number."""
    found = collections.defaultdict(list)
    path = directory / f"{table}.arrows"
    if not path.exists():
        return found
    with pyarrow.ipc.open_stream(path) as reader:
        for batch in reader:
            columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name not in UNREAD}
            for values in zip(*columns.values(), strict=True):
                row = dict(zip(columns, values, strict=True))
                found[row["frame_no"]].append(row)
    return found


UNREAD = {"time", "time_rel_ns", "file_no", "flow_id", "comment", "pause_ns"}


def normal(value):
    if value is None or value is False:
        return None
    if value is True:
        return 1
    if isinstance(value, list):
        # SACK blocks arrive as structures and are compared as pairs of sequence numbers.
        pairs = [tuple(item.values()) if isinstance(item, dict) else tuple(item) for item in value]
        return pairs or None
    return value


class Result:
    def __init__(self):
        self.equal = collections.Counter()
        self.different = collections.Counter()
        self.excepted = collections.Counter()
        self.reasons = collections.Counter()
        self.files_of_reason = collections.defaultdict(set)
        self.samples = collections.defaultdict(list)
        self.stopped_by = collections.Counter()
        self.frames = 0

    def cell(self, table, field, ours, theirs, context):
        ours, theirs = normal(ours), normal(theirs)
        if field.startswith("is_"):
            ours, theirs = ours or None, theirs or None
        if ours is None and theirs is None:
            return
        name = f"{table}.{field}"
        if ours == theirs:
            self.equal[name] += 1
            return
        reason = exceptions.reason(name, ours, theirs, context)
        if reason:
            self.excepted[name] += 1
            self.reasons[reason] += 1
            self.files_of_reason[reason].add(str(context["file"]))
            return
        self.different[name] += 1
        if len(self.samples[name]) < 4000:
            self.samples[name].append((str(context["file"]), context["frame"], ours, theirs))


def compare_file(capture: Path, directory: Path, lines: Path, result: Result):
    ours = {table: rows(directory, table) for table in TABLES}
    for fields in oracle.frames(lines):
        if "frame.number" not in fields:
            continue
        frame_no = int(fields["frame.number"][0])
        stack = Stack.of(fields)
        result.frames += 1
        if stack.stopped_by:
            result.stopped_by[stack.stopped_by] += 1
        mine = ours["packets"].get(frame_no, [{}])[0]
        context = {"file": capture, "frame": frame_no, "fields": fields, "stack": stack, "packet": mine, "row": mine}
        if not mine:
            result.cell("packets", "row", None, 1, context)
            continue
        for field, theirs in expected.packet(stack).items():
            value = mine[field]
            if field == "protocol" and (theirs is None or value is None):
                continue
            if field == "payload_bytes" and theirs is None:
                continue
            result.cell("packets", field, value, theirs, context)
        for table in ("tcp", "icmp", "arp", "roce"):
            theirs = getattr(expected, table)(stack)
            row = next(iter(ours[table].get(frame_no, [])), None)
            if theirs is None and row is None:
                continue
            context["row"] = row or mine
            context["expected"] = theirs
            result.cell(table, "row", None if row is None else 1, None if theirs is None else 1, context)
            if theirs is not None and row is not None:
                for field, value in theirs.items():
                    result.cell(table, field, row[field], value, context)
        for table in ("pause", "tunnels"):
            theirs = getattr(expected, table)(stack)
            mine_rows = ours[table].get(frame_no, [])
            if not theirs and not mine_rows:
                continue
            result.cell(table, "rows", len(mine_rows), len(theirs), context)
            for row, wanted in zip(mine_rows, theirs, strict=False):
                context["row"] = row
                for field, value in wanted.items():
                    result.cell(table, field, row[field], value, context)


def report(result: Result, out):
    names = sorted(set(result.equal) | set(result.different) | set(result.excepted))
    print(f"{'field':34}{'cells':>10}{'equal':>10}{'excepted':>10}{'different':>10}{'share':>12}", file=out)
    totals = [0, 0, 0]
    for name in names:
        equal, excepted, different = result.equal[name], result.excepted[name], result.different[name]
        totals = [totals[0] + equal, totals[1] + excepted, totals[2] + different]
        share = equal / max(1, equal + different)
        print(
            f"{name:34}{equal + excepted + different:>10}{equal:>10}{excepted:>10}{different:>10}{share:>12.6%}",
            file=out,
        )
    equal, excepted, different = totals
    share = equal / max(1, equal + different)
    print(f"{'all':34}{sum(totals):>10}{equal:>10}{excepted:>10}{different:>10}{share:>12.6%}", file=out)
    print(
        f"\nframes: {result.frames}; equal with exceptions counted as differences: {equal / max(1, sum(totals)):.6%}",
        file=out,
    )
    print("\nexceptions:", file=out)
    for reason, count in result.reasons.most_common():
        files = sorted(result.files_of_reason[reason])
        print(f"  {count:>7} cells in {len(files):>4} files: {reason} (e.g. {Path(files[0]).name})", file=out)
    print("\nlayers that ended the comparison of a frame, as tshark names them:", file=out)
    print("  " + ", ".join(f"{name} {count}" for name, count in result.stopped_by.most_common(60)), file=out)
    return share


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("corpus", nargs="+", type=Path)
    arguments.add_argument("--dump", type=Path, required=True, help="the built example dump_tables")
    arguments.add_argument("--work", type=Path, required=True, help="folder for tables and tshark's cached answers")
    arguments.add_argument("--jobs", type=int, default=2, help="tshark processes at a time")
    arguments.add_argument("--least", type=float, default=0.9999, help="least share of equal cells")
    arguments.add_argument("--differences", type=Path, help="write every difference here, one JSON object per line")
    options = arguments.parse_args()
    captures = [capture for root in options.corpus for capture in corpus.captures(root)]
    options.work.mkdir(parents=True, exist_ok=True)
    answers = oracle.run_all(captures, options.work / "tshark", options.jobs)
    directories = dump(captures, options.dump, options.work)
    result = Result()
    for capture in captures:
        compare_file(capture, directories[capture], answers[capture], result)
    share = report(result, sys.stdout)
    if options.differences:
        with options.differences.open("w", encoding="utf-8") as file:
            for name, samples in sorted(result.samples.items()):
                for path, frame, ours, theirs in samples:
                    line = {"field": name, "file": path, "frame": frame, "wirelab": ours, "tshark": theirs}
                    file.write(json.dumps(line, default=str) + "\n")
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
