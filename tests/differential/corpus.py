"""The captures that are compared."""

import csv
from pathlib import Path

# Link types that wirelab decodes: Ethernet, BSD loopback, raw IP, Linux cooked.
LINK_TYPES = {"0", "1", "12", "14", "101", "108", "113", "228", "229", "276"}


def captures(root: Path) -> list[Path]:
    """All of a corpus folder with a `catalog.tsv`, or every capture below a plain folder, or one file."""
    if root.is_file():
        return [root]
    catalog = root / "catalog.tsv"
    if not catalog.exists():
        return sorted(path for path in root.rglob("*") if path.suffix in {".pcap", ".pcapng", ".cap"})
    with catalog.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    decoded = [row for row in rows if row["linktypes"] and set(row["linktypes"].split(",")) <= LINK_TYPES]
    return [root / row["path"] for row in decoded if row["format"] in {"pcap", "pcapng"}]
