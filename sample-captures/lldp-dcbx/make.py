"""Writes lldp-dcbx.pcap: the two ends of one link by LLDP, and RoCE between them. Nothing but the standard library."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

START_NS = 1_796_030_000_000_000_000
LEAF_MAC, HOST_MAC = bytes.fromhex("020000006c05"), bytes.fromhex("020000006805")
NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
HOST, PEER = bytes([10, 20, 0, 11]), bytes([10, 20, 0, 12])
RC_SEND_ONLY, RC_ACKNOWLEDGE = 0x04, 0x11
SIXTY_FOUR_ONES = b"\xff" * 8


def tlv(kind: int, value: bytes) -> bytes:
    return struct.pack("!H", kind << 9 | len(value)) + value


def dcbx(subtype: int, content: bytes) -> bytes:
    """A TLV of IEEE 802.1 (IEEE 802.1Qaz, annex D)."""
    return tlv(127, bytes.fromhex("0080c2") + bytes([subtype]) + content)


def ets(lossless: int) -> bytes:
    """The lossless priority in class 1 with half of the link, priority 6 strictly before all, the rest in class 0."""
    classes = [1 if priority == lossless else 2 if priority == 6 else 0 for priority in range(8)]
    assigned = bytes(classes[at] << 4 | classes[at + 1] for at in range(0, 8, 2))
    bandwidths, algorithms = bytes([50, 50, 0, 0, 0, 0, 0, 0]), bytes([2, 2, 0, 0, 0, 0, 0, 0])
    return dcbx(9, bytes([3]) + assigned + bandwidths + algorithms)


def pfc(lossless: int) -> bytes:
    return dcbx(11, bytes([8, 1 << lossless]))


def app(entries: list[tuple[int, int, int]]) -> bytes:
    """Application priorities: priority, selector (3: UDP port, 5: DSCP), what it selects."""
    table = b"".join(struct.pack("!BH", priority << 5 | selector, what) for priority, selector, what in entries)
    return dcbx(12, b"\0" + table)


def lldp(mac: bytes, port: str, system: str, tlvs: list[bytes]) -> bytes:
    head = [tlv(1, b"\x04" + mac), tlv(2, b"\x05" + port.encode()), tlv(3, struct.pack("!H", 120))]
    return NEAREST_BRIDGE + mac + b"\x88\xcc" + b"".join([*head, tlv(5, system.encode()), *tlvs, tlv(0, b"")])


def roce(src: bytes, dst: bytes, opcode: int, dest_qp: int, psn: int, rest: bytes) -> bytes:
    """In VLAN 10 with priority 3 and DSCP 26 with ECT(0); the invariant CRC covers neither tag nor DSCP."""
    bth = struct.pack("!BBHII", opcode, 0x40, 0xFFFF, dest_qp, 0x80000000 | psn)
    udp = struct.pack("!HHHH", 0xC12B, 4791, 8 + len(bth) + len(rest) + 4, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0x6A, 20 + 8 + len(bth) + len(rest) + 4, psn, 0x4000, 64, 17, 0, src, dst)
    masked_ip = ip[:1] + b"\xff" + ip[2:8] + b"\xff" + ip[9:10] + b"\xff\xff" + ip[12:]
    covered = SIXTY_FOUR_ONES + masked_ip + udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:] + rest
    words = sum(struct.unpack("!10H", ip))
    checksum = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
    ip = ip[:10] + struct.pack("!H", checksum) + ip[12:]
    macs = LEAF_MAC + HOST_MAC if src == HOST else HOST_MAC + LEAF_MAC
    tag = bytes.fromhex("8100") + struct.pack("!H", 3 << 13 | 10) + bytes.fromhex("0800")
    return macs + tag + ip + udp + bth + rest + struct.pack("<I", zlib.crc32(covered))


def frames() -> list[tuple[int, bytes]]:
    leaf = lldp(LEAF_MAC, "swp5", "leaf1", [ets(3), pfc(3), app([(3, 3, 4791), (3, 5, 26), (6, 5, 48)])])
    host = lldp(HOST_MAC, "enp1s0f0", "host1", [ets(4), pfc(4), app([(3, 3, 4791), (3, 5, 26), (6, 5, 48)])])
    told: list[tuple[int, bytes]] = []
    for at_s in (0, 30):
        told += [(at_s * 10**9, leaf), (at_s * 10**9 + 400_000_000, host)]
    for number in range(8):
        at_ns = 10**9 + number * 50_000
        told.append((at_ns, roce(HOST, PEER, RC_SEND_ONLY, 0x2B, 700 + number, bytes(range(64)))))
        aeth = struct.pack("!I", 0x1F << 24 | number + 1)
        told.append((at_ns + 9_000, roce(PEER, HOST, RC_ACKNOWLEDGE, 0x2C, 700 + number, aeth)))
    return sorted(told)


def main() -> None:
    file = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
    for after_ns, frame in frames():
        seconds, ns = divmod(START_NS + after_ns, 10**9)
        frame = frame.ljust(60, b"\0")
        file += struct.pack("<IIII", seconds, ns, len(frame), len(frame)) + frame
    Path(__file__).with_name("lldp-dcbx.pcap").write_bytes(file)


if __name__ == "__main__":
    main()
