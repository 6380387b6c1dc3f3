#!/usr/bin/env python3
"""Compares table `dns` with what tshark prints of DNS over UDP port 53, message by message.

    python3 tests/differential/dns.py CORPUS --dump target/debug/examples/dump_tables --work DIR [--least 99.99]

A message is one set of header fields and its first question, under its frame. Frames with an ICMP error are left out:
tshark also reads the message that the error quotes. So are messages inside of what wirelab does not decode (PPP, GTP,
netlink, WireGuard with keys in the file), and first fragments of messages whose rest is not there. Meant, and counted
apart: a second response and a second copy of a packet have no row of their own; a response from another port than 53,
and a message cut within its header, have none at all;
names with bytes that are no printable ASCII (wirelab shows them as `\\ddd`); questions whose name cannot be read
(wirelab has none, tshark a remark in its place); and the counts of dynamic updates, which tshark shows under other
names. Exit status 1 where fewer cells are equal than `--least` per cent, or a message has no row for another reason.
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

import corpus
import pyarrow.ipc

FIELDS = ["id", "opcode", "name", "type", "questions", "answers", "authorities", "additionals", "rcode", "flags"]
FIELDS += ["source", "length"]
COUNTS = {"questions", "answers", "authorities"}
TSHARK = [
    "dns.id",
    "dns.flags.opcode",
    "dns.qry.name",
    "dns.qry.type",
    "dns.count.queries",
    "dns.count.answers",
    "dns.count.auth_rr",
    "dns.count.add_rr",
    "dns.flags.rcode",
    "dns.flags",
    "udp.srcport",
    "udp.length",
]
#: What tshark shows where a name cannot be read; `<Root>` is a name.
REMARK = re.compile(r"<(?!Root>).+>")
PLACE = "udp.port==53 && dns && !icmp && !icmpv6 && !ppp && !gtp && !wg && !netlink && !(ip.flags.mf==1)"


def theirs(capture: Path) -> dict[int, dict]:
    command = ["tshark", "-n", "-r", str(capture), "-d", "udp.port==8472,vxlan", "-Y", PLACE, "-T", "fields"]
    command += ["-E", "separator=/t", "-E", "occurrence=f", "-e", "frame.number", "-e", "frame.protocols"]
    for field in TSHARK:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, check=False)
    found = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        frame, protocols, *values = line.split("\t")
        # Several messages, or one that tshark itself cannot read.
        if protocols.split(":").count("dns") != 1 or "malformed" in protocols:
            continue
        found[int(frame)] = dict(zip(FIELDS, values, strict=True))
    return found


def ours(directory: Path) -> tuple[dict[int, dict], set[str]]:
    """Messages by frame, and the identifiers of those that came more than once."""
    found, repeated = {}, set()
    path = directory / "dns.arrows"
    if not path.exists():
        return found, repeated
    with pyarrow.ipc.open_stream(path) as reader:
        for row in reader.read_all().to_pylist():
            common = {
                "id": f"0x{row['dns_id']:04x}",
                "opcode": str(row["opcode"]),
                "name": (row["query_name"] or "").removesuffix(".") or ("<Root>" if row["query_name"] else ""),
                "type": "" if row["query_type"] is None else str(row["query_type"]),
                "questions": str(row["question_count"]),
            }
            if row["duplicate_count"]:
                repeated.add(common["id"])
            if row["is_query_seen"]:
                found[row["frame_no"]] = common
            if row["response_frame_no"] is not None:
                found[row["response_frame_no"]] = common | {
                    "answers": str(row["answer_count"]),
                    "authorities": str(row["authority_count"]),
                    "additionals": str(row["additional_count"]),
                    "rcode": str(row["rcode"]),
                    "flags": (row["is_authoritative"], row["is_truncated"], row["is_recursion_available"]),
                }
    return found, repeated


def is_meant(message: dict, repeated: set[str], seen: set[str]) -> bool:
    """Whether the message has no row for a reason of the list above."""
    is_response = bool(message["flags"] and int(message["flags"], 16) & 0x8000)
    is_cut = not message["length"] or int(message["length"]) < 20 or not message["additionals"]
    return is_cut or message["id"] in repeated | seen or (is_response and message["source"] != "53")


def same(field: str, left, right: str) -> bool:
    if field == "flags":
        flags = int(right, 16)
        return left == (bool(flags & 0x400), bool(flags & 0x200), bool(flags & 0x80))
    return left == right


def main() -> int:
    options, places = corpus.dumped("dns", __doc__, 99.99)
    equal, different, messages, missing, meant = collections.Counter(), [], 0, [], 0
    for capture, place in places.items():
        mine, repeated = ours(place)
        seen = {message["id"] for message in mine.values()}
        for frame, message in theirs(capture).items():
            messages += 1
            row = mine.get(frame)
            if row is None and is_meant(message, repeated, seen):
                meant += 1
                continue
            if row is None:
                missing.append((capture, frame, message))
                continue
            for field, value in row.items():
                is_update = message["opcode"] == "5" and field in COUNTS
                is_unreadable = field in {"name", "type"} and not value and REMARK.fullmatch(message["name"])
                if is_update or is_unreadable or (field == "name" and "\\" in value):
                    meant += 1
                elif same(field, value, message[field]):
                    equal[field] += 1
                else:
                    different.append((capture, frame, field, value, message[field]))
    cells = sum(equal.values()) + len(different)
    for capture, frame, message in missing[:40]:
        print(f"no row: {capture} frame {frame}: {message}")
    for capture, frame, field, left, right in different[:60]:
        print(f"{capture} frame {frame} {field}: wirelab {left!r}, tshark {right!r}")
    share = 100 * sum(equal.values()) / max(cells, 1)
    print(f"{messages} messages, {len(missing)} without a row; {meant} differences that are meant")
    print(f"{cells} cells, {len(different)} differ: {share:.4f} % equal")
    return 0 if share >= options.least and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
