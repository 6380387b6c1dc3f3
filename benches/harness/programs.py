"""Who is measured: how each program is called for a capture, and what its output says about it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .inputs import Capture

# A fact's name and its value, e.g. {"frames": 2000000}. Facts of one name must be equal whoever says them.
Facts = dict[str, int]

# What wirelab computes in its first row.
TCP = "packets,tcp,tcp_flows"
ALL_TCP = "packets,tcp,tcp_flows,tcp_events"
ALL_ROCE = "packets,roce,roce_qps,roce_messages,roce_intervals,roce_events"
CHECKSUMS = "packets and checksums"
DECODING = "decoding alone"
COUNTING = "SELECT count(*) FROM packets"
CONVERTING = "convert"

KEY_FIELDS = ("tcp.stream", "infiniband.bth.opcode", "tcp.analysis.retransmission")
# The columns of wirelab's `packets` table.
PACKET_FIELDS = [
    "frame.number",
    "frame.time_epoch",
    "frame.cap_len",
    "frame.len",
    "eth.src",
    "eth.dst",
    "vlan.id",
    "vlan.priority",
    "vxlan.vni",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "ip.dsfield.dscp",
    "ip.dsfield.ecn",
    "ip.ttl",
    "ip.id",
    "ip.len",
    "ip.proto",
    "ip.flags.mf",
    "ip.frag_offset",
    "udp.length",
]
# The columns of wirelab's `tcp` table.
TCP_FIELDS = [
    "tcp.seq",
    "tcp.ack",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.len",
    "tcp.window_size_value",
    "tcp.window_size",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "tcp.options.sack.dsack",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.initial_rtt",
    "tcp.analysis.bytes_in_flight",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
    "tcp.analysis.duplicate_ack_num",
    "tcp.analysis.zero_window",
    "tcp.analysis.zero_window_probe",
    "tcp.analysis.zero_window_probe_ack",
    "tcp.analysis.window_full",
    "tcp.analysis.window_update",
    "tcp.analysis.keep_alive",
    "tcp.analysis.keep_alive_ack",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
    "tcp.analysis.reused_ports",
]
# The header columns of wirelab's `roce` table.
ROCE_FIELDS = [
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
    "infiniband.bth.a",
    "infiniband.bth.padcnt",
    "infiniband.bth.p_key",
    "infiniband.reth.va",
    "infiniband.reth.r_key",
    "infiniband.reth.dmalen",
    "infiniband.aeth.syndrome",
    "infiniband.aeth.msn",
    "infiniband.invariant.crc",
]


@dataclass(frozen=True)
class Program:
    """A measured call. `facts` reads its standard output; `needs` names what it must say to have done its work."""

    name: str
    command: list[str]
    facts: Callable[[Path], Facts]
    needs: tuple[str, ...]
    environment: Mapping[str, str] | None = None
    # Frames read, where that is not the whole capture.
    frames: int | None = None
    # Slow by nature: not worth repeating.
    runs_once: bool = False
    # The program reports what starting its interpreter cost; that is taken off.
    reports_setup: bool = False
    # A folder that the program makes: removed before it runs and after.
    makes: Path | None = None

    @property
    def is_wirelab(self) -> bool:
        return self.name.startswith("wirelab ")


@dataclass(frozen=True)
class Tools:
    """Paths of what is there; None for a peer that is not installed."""

    wirelab_scan: Path
    peers: Path
    tshark: str | None
    tcptrace: str | None
    python: str
    python_peers: frozenset[str]
    folder: Path

    @classmethod
    def find(cls, wirelab_scan: Path, peers: Path, python: str, folder: Path) -> Tools:
        installed = frozenset(name for name in ("nfstream", "dpkt", "scapy") if _can_import(python, name))
        return cls(wirelab_scan, peers, shutil.which("tshark"), shutil.which("tcptrace"), python, installed, folder)

    def missing(self) -> list[str]:
        """Peers that are not installed."""
        by_path = {"tshark": self.tshark, "tcptrace": self.tcptrace}
        absent = [name for name, path in by_path.items() if path is None]
        return absent + sorted({"nfstream", "dpkt", "scapy"} - self.python_peers)

    def versions(self) -> list[str]:
        """One line for each peer that can tell its version."""
        lines = ["pcap-parser 0.17, etherparse 0.21"]
        for path, option in ((self.tshark, "--version"), (self.tcptrace, "-v")):
            if path is None:
                continue
            done = subprocess.run([path, option], capture_output=True, text=True, check=False)
            told = (line for line in (done.stdout + done.stderr).splitlines() if "TShark" in line or "ersion" in line)
            lines.append(next(told, Path(path).name).removeprefix("Version: ").strip())
        for name in sorted(self.python_peers):
            code = f"from importlib.metadata import version; print(version({name!r}))"
            done = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=False)
            lines.append(f"{name} {done.stdout.strip()}")
        return lines


def for_capture(tools: Tools, capture: Capture, sliced: Capture | None, threads: int, full: bool) -> list[Program]:
    """The programs that can read a capture; the first is wirelab's full work, which the others are compared with."""
    if capture.compression is not None:
        programs = [wirelab(tools, capture, TCP, 1)]
        if threads > 1:
            programs.append(wirelab(tools, capture, TCP, threads))
        if shutil.which(capture.compression):
            programs.append(decompressor(capture.compression, capture))
        if full and tools.tshark:
            programs.append(tshark(tools, capture))
        return programs
    if capture.kind == "roce":
        programs = [wirelab(tools, capture, "packets,roce", 1), wirelab(tools, capture, ALL_ROCE, 1, "all RoCE tables")]
    else:
        programs = [wirelab(tools, capture, TCP, 1)]
        if threads > 1:
            programs.append(wirelab(tools, capture, TCP, threads))
    if capture.kind == "bulk":
        programs.append(wirelab(tools, capture, ALL_TCP, 1, "all TCP tables"))
    programs.append(wirelab(tools, capture, "packets", 1))
    if capture.kind in ("bulk", "small"):
        programs += [verifying(tools, capture), decoding(tools, capture), counting(tools, capture)]
    programs += [bare(tools, capture), touch(tools, capture)]
    if tools.tcptrace and capture.kind not in ("roce", "vxlan"):
        programs.append(tcptrace(tools, capture))
    if tools.tshark:
        programs.append(tshark(tools, capture))
    if capture.kind in ("bulk", "small"):
        if "nfstream" in tools.python_peers:
            programs.append(python_peer(tools, "nfstream", capture, None))
        programs += [
            python_peer(tools, name, sliced, sliced.frames)
            for name in ("dpkt", "scapy")
            if name in tools.python_peers and sliced is not None
        ]
    return programs


