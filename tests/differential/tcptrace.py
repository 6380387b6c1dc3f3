"""Compares `tcp_flows` and `tcp` with tcptrace, connection by connection.

    python tests/differential/tcptrace.py TABLE_TO_CSV CAPTURE...

TABLE_TO_CSV is the built `examples/table_to_csv`. Prints, per direction with a difference or a resent segment,
tcptrace's counts beside ours: data packets sent again and their bytes, packets out of order, zero windows. tcptrace
judges by sequence numbers alone: what fills a hole is "out of order" to it, also where it was a retransmission whose
original was lost before the tap, and a network duplicate is a retransmission.
"""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

COUNTS = {
    "rexmt data pkts": "rexmt",
    "rexmt data bytes": "rexmt_bytes",
    "outoforder pkts": "out_of_order",
    "zero win adv": "zero_window",
    "actual data pkts": "data",
}
Direction = tuple[str, str]


def tcptrace(path: Path) -> dict[Direction, Counter[str]]:
    """Counts of each direction, keyed by "address:port" of sender and receiver."""
    command = ["tcptrace", "-n", "-l", "-r", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found: dict[Direction, Counter[str]] = defaultdict(Counter)
    for block in text.split("TCP connection ")[1:]:
        hosts = re.findall(r"host \w+:\s+(\S+)", block)
        if len(hosts) != 2:
            continue
        a, b = hosts
        for label, name in COUNTS.items():
            match = re.search(rf"{label}:\s+(\d+)\D*?{label}:\s+(\d+)", block)
            if match:
                found[a, b][name] += int(match[1])
                found[b, a][name] += int(match[2])
    return found


def wirelab(program: str, path: Path) -> dict[Direction, Counter[str]]:
    text = subprocess.run([program, "tcp", str(path)], capture_output=True, text=True, check=True).stdout
    found: dict[Direction, Counter[str]] = defaultdict(Counter)
    for row in csv.DictReader(io.StringIO(text)):
        key = (f"{row['src_ip']}:{row['src_port']}", f"{row['dst_ip']}:{row['dst_port']}")
        counts, payload = found[key], int(row["payload_bytes"])
        verdict = row["verdict"]
        counts["data"] += payload > 0
        counts["zero_window"] += row["ws_zero_window"] == "true"
        if payload > 0 and verdict in {"retransmit", "network_duplicate", "capture_duplicate"}:
            counts[verdict] += 1
            counts["rexmt_bytes"] += payload
        counts["reordered"] += payload > 0 and verdict == "reordered"
        counts["probe_or_keep_alive"] += payload > 0 and verdict in {"keep_alive", "window_probe"}
    return found


def main() -> int:
    program, captures = sys.argv[1], [Path(name) for name in sys.argv[2:]]
    print(
        "| capture | direction | data pkts | tcptrace rexmt (bytes) | ours: retransmit + copies (bytes) | tcptrace "
        "out of order | ours reordered | zero windows |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for path in captures:
        theirs, ours = tcptrace(path), wirelab(program, path)
        for key in sorted(theirs):
            t, o = theirs[key], ours.get(key, Counter())
            resent = o["retransmit"] + o["network_duplicate"] + o["capture_duplicate"]
            if not (t["rexmt"] or resent or t["out_of_order"] or o["reordered"] or t["zero_window"]):
                continue
            copies = o["network_duplicate"] + o["capture_duplicate"]
            print(
                f"| {path.name} | {key[0]} > {key[1]} | {t['data']} / {o['data']} | "
                f"{t['rexmt']} ({t['rexmt_bytes']}) | "
                f"{o['retransmit']} + {copies} ({o['rexmt_bytes']}) | {t['out_of_order']} | {o['reordered']} | "
                f"{t['zero_window']} / {o['zero_window']} |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
