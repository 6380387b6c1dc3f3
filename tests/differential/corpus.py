"""The captures that are compared."""

import argparse
import csv
import subprocess
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


def dumped(table: str, description: str, least: float) -> tuple[argparse.Namespace, dict[Path, Path]]:
    """Reads the command line and dumps one table of each capture; the folder that holds it by capture."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="+")
    parser.add_argument("--dump", type=Path, required=True, help="the built example dump_tables")
    parser.add_argument("--work", type=Path, required=True, help="a folder for what is dumped")
    parser.add_argument("--least", type=float, default=least, help="per cent of the cells that must be equal")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    named = [capture for folder in options.corpus for capture in captures(folder)]
    places = {capture: options.work / table / str(at) for at, capture in enumerate(named)}
    listing = options.work / f"{table}.tsv"
    listing.write_text("".join(f"{capture}\t{place}\n" for capture, place in places.items()), encoding="utf-8")
    subprocess.run([options.dump, listing, table], check=True)
    return options, places
