#!/usr/bin/env python3
"""Compares table `lldp` with what tshark prints of LLDP and DCBX, field by field.

    python3 tests/differential/lldp.py CORPUS --dump target/debug/examples/dump_tables --work DIR [--least 100]

tshark reads the captures in which wirelab found an LLDPDU, and those that the catalogue names LLDP for. Meant, and
counted apart: tshark stops at the first thing that is wrong with an LLDPDU, so of those with a `problem` only the
presence of a row is compared. Exit status 1 where fewer cells are equal than `--least` per cent, or an LLDPDU has no
row.
"""

import collections
import subprocess
import sys
from pathlib import Path

import corpus
import pyarrow.ipc

# Our column, tshark's field, and how what tshark prints is brought into our form.
FIRST = {
    "chassis_id": ["lldp.chassis.id.mac", "lldp.chassis.id.ip4", "lldp.chassis.id.ip6", "lldp.chassis.id"],
    "port_id": ["lldp.port.id.mac", "lldp.port.id.ip4", "lldp.port.id.ip6", "lldp.port.id"],
    "hold_ns": ["lldp.time_to_live"],
    "port_description": ["lldp.port.desc"],
    "system_name": ["lldp.tlv.system.name"],
    "system_description": ["lldp.tlv.system.desc"],
    "management_ip": ["lldp.mgn.addr.ip4", "lldp.mgn.addr.ip6"],
    "port_vlan": ["lldp.ieee.802_1.port_vlan.id"],
    "max_frame_bytes": ["lldp.ieee.802_3.max_frame_size"],
    "ets_max_classes": ["lldp.dcbx.ieee.ets.maxtcs"],
    "pfc_max_classes": ["lldp.dcbx.ieee.pfc.numtcs"],
    "is_macsec_bypass": ["lldp.dcbx.ieee.pfc.mbc"],
}
PFC = [f"lldp.dcbx.feature.pfc.prio{priority}" for priority in range(8)]
CLASSES = [f"lldp.dcbx.feature.pg.pgid_prio{priority}" for priority in range(8)]
BANDWIDTHS = [f"lldp.dcbx.feature.pg.per{number}" for number in range(8)]
ALGORITHMS = [f"lldp.dcbx.ieee.ets.tsa{number}" for number in range(8)]
APPS = ["lldp.dcbx.ieee.app.prio", "lldp.dcbx.iee.app.sf", "lldp.dcbx.feature.app.proto"]
OTHER = ["lldp.tlv.type", "lldp.dcbx.feature.pg.numtcs", "lldp.tlv.enable_system_cap"]
FIELDS = [field for fields in FIRST.values() for field in fields] + OTHER + APPS
FIELDS += PFC + CLASSES + BANDWIDTHS + ALGORITHMS
ALGORITHM_NAMES = {"0": "strict", "1": "cbs", "2": "ets", "255": "vendor"}
SELECTORS = {"1": "ethertype", "2": "tcp", "3": "udp", "4": "port", "5": "dscp"}
CAPABILITIES = ["other", "repeater", "bridge", "wlan_access_point", "router", "telephone"]
CAPABILITIES += ["docsis_cable_device", "station_only"]
SEPARATOR = "\x1f"


def theirs(capture: Path) -> dict[int, dict[str, list[str]]]:
    command = ["tshark", "-n", "-r", str(capture), "-Y", "lldp", "-T", "fields", "-E", "separator=/t"]
    command += ["-E", "occurrence=a", "-E", f"aggregator={SEPARATOR}", "-e", "frame.number", "-e", "_ws.malformed"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, check=False)
    found = {}
    for line in done.stdout.decode("utf-8", "replace").split("\n"):
        if line:
            frame, malformed, *values = line.split("\t")
            found[int(frame)] = {"malformed": [malformed]} | {
                field: value.split(SEPARATOR) if value else [] for field, value in zip(FIELDS, values, strict=True)
            }
    return found


Printed = dict[str, list[str]]


def eight(printed: Printed, fields: list[str], which: int, names: dict[str, str] | None = None) -> str | None:
    """The numbers of a table of eight: the first of those printed, or the second (a recommendation)."""
    if any(len(printed[field]) <= which for field in fields):
        return None
    numbers = [str(int(printed[field][which], 0)) for field in fields]
    return ",".join((names or {}).get(number, number) for number in numbers)


