"""Runs tshark over captures and keeps what it printed: one line of fields per frame."""

import concurrent.futures
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

# Repeated layers repeat a field; the protocol stack of the frame tells which value belongs to which layer.
FIELDS = [
    "frame.number",
    "frame.len",
    "frame.cap_len",
    "frame.protocols",
    "eth.src",
    "eth.dst",
    "eth.type",
    "sll.src.eth",
    "vlan.id",
    "vlan.priority",
    "ieee8021ad.id",
    "ieee8021ad.priority",
    "ieee8021ad.svid",
    "ieee8021ad.cvid",
    "mpls.label",
    "gre.proto",
    "gre.key",
    "gre.flags_and_version",
    "erspan.spanid",
    "vxlan.vni",
    "geneve.vni",
    "ip.src",
    "ip.dst",
    "ip.len",
    "ip.ttl",
    "ip.dsfield",
    "ip.id",
    "ip.flags.mf",
    "ip.flags.df",
    "ip.frag_offset",
    "ip.proto",
    "ip.reassembled_in",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.plen",
    "ipv6.hlim",
    "ipv6.tclass",
    "ipv6.nxt",
    "ipv6.fraghdr.nxt",
    "ipv6.fraghdr.offset",
    "ipv6.fraghdr.more",
    "ipv6.fraghdr.ident",
    "ipv6.hopopts.nxt",
    "ipv6.routing.nxt",
    "ipv6.dstopts.nxt",
    "ah.next_header",
    "ipv6.reassembled.in",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.hdr_len",
    "tcp.len",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "udp.srcport",
    "udp.dstport",
    "udp.length",
    "sctp.srcport",
    "sctp.dstport",
    "icmp.type",
    "icmp.code",
    "icmp.mtu",
    "icmp.ident",
    "icmp.seq",
    "icmpv6.type",
    "icmpv6.code",
    "icmpv6.mtu",
    "icmpv6.echo.identifier",
    "icmpv6.echo.sequence_number",
    "arp.opcode",
    "arp.src.hw_mac",
    "arp.src.proto_ipv4",
    "arp.dst.hw_mac",
    "arp.dst.proto_ipv4",
    "infiniband.bth.opcode",
    "infiniband.bth.se",
    "infiniband.bth.padcnt",
    "infiniband.bth.p_key",
    "infiniband.bth.destqp",
    "infiniband.bth.a",
    "infiniband.bth.psn",
    "infiniband.reth.va",
    "infiniband.reth.r_key",
    "infiniband.reth.dmalen",
    "infiniband.aeth.syndrome",
    "infiniband.aeth.msn",
    "infiniband.deth.q_key",
    "infiniband.deth.srcqp",
    "infiniband.grh.sgid",
    "infiniband.grh.dgid",
    "infiniband.atomiceth.swapdt",
    "infiniband.atomiceth.cmpdt",
    "infiniband.atomicacketh.origremdt",
    "macc.opcode",
    "macc.pause_time",
    "macc.cbfc.enbv",
    "macc.cbfc.pause_time.c0",
    "macc.cbfc.pause_time.c1",
    "macc.cbfc.pause_time.c2",
    "macc.cbfc.pause_time.c3",
    "macc.cbfc.pause_time.c4",
    "macc.cbfc.pause_time.c5",
    "macc.cbfc.pause_time.c6",
    "macc.cbfc.pause_time.c7",
    "_ws.malformed",
]


def cache_path(capture: Path, cache: Path) -> Path:
    key = hashlib.sha256(("\n".join(FIELDS) + "\n").encode() + capture.read_bytes()).hexdigest()
    return cache / f"{key}.tsv"


def run(capture: Path, cache: Path) -> Path:
    """The file with tshark's lines about a capture, made now if it is not there."""
    out = cache_path(capture, cache)
    if out.exists():
        return out
    with tempfile.TemporaryDirectory() as home:
        # An empty configuration directory: nobody's preferences change the answers.
        environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "LC_ALL": "C.UTF-8"}
        command = ["tshark", "-n", "-r", str(capture), "-d", "udp.port==8472,vxlan", "-T", "fields"]
        command += ["-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
        command += [part for field in FIELDS for part in ("-e", field)]
        part = out.with_suffix(".part")
        with part.open("wb") as file:
            # A damaged file ends tshark with status 2; the frames before the damage are there.
            subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, env=environment, timeout=600, check=False)
        part.rename(out)
    return out


def run_all(captures: list[Path], cache: Path, jobs: int) -> dict[Path, Path]:
    cache.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(zip(captures, pool.map(lambda capture: run(capture, cache), captures), strict=True))


def frames(path: Path):
    """Yields one dictionary per frame: field to the list of its values, in the order of the layers."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            yield {field: cell.split(",") for field, cell in zip(FIELDS, cells, strict=False) if cell}
