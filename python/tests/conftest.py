"""What the tests share: samples, captures made on the spot, and the command line in a process of its own."""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# What is interrupted ends in tenths of a second; a machine that is busy with other things is given time.
SOON_S = 3.0

SAMPLES = Path(__file__).parents[2] / "sample-captures"


def sample(name: str) -> Path:
    path = SAMPLES / name
    assert path.is_file(), f"{path} is missing"
    return path


TCP = sample("tcp-loss/tcp-loss.h1.pcap")
PING = sample("ping-delay/ping-delay.pcap")
ROCE = sample("roce-verbs/roce-verbs.pcap")
PFC = sample("roce-pfc/roce-pfc.pcap")
VXLAN = sample("vxlan-kubernetes/vxlan-kubernetes.node.pcap")

LABS = Path(__file__).parents[2] / "tests" / "data" / "labs"
LAB = LABS / "every-outcome"


def all_shown(terminal: int) -> bytes:
    """What came to our end of a pseudo terminal until the other end was closed; closes ours."""
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:
        pass  # How Linux says that the other end is closed.
    os.close(terminal)
    return shown


def frame_count(path: Path) -> int:
    """Frames of a little-endian pcap file, counted without wirelab."""
    data, at, count = path.read_bytes(), 24, 0
    while at < len(data):
        (kept,) = struct.unpack_from("<I", data, at + 8)
        at += 16 + kept
        count += 1
    return count


def repeated(path: Path, target: Path, least_bytes: int) -> Path:
    """A large capture: the records of a small one, again and again."""
    data = path.read_bytes()
    header, records = data[:24], data[24:]
    with target.open("wb") as file:
        file.write(header)
        written = 0
        while written < least_bytes:
            written += file.write(records)
    return target


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough small frames for a scan of several seconds on one thread."""
    return repeated(PING, tmp_path_factory.mktemp("large") / "large.pcap", 400_000_000)


@pytest.fixture(scope="session")
def large_gz(large: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, compressed with gzip."""
    path = tmp_path_factory.mktemp("large_gz") / "large.pcap.gz"
    with large.open("rb") as plain, gzip.open(path, "wb", compresslevel=1) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)
    return path


Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def wirelab() -> Run:
    """Runs the command line."""

    def run(
        *arguments: object, env: dict[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "wirelab", *map(str, arguments)]
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "120", **(env or {})}
        return subprocess.run(command, capture_output=True, env=environment, timeout=120, **options)  # type: ignore[call-overload]

    return run


def submission(folder: Path, **files: Path) -> Path:
    """A folder with these captures."""
    folder.mkdir(parents=True)
    for name, path in files.items():
        shutil.copy(path, folder / f"{name}.pcap")
    return folder


@pytest.fixture
def full(tmp_path: Path) -> Path:
    folder = submission(tmp_path / "full", ping=PING, tcp=TCP)
    (folder / "answers.txt").write_text("rtt 21 ms\n", encoding="utf-8")
    return folder