def wirelab(tools: Tools, capture: Capture, tables: str, threads: int, label: str | None = None) -> Program:
    command = [str(tools.wirelab_scan), str(capture.path), "--tables", tables, "--threads", str(threads)]
    # The table of a row count is the fact's name, but for `packets`, whose rows are frames.
    needs = tuple("frames" if table == "packets" else table for table in tables.split(","))
    name = wirelab_name(label or tables.replace(",", "+"), threads)
    return Program(name, command, read_wirelab, needs)


def wirelab_name(label: str, threads: int) -> str:
    return f"wirelab {label}, {threads} {'thread' if threads == 1 else 'threads'}"


def verifying(tools: Tools, capture: Capture) -> Program:
    """Table `packets` with every checksum verified; the other rows leave them alone."""
    command = [str(tools.wirelab_scan), str(capture.path), "--tables", "packets", "--threads", "1"]
    return Program(wirelab_name(CHECKSUMS, 1), [*command, "--checksums", "on"], read_wirelab, ("frames",))


def decoding(tools: Tools, capture: Capture) -> Program:
    """Every frame is decoded, and nothing is kept."""
    command = [str(tools.wirelab_scan), str(capture.path), "--threads", "1"]
    return Program(wirelab_name(DECODING, 1), command, read_wirelab, ("frames",))


def counting(tools: Tools, capture: Capture) -> Program:
    command = [str(tools.wirelab_scan), str(capture.path), "--threads", "1", "--sql", "SELECT count(*) FROM packets"]
    return Program(wirelab_name(COUNTING, 1), command, read_wirelab, ("frames",))


def converting(tools: Tools, capture: Capture, threads: int) -> Program:
    """All tables, written to a dataset of Parquet files."""
    folder = tools.folder / f"dataset-{os.getpid()}"
    command = [str(tools.wirelab_scan), str(capture.path), "--convert", str(folder), "--threads", str(threads)]
    needs = ("frames", "tcp", "tcp_flows")
    return Program(wirelab_name(CONVERTING, threads), command, read_wirelab, needs, makes=folder)