def expected(printed: dict[str, list[str]]) -> dict[str, object]:
    """What our row should hold; columns that tshark does not tell are left out."""
    row: dict[str, object] = {}
    for column, fields in FIRST.items():
        values = next((printed[field] for field in fields if printed[field]), [])
        row[column] = values[0] if values else None
    for column in ("port_vlan", "max_frame_bytes", "pfc_max_classes", "ets_max_classes"):
        row[column] = None if row[column] is None else int(str(row[column]), 0)
    if row["ets_max_classes"] == 0:
        row["ets_max_classes"] = 8
    row["hold_ns"] = None if row["hold_ns"] is None else int(str(row["hold_ns"])) * 10**9
    row["is_macsec_bypass"] = None if row["is_macsec_bypass"] is None else row["is_macsec_bypass"] == "1"
    row["pfc_mask"] = sum(int(printed[field][0]) << at for at, field in enumerate(PFC)) if printed[PFC[0]] else None
    # A recommendation has the same fields as a configuration, which comes first.
    has_own = bool(printed["lldp.dcbx.ieee.ets.maxtcs"] or printed["lldp.dcbx.feature.pg.numtcs"])
    for column, fields, names in (
        ("classes", CLASSES, None),
        ("bandwidths", BANDWIDTHS, None),
        ("algorithms", ALGORITHMS, ALGORITHM_NAMES),
    ):
        row[f"ets_{column}"] = eight(printed, fields, 0, names) if has_own else None
        row[f"ets_recommended_{column}"] = eight(printed, fields, 1 if has_own else 0, names)
    if printed["lldp.dcbx.ieee.app.prio"]:
        entries = zip(*(printed[field] for field in APPS), strict=True)
        row["app_priorities"] = ",".join(app(*entry) for entry in entries)
    bits = printed["lldp.tlv.enable_system_cap"]
    if bits:
        mask = int(bits[0], 0)
        row["capabilities"] = ",".join(name for at, name in enumerate(CAPABILITIES) if mask >> at & 1)
    row["tlv_count"] = sum(1 for kind in printed["lldp.tlv.type"] if kind != "0")
    return row


def app(priority: str, selector: str, protocol: str) -> str:
    number = int(protocol, 0)
    shown = f"0x{number:04x}" if selector == "1" else str(number)
    return f"{SELECTORS.get(selector, 'selector' + selector)}:{shown}={priority}"


def ours(directory: Path) -> dict[int, dict[str, object]]:
    path = directory / "lldp.arrows"
    if not path.exists():
        return {}
    with pyarrow.ipc.open_stream(path) as reader:
        return {row["frame_no"]: row for row in reader.read_all().to_pylist()}


def same(column: str, left: object, right: object) -> bool:
    if left is None or right is None:
        # tshark shows no field for an empty text.
        return left == right or (column.endswith(("description", "name")) and not left and not right)
    left, right = str(left), str(right)
    if column.endswith("_id"):
        return left == right or left == right.replace(":", "")
    # tshark shows what cannot be printed in escapes.
    return left == right or left == right.encode().decode("unicode_escape", "replace")


def main() -> int:
    options, places = corpus.dumped("lldp", __doc__, 100)
    named = {
        folder / line.split("\t")[0]
        for folder in options.corpus
        if (folder / "catalog.tsv").exists()
        for line in (folder / "catalog.tsv").read_text(encoding="utf-8").splitlines()
        if "lldp" in line.lower()
    }
    equal, different, missing, units, meant, read = collections.Counter(), [], [], 0, 0, 0
    for capture, place in places.items():
        mine = ours(place)
        if not mine and capture not in named:
            continue
        read += 1
        printed = theirs(capture)
        missing += [(capture, frame) for frame in mine if frame not in printed]
        for frame, fields in printed.items():
            units += 1
            row = mine.get(frame)
            if row is None:
                missing.append((capture, frame))
            elif row["problem"]:
                meant += 1
            else:
                for column, value in expected(fields).items():
                    if same(column, row[column], value):
                        equal[column] += 1
                    else:
                        different.append((capture, frame, column, row[column], value))
    cells = sum(equal.values()) + len(different)
    for capture, frame in missing[:40]:
        print(f"not in both: {capture} frame {frame}")
    for capture, frame, column, left, right in different[:60]:
        print(f"{capture} frame {frame} {column}: wirelab {left!r}, tshark {right!r}")
    share = 100 * sum(equal.values()) / max(cells, 1)
    print(f"{read} captures, {units} LLDPDUs, {len(missing)} not in both; {meant} with a problem")
    print(f"{cells} cells, {len(different)} differ: {share:.4f} % equal")
    return 0 if share >= options.least and not missing and cells else 1


if __name__ == "__main__":
    sys.exit(main())
