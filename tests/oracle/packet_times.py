#!/usr/bin/env python3
"""Writes tests/data/packet_times.tsv: what tshark says of the frames and times of every capture of the corpus.

    tests/oracle/packet_times.py CORPUS_DIR > tests/data/packet_times.tsv

One line per capture: its path in the corpus, the number of frames, and the FNV-1a 64 hash of its times, taken over one
line `frame.number TAB frame.time_epoch LF` per frame as tshark prints it. Taken are the captures whose link types
wirelab decodes and which tshark reads to the end (catalog.tsv: tshark_rc 0). tests/it/corpus_times.rs compares
wirelab with it. With --lines FILE it prints the hashed lines of one capture instead, to look into a difference.
"""

import csv
import os
import subprocess
import sys
import tempfile

# LINKTYPE_ numbers: Ethernet, Linux cooked v1 and v2, raw IP in its five spellings, BSD null and loop.
LINK_TYPES = {"1", "113", "276", "12", "14", "101", "228", "229", "0", "108"}


def tshark_lines(path, config_dir):
    command = [
        "tshark",
        "-n",
        "-r",
        path,
        "-T",
        "fields",
        "-E",
        "occurrence=f",
        "-e",
        "frame.number",
        "-e",
        "frame.time_epoch",
    ]
    environment = dict(os.environ, WIRESHARK_CONFIG_DIR=config_dir, TZ="UTC", LC_ALL="C.UTF-8")
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return done.returncode, done.stdout


def fnv1a_64(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def chosen(corpus):
    with open(os.path.join(corpus, "catalog.tsv"), encoding="utf-8", newline="") as catalog:
        for row in csv.DictReader(catalog, delimiter="\t", quoting=csv.QUOTE_NONE):
            link_types = set(row["linktypes"].split(",")) - {""}
            if row["tshark_rc"] == "0" and link_types and link_types <= LINK_TYPES:
                yield row["path"]


def main(arguments):
    with tempfile.TemporaryDirectory() as config_dir:
        if len(arguments) == 2 and arguments[0] == "--lines":
            sys.stdout.buffer.write(tshark_lines(arguments[1], config_dir)[1])
            return 0
        if len(arguments) != 1:
            print(__doc__, file=sys.stderr)
            return 2
        corpus = arguments[0]
        print("path\tframes\tfnv1a64")
        for path in chosen(corpus):
            status, lines = tshark_lines(os.path.join(corpus, path), config_dir)
            if status != 0:
                print(f"{path}: tshark ended with status {status}", file=sys.stderr)
                return 1
            print(f"{path}\t{lines.count(10)}\t{fnv1a_64(lines):016x}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
