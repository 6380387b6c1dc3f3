"""Reads a capture with one Python library: `python_peers.py dpkt|scapy|nfstream FILE`. Prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time


def read_with_dpkt(path: str) -> dict[str, int | float]:
    import dpkt

    setup_cpu_s = time.process_time()
    frames = tcp = 0
    with open(path, "rb") as file:
        for _, data in dpkt.pcap.Reader(file):
            frames += 1
            ip = dpkt.ethernet.Ethernet(data).data
            tcp += isinstance(ip, dpkt.ip.IP) and isinstance(ip.data, dpkt.tcp.TCP)
    return {"frames": frames, "tcp": tcp, "setup_cpu_s": setup_cpu_s}


def read_with_scapy(path: str) -> dict[str, int | float]:
    from scapy.layers.inet import TCP
    from scapy.utils import PcapReader

    setup_cpu_s = time.process_time()
    frames = tcp = 0
    with PcapReader(path) as packets:
        for packet in packets:
            frames += 1
            tcp += TCP in packet
    return {"frames": frames, "tcp": tcp, "setup_cpu_s": setup_cpu_s}


def read_with_nfstream(path: str) -> dict[str, int | float]:
    from nfstream import NFStreamer

    setup_cpu_s = time.process_time()
    frames = tcp_flows = 0
    # No dissection of the payload; timeouts longer than any capture here, so that a flow is one row.
    streamer = NFStreamer(
        source=path, n_dissections=0, statistical_analysis=True, idle_timeout=86_400, active_timeout=86_400, n_meters=1
    )
    for flow in streamer:
        frames += flow.bidirectional_packets
        tcp_flows += flow.protocol == 6
    return {"frames": frames, "tcp_flows": tcp_flows, "setup_cpu_s": setup_cpu_s}


if __name__ == "__main__":
    readers = {"dpkt": read_with_dpkt, "scapy": read_with_scapy, "nfstream": read_with_nfstream}
    print(json.dumps(readers[sys.argv[1]](sys.argv[2])))
