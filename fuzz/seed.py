"""Makes seeds for the fuzz targets from sample-captures/ (and tests/data/crashes/, where it exists).

read_capture: the files themselves, the larger ones cut, and once in every compression.
decode_frame, all_tables: their first frames. tcp_stream: descriptions of random segments.
"""

import gzip
import lzma
import random
import struct
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MOST_BYTES = 60_000
MOST_FRAMES = 40
LINKS = [1, 0, 12, 14, 101, 108, 113, 228, 229, 276]


def frames(data: bytes):
    """Link type and bytes of the frames of a little-endian pcap."""
    magic, link = struct.unpack_from("<I16xI", data)
    if magic not in (0xA1B2C3D4, 0xA1B23C4D):
        return
    at = 24
    while at + 16 <= len(data):
        captured = struct.unpack_from("<8xI", data, at)[0]
        if at + 16 + captured > len(data):
            return
        yield link, data[at + 16 : at + 16 + captured]
        at += 16 + captured


def save(target: str, name: str, data: bytes):
    folder = HERE / "seeds" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def main():
    dice = random.Random(1)
    captures = sorted(path for path in (ROOT / "sample-captures").rglob("*.pcap*") if path.is_file())
    for path in captures:
        data = path.read_bytes()
        name = path.name
        save("read_capture", name, data[:MOST_BYTES])
        picked = []
        for number, (link, frame) in enumerate(frames(data)):
            if number >= MOST_FRAMES:
                break
            if link in LINKS:
                save("decode_frame", f"{name}.{number}", bytes([LINKS.index(link), 0]) + frame)
            if link == 1 and len(frame) < 256:
                picked.append(bytes([len(frame), 0, dice.randrange(30)]) + frame)
        if picked:
            save("all_tables", name, b"".join(picked))
    small = captures[0].read_bytes()[:4_000]
    save("read_capture", "small.gz", gzip.compress(small))
    save("read_capture", "small.xz", lzma.compress(small))
    save("read_capture", "small.pcapng", pcapng())
    for number in range(20):
        save("tcp_stream", str(number), dice.randbytes(12 * dice.randrange(1, 60)))
    for crash in sorted((ROOT / "tests" / "data" / "crashes").glob("*/*")):
        save(crash.parent.name, f"crash-{crash.name}", crash.read_bytes())


def pcapng() -> bytes:
    """One of each block that is read."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        length = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + length + body + length

    comment = struct.pack("<HH", 1, 4) + b"note" + struct.pack("<HHQ", 4, 8, 3) + b"\0" * 4
    return b"".join([
        block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HHB3x", 9, 1, 9) + struct.pack("<HHq", 14, 8, -5)),
        block(6, struct.pack("<IIIII", 0, 1, 2, 5, 60) + b"abcde\0\0\0" + comment),
        block(2, struct.pack("<HHIIII", 0, 1, 1, 2, 3, 3) + b"abc"),
        block(3, struct.pack("<I", 4) + b"abcd"),
        block(4, b"\0" * 4),
        block(5, struct.pack("<III", 0, 1, 2) + struct.pack("<HHQ", 5, 8, 7)),
        block(0xBAD, struct.pack("<I", 1) + b"custom"),
        block(9, b"MESSAGE=hello\n"),
    ])


if __name__ == "__main__":
    main()