def bare(tools: Tools, capture: Capture) -> Program:
    needs = ("frames", "tcp", "roce")
    return Program("bare loop", [str(tools.peers), "bare", str(capture.path)], read_bare, needs)


def touch(tools: Tools, capture: Capture) -> Program:
    return Program("touch the bytes", [str(tools.peers), "touch", str(capture.path)], lambda _: {}, ())


def tshark(tools: Tools, capture: Capture) -> Program:
    protocol_fields = ROCE_FIELDS if capture.kind == "roce" else TCP_FIELDS
    command = [str(tools.tshark), "-n", "-r", str(capture.path), "-T", "fields"]
    for name in (*KEY_FIELDS, *PACKET_FIELDS, *protocol_fields):
        command += ["-e", name]
    # A user's own preferences would change what is analysed.
    settings = tools.folder / "wireshark-defaults"
    settings.mkdir(exist_ok=True)
    environment = {**os.environ, "WIRESHARK_CONFIG_DIR": str(settings)}
    needs = ("frames", "tcp", "tcp_flows", "roce")
    return Program("tshark -T fields", command, read_tshark, needs, environment, runs_once=True)


def tcptrace(tools: Tools, capture: Capture) -> Program:
    command = [str(tools.tcptrace), "-n", "-r", "-l", str(capture.path)]
    return Program("tcptrace -n -r -l", command, read_tcptrace, ("frames", "tcp", "tcp_flows", "repeated_segments"))


def python_peer(tools: Tools, name: str, capture: Capture, frames: int | None) -> Program:
    script = Path(__file__).with_name("python_peers.py")
    title = name if frames is None else f"{name} (first {frames:,} frames)"
    needs = ("frames", "tcp") if name != "nfstream" else ("frames", "tcp_flows")
    command = [tools.python, str(script), name, str(capture.path)]
    return Program(title, command, read_python_peer, needs, frames=frames, runs_once=True, reports_setup=True)


def decompressor(name: str, capture: Capture) -> Program:
    return Program(f"{name} -dc", [name, "-dc", str(capture.path)], lambda _: {}, ())


def read_wirelab(stdout: Path) -> Facts:
    said = json.loads(stdout.read_text())
    if "answer" in said:
        return {"frames": int(said["answer"])}
    if "frames" in said:
        return {"frames": int(said["frames"])}
    facts = {("frames" if table == "packets" else table): int(rows) for table, rows in said["rows"].items()}
    for optional in ("ws_retransmissions", "repeated_segments"):
        if optional in said:
            facts[optional] = int(said[optional])
    return facts


def read_bare(stdout: Path) -> Facts:
    said = json.loads(stdout.read_text())
    return {"frames": said["frames"], "tcp": said["tcp"], "roce": said["roce"], "undecoded": said["undecoded"]}


def read_tshark(stdout: Path) -> Facts:
    frames = tcp = roce = retransmissions = 0
    streams: set[bytes] = set()
    with stdout.open("rb") as lines:
        for line in lines:
            stream, opcode, retransmission, _ = line.split(b"\t", 3)
            frames += 1
            if stream:
                tcp += 1
                streams.add(stream)
            roce += opcode != b""
            retransmissions += retransmission != b""
    return {
        "frames": frames,
        "tcp": tcp,
        "tcp_flows": len(streams),
        "roce": roce,
        "ws_retransmissions": retransmissions,
    }


def read_tcptrace(stdout: Path) -> Facts:
    facts = {"tcp_flows": 0, "repeated_segments": 0}
    with stdout.open(encoding="latin-1") as lines:
        for line in lines:
            if line.lstrip().startswith("rexmt data pkts:"):
                facts["repeated_segments"] += sum(map(int, re.findall(r"pkts:\s+(\d+)", line)))
            elif line.startswith("TCP connection ") and line.rstrip().endswith(":") and "info" not in line:
                facts["tcp_flows"] += 1
            elif seen := re.match(r"(\d+) packets seen, (\d+) TCP packets traced", line):
                facts["frames"], facts["tcp"] = int(seen[1]), int(seen[2])
    return facts


def read_python_peer(stdout: Path) -> Facts:
    said = json.loads(stdout.read_text().splitlines()[-1])
    return {name: value for name, value in said.items() if name != "setup_cpu_s"}


def setup_cpu_s(stdout: Path) -> float:
    """What a Python peer spent before it opened the capture."""
    return float(json.loads(stdout.read_text().splitlines()[-1])["setup_cpu_s"])


def _can_import(python: str, name: str) -> bool:
    return subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0
