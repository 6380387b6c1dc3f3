#!/usr/bin/env python3
"""Compares table `tcp` with tshark's own TCP analysis of the same captures: stream number, relative numbers, window,
bytes in flight, round trips, flags and number of a duplicate ACK, for every frame that has a row or a TCP layer.

    python3 tests/differential/tcp_stream.py CAPTURES... --dump target/debug/examples/dump_tables --work DIR

`--aside` lists captures in which the two differ on purpose, each with its reason. Exit status 1 where any other cell
differs, or where a capture of that list no longer does.
"""

import argparse
import collections
import csv
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus
import pyarrow.ipc
import tomllib

FIELDS = """
frame.number frame.time_epoch frame.protocols tcp.stream ip.src ip.dst ipv6.src ipv6.dst tcp.srcport tcp.dstport
tcp.seq_raw tcp.ack_raw tcp.flags tcp.window_size_value tcp.len tcp.options tcp.seq tcp.ack tcp.window_size
tcp.analysis.retransmission tcp.analysis.fast_retransmission tcp.analysis.spurious_retransmission
tcp.analysis.out_of_order tcp.analysis.duplicate_ack tcp.analysis.zero_window tcp.analysis.zero_window_probe
tcp.analysis.zero_window_probe_ack tcp.analysis.window_full tcp.analysis.window_update tcp.analysis.keep_alive
tcp.analysis.keep_alive_ack tcp.analysis.lost_segment tcp.analysis.ack_lost_segment tcp.analysis.reused_ports
tcp.analysis.duplicate_ack_num tcp.analysis.duplicate_ack_frame tcp.analysis.bytes_in_flight tcp.analysis.ack_rtt
tcp.analysis.initial_rtt tcp.analysis.acks_frame tcp.analysis.rto tcp.analysis.rto_frame tcp.analysis tcp.hdr_len
""".split()  # noqa: SIM905

FLAGS = """
retransmission fast_retransmission spurious_retransmission out_of_order duplicate_ack zero_window zero_window_probe
zero_window_probe_ack window_full window_update keep_alive keep_alive_ack lost_segment ack_lost_segment reused_ports
""".split()  # noqa: SIM905

# Our column, and tshark's field, that say the same once per TCP layer.
PER_LAYER = {"tcp_stream": "tcp.stream", "seq": "tcp.seq", "ack": "tcp.ack", "window": "tcp.window_size"}
# The same for what only some layers have.
PER_FRAME = {
    "ws_duplicate_ack_num": "tcp.analysis.duplicate_ack_num",
    "ws_bytes_in_flight": "tcp.analysis.bytes_in_flight",
    "ws_ack_rtt_ns": "tcp.analysis.ack_rtt",
    "ws_initial_rtt_ns": "tcp.analysis.initial_rtt",
}
COLUMNS = ["tcp_stream", "seq", "ack", "window", "window_bytes", *PER_FRAME, *(f"ws_{flag}" for flag in FLAGS)]


def captures_with_tcp(root: Path) -> list[Path]:
    captures, catalog = corpus.captures(root), root / "catalog.tsv"
    if not catalog.is_file():
        return captures
    with catalog.open(encoding="utf-8") as file:
        counts = {root / row["path"]: int(row["tcp_frames"] or 0) for row in csv.DictReader(file, delimiter="\t")}
    return [capture for capture in captures if counts.get(capture, 1) > 0]


def ask_tshark(capture: Path, cache: Path) -> Path:
    """tshark's lines on a capture: made once, then found by what the capture and the question are."""
    name = hashlib.sha256(" ".join(FIELDS).encode() + capture.read_bytes()).hexdigest()
    out = cache / f"{name}.tsv.gz"
    if out.exists():
        return out
    command = ["tshark", "-n", "-r", str(capture), "-Y", "tcp", "-d", "udp.port==8472,vxlan", "-T", "fields"]
    command += ["-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,", "-E", "header=y"]
    command += [part for field in FIELDS for part in ("-e", field)]
    with tempfile.TemporaryDirectory() as home:
        # An empty configuration directory: nobody's preferences change the answers.
        environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "LC_ALL": "C.UTF-8"}
        # A damaged file ends tshark with status 2; the frames before the damage are there.
        run = subprocess.run(command, capture_output=True, env=environment, timeout=600, check=False)
    part = out.with_suffix(".part")
    part.write_bytes(gzip.compress(run.stdout, 1))
    part.rename(out)
    return out


def frames_of(lines: Path):
    with gzip.open(lines, "rt", encoding="utf-8", errors="replace") as file:
        header = file.readline().rstrip("\n").split("\t")
        for line in file:
            cells = line.rstrip("\n").split("\t")
            yield {name: cell.split(",") for name, cell in zip(header, cells, strict=False) if cell}


def nanoseconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    seconds, _, fraction = text.lstrip("-").partition(".")
    return sign * (int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0")[:9]))


def own_layers(fields: dict) -> list[bool]:
    """For each TCP layer with a stream whether it is a segment; False for a header that an ICMP error quotes.

    Of a header cut within its first 16 bytes tshark prints the ports and nothing else.
    """
    layers, is_quoted = [], False
    for protocol in fields.get("frame.protocols", [""])[0].split(":"):
        is_quoted |= protocol in {"icmp", "icmpv6"}
        if protocol == "tcp":
            layers.append(not is_quoted)
    return layers[: len(fields.get("tcp.stream", []))]


def expected(fields: dict, layer: int) -> dict:
    """What table `tcp` should say of a frame whose segment is the given TCP layer."""
    row = {}
    for column, field in PER_LAYER.items():
        values = fields.get(field, [])
        row[column] = int(values[layer]) if layer < len(values) else None
    for column, field in PER_FRAME.items():
        values = fields.get(field)
        row[column] = None if not values else nanoseconds(values[-1]) if column.endswith("_ns") else int(values[-1])
    for flag in FLAGS:
        row[f"ws_{flag}"] = f"tcp.analysis.{flag}" in fields
    return row


def rows_of(directory: Path) -> dict[int, dict]:
    path = directory / "tcp.arrows"
    if not path.exists():
        return {}
    with pyarrow.ipc.open_stream(path) as reader:
        table = reader.read_all()
    columns = [table.column(name).to_pylist() for name in ["frame_no", *COLUMNS]]
    rows = {}
    for frame_no, *values in zip(*columns, strict=True):
        row = dict(zip(COLUMNS, values, strict=True))
        scaled = row.pop("window_bytes")
        # tshark shows the field as it is where the scale is not known.
        row["window"] = row["window"] if scaled is None else scaled
        rows[frame_no] = row
    return rows


class Result:
    def __init__(self):
        self.equal = collections.Counter()
        self.different = collections.Counter()
        self.frames = 0
        self.quoted = 0
        self.details: list[tuple] = []

    def compare(self, frame_no: int, ours: dict | None, theirs: dict | None):
        self.frames += 1
        if ours is None or theirs is None:
            self.note("row", frame_no, ours is not None, theirs is not None)
            return
        self.equal["row"] += 1
        for column, value in theirs.items():
            if ours[column] == value:
                self.equal[column] += 1
            else:
                self.note(column, frame_no, ours[column], value)

    def note(self, column: str, frame_no: int, ours, theirs):
        self.different[column] += 1
        self.details.append((frame_no, column, ours, theirs))


def compare_file(directory: Path, lines: Path) -> Result:
    result, ours = Result(), rows_of(directory)
    for fields in frames_of(lines):
        frame_no = int(fields["frame.number"][0])
        own = own_layers(fields)
        if True not in own:
            result.quoted += 1
            continue
        layer = max(at for at, is_own in enumerate(own) if is_own)
        result.compare(frame_no, ours.pop(frame_no, None), expected(fields, layer))
    for frame_no, row in ours.items():
        result.compare(frame_no, row, None)
    return result


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("captures", nargs="+", type=Path, help="a corpus folder, a folder of captures, or a capture")
    arguments.add_argument("--dump", type=Path, required=True, help="the built example dump_tables")
    arguments.add_argument("--work", type=Path, required=True, help="folder for tables and tshark's cached answers")
    arguments.add_argument("--aside", type=Path, default=Path(__file__).parent.parent / "it" / "wireshark.toml")
    arguments.add_argument("--jobs", type=int, default=2, help="tshark processes at a time")
    arguments.add_argument("--show", type=int, default=5, help="differences to show of each file")
    options = arguments.parse_args()
    captures = [capture for root in options.captures for capture in captures_with_tcp(root)]
    cache = options.work / "tshark-tcp"
    cache.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        answers = dict(zip(captures, pool.map(lambda capture: ask_tshark(capture, cache), captures), strict=True))
    directories = {of: options.work / "tcp" / hashlib.sha256(str(of).encode()).hexdigest()[:24] for of in captures}
    listing = options.work / "tcp.tsv"
    listing.write_text("".join(f"{of}\t{directory}\n" for of, directory in directories.items()), encoding="utf-8")
    subprocess.run([options.dump, listing, "tcp"], check=True)

    aside = tomllib.loads(options.aside.read_text(encoding="utf-8")) if options.aside.exists() else {}
    reasons = {path: reason for reason, paths in aside.get("files", {}).items() for path in paths}
    total, set_aside, quoted, failures = Result(), collections.Counter(), 0, 0
    for capture in captures:
        result = compare_file(directories[capture], answers[capture])
        path = next((known for known in reasons if str(capture).endswith(f"/{known}")), None)
        quoted += result.quoted
        if path:
            set_aside[reasons[path]] += 1
            if not result.details:
                failures += 1
                print(f"{capture}: is named as differing, and does not")
            continue
        total.frames += result.frames
        total.equal.update(result.equal)
        total.different.update(result.different)
        if result.details:
            failures += 1
            print(f"{capture}: {len({frame for frame, *_ in result.details})} of {result.frames} frames differ")
            for frame, column, ours, theirs in result.details[: options.show]:
                print(f"    frame {frame} {column}: wirelab {ours}, tshark {theirs}")
    print(f"\n{'column':32}{'equal':>10}{'different':>10}")
    for column in ["row", *PER_LAYER, *PER_FRAME, *(f"ws_{flag}" for flag in FLAGS)]:
        print(f"{column:32}{total.equal[column]:>10}{total.different[column]:>10}")
    print(f"\n{len(captures)} captures, {total.frames} frames, {failures} captures with differences")
    print(f"frames without a row: the TCP header is quoted by an ICMP error, or cut within 16 bytes: {quoted}")
    for reason, count in set_aside.most_common():
        print(f"set aside: {count} captures: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
