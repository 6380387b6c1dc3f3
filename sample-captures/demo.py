"""What `make demo` shows: the sample captures, analysed. Every line is computed from the captures beside this file."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import wirelab as wl
from wirelab.cli import main as wirelab

HERE = Path(__file__).resolve().parent
LABS = HERE.parent / "graders"

# Sample, the table to look at, its columns, and what to see there.
LOOKS = [
    (
        "tcp-loss/tcp-loss.h1.pcap",
        "tcp_flows",
        [
            "client_ip",
            "server_port",
            "client_packets",
            "client_bytes",
            "handshake_rtt_ns",
            "client_mss",
            "client_retransmit_count",
            "client_retransmit_fast_count",
            "vantage",
        ],
        "1 % loss: what each connection sent, and sent again (the kernel counted 37 retransmissions)",
    ),
    (
        "tcp-mtu-9000/tcp-mtu-9000.pcap",
        "tcp_flows",
        ["client_ip", "server_ip", "server_port", "client_mss", "server_mss", "client_max_segment_bytes"],
        "MTU 9000: the MSS in the handshake says so",
    ),
    (
        "vxlan-kubernetes/vxlan-kubernetes.node.pcap",
        "tunnels",
        ["frame_no", "kind", "vni", "outer_src_ip", "outer_dst_ip", "inner_src_ip", "inner_dst_ip", "overhead_bytes"],
        "Kubernetes over VXLAN on port 8472: both address pairs of each packet",
    ),
    (
        "roce-loss/roce-loss.requester.pcap",
        "roce",
        ["frame_no", "opcode_name", "dest_qp", "psn", "aeth", "payload_bytes"],
        "Soft-RoCE with loss: the negative acknowledgements",
    ),
    (
        "roce-pfc/roce-pfc.pcap",
        "pause",
        ["frame_no", "kind", "class", "quanta", "pause_ns"],
        "PFC: who is told to stop, for how long at 25 Gbit/s",
    ),
    (
        "ping-delay/ping-delay.pcap",
        "probes",
        ["frame_no", "src_ip", "dst_ip", "sequence", "rtt_ns", "is_lost"],
        "ping: each request with its reply",
    ),
]


def show(sample: str, table: str, columns: list[str], what: str) -> None:
    path = HERE / sample
    print(f"\n=== {what}\n    wirelab table {table} sample-captures/{sample} --columns {','.join(columns)}\n")
    capture = wl.open(path, link_speed_bps=25_000_000_000)
    rows = rows_of(capture.table(table), columns)
    if table == "roce":
        rows = [row for row in rows if str(row["aeth"]).startswith("NAK")]
    widths = [max(len(name), *(len(str(row[name])) for row in rows[:6])) for name in columns]
    print("    " + "  ".join(name.ljust(width) for name, width in zip(columns, widths, strict=True)))
    for row in rows[:6]:
        print("    " + "  ".join(str(row[name]).ljust(width) for name, width in zip(columns, widths, strict=True)))
    if len(rows) > 6:
        print(f"    ... {len(rows):,} rows in all")


def show_lab(lab: Path) -> int:
    """A lab's cases, and the report of one that loses points, in both languages."""
    print(f"\n=== wirelab labs check graders/{lab.name}\n")
    status = wirelab(["labs", "check", str(lab)])
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        wirelab(["labs", "check", str(lab), "--json"])
    cases = json.loads(told.getvalue())[0]["cases"]
    lost = next((case["name"] for case in cases if case["failing"] or case["partial"]), None)
    for lang in ("en", "zh") if lost else ():
        print(f"\n=== wirelab labs check graders/{lab.name} --case {lost} --lang {lang}\n")
        status = wirelab(["labs", "check", str(lab), "--case", lost, "--lang", lang]) or status
    return status


def rows_of(table: wl.Table, columns: list[str]) -> list[dict[str, object]]:
    """Rows by the Arrow C stream interface; pyarrow is in the development environment that `make demo` sets up."""
    return list(table.to_arrow().select(columns).to_pylist())


def main() -> int:
    for sample, lang in [
        ("tcp-loss/tcp-loss.h1.pcap", "en"),
        ("roce-loss/roce-loss.requester.pcap", "zh"),
        ("lldp-dcbx/lldp-dcbx.pcap", "en"),
    ]:
        print(f"\n=== wirelab info sample-captures/{sample} --lang {lang}\n")
        status = wirelab(["info", str(HERE / sample), "--lang", lang])
        if status:
            return status
    for look in LOOKS:
        show(*look)
    for lab in sorted(path.parent for path in LABS.glob("*/rubric.toml")):
        status = show_lab(lab)
        if status:
            return status
    print("\nMore samples, each with a README: sample-captures/README.md. Tables: docs/tables.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
