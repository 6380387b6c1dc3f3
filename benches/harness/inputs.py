"""The captures: which ones a mode uses, made once and kept in a folder."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MODES = ("quick", "default", "full")
SEED = 1
SLICE_FRAMES = 20_000


@dataclass(frozen=True)
class Spec:
    """A capture to generate: the generator's kind and options."""

    name: str
    kind: str
    options: Mapping[str, int]


@dataclass(frozen=True)
class Capture:
    """A capture on disk. `truth` is the generator's own count of what it wrote."""

    name: str
    kind: str
    path: Path
    truth: Mapping[str, int] = field(default_factory=dict)
    compression: str | None = None

    @property
    def frames(self) -> int:
        return self.truth["frames"]

    @property
    def capture_bytes(self) -> int:
        """Size of the capture before compression."""
        return self.truth["bytes"]


def specs(mode: str, bulk_bytes: int | None) -> list[Spec]:
    """The captures of a mode; `bulk_bytes` replaces the size of the bulk capture."""
    at = MODES.index(mode)

    def pick(*by_mode: int) -> int:
        return by_mode[at]

    return [
        Spec("bulk", "bulk", {"bytes": bulk_bytes or pick(60_000_000, 626_000_000, 626_000_000), "flows": 8}),
        Spec("small", "small", {"packets": pick(200_000, 2_000_000, 2_000_000), "flows": pick(2_000, 20_000, 20_000)}),
        Spec("roce", "roce", {"packets": pick(20_000, 150_000, 300_000), "flows": 16}),
        Spec("short", "short", {"flows": pick(5_000, 50_000, 1_000_000)}),
        Spec("vxlan", "vxlan", {"bytes": pick(20_000_000, 60_000_000, 200_000_000), "flows": 8}),
    ]


def default_folder() -> Path:
    """$WIRELAB_BENCH_DIR, or a folder of this user's among the temporary files."""
    if chosen := os.environ.get("WIRELAB_BENCH_DIR"):
        return Path(chosen)
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"wirelab-bench-{user}"


class Store:
    """Makes captures in a folder and finds those made before."""

    def __init__(self, folder: Path, generator: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self._generator = generator
        self._say = say
        # Another generator may write other bytes: its captures are not taken for this one's.
        self._generator_digest = hashlib.sha256(generator.read_bytes()).hexdigest()[:10]
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, spec: Spec) -> bool:
        path = self._path(spec)
        return path.exists() and path.with_suffix(".json").exists()

    def capture(self, spec: Spec) -> Capture:
        path = self._path(spec)
        account = path.with_suffix(".json")
        if not self.has(spec):
            self._say(f"making {path.name}")
            for outdated in self.folder.glob(f"{_name(spec)}-*"):
                outdated.unlink()
            partial = path.with_suffix(".partial")
            command = [str(self._generator), "generate", spec.kind, "--out", str(partial), "--seed", str(SEED)]
            for name, value in spec.options.items():
                command += [f"--{name}", str(value)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            partial.replace(path)
            _write_text(account, done.stdout)
        return Capture(spec.name, spec.kind, path, json.loads(account.read_text()))

    def _path(self, spec: Spec) -> Path:
        return self.folder / f"{_name(spec)}-{self._generator_digest}.pcap"

    def compressed(self, capture: Capture, compression: str) -> Capture | None:
        """The capture as .gz or .zst; None where nothing here can write it."""
        suffix = {"gzip": ".gz", "zstd": ".zst"}[compression]
        path = capture.path.with_name(capture.path.name + suffix)
        if not path.exists():
            self._say(f"making {path.name}")
            partial = path.with_name(path.name + ".partial")
            if not _compress(capture.path, partial, compression):
                return None
            partial.replace(path)
        return Capture(f"{capture.name}{suffix}", capture.kind, path, capture.truth, compression)

    def room_bytes(self) -> int:
        """What is free where captures are kept."""
        return shutil.disk_usage(self.folder).free

    def remove(self, capture: Capture) -> None:
        capture.path.unlink(missing_ok=True)
        capture.path.with_suffix(".json").unlink(missing_ok=True)

    def slice(self, capture: Capture) -> Capture:
        """The first frames of a capture, for programs too slow for all of it."""
        path = capture.path.with_name(f"{capture.path.stem}-first{SLICE_FRAMES}.pcap")
        if not path.exists():
            partial = path.with_suffix(".partial")
            _copy_first_frames(capture.path, partial, SLICE_FRAMES)
            partial.replace(path)
        frames = min(SLICE_FRAMES, capture.frames)
        return Capture(capture.name, capture.kind, path, {"frames": frames, "bytes": path.stat().st_size})


def _name(spec: Spec) -> str:
    words = "-".join(f"{name}{value}" for name, value in spec.options.items())
    return f"{spec.kind}-{words}-seed{SEED}"


def _write_text(path: Path, text: str) -> None:
    partial = path.with_suffix(".json.partial")
    partial.write_text(text)
    partial.replace(path)


def _compress(source: Path, target: Path, compression: str) -> bool:
    command = {"gzip": ["gzip", "-n", "-6", "-c"], "zstd": ["zstd", "-q", "-3", "-c"]}[compression]
    if shutil.which(command[0]):
        with target.open("wb") as out:
            subprocess.run([*command, str(source)], stdout=out, check=True)
        return True
    if compression == "gzip":
        with (
            source.open("rb") as plain,
            target.open("wb") as out,
            gzip.GzipFile("", "wb", 6, out, mtime=0) as packed,
        ):
            shutil.copyfileobj(plain, packed, 1 << 20)
        return True
    return False


def _copy_first_frames(source: Path, target: Path, count: int) -> None:
    with source.open("rb") as whole, target.open("wb") as out:
        out.write(whole.read(24))
        for _ in range(count):
            header = whole.read(16)
            if not header:
                break
            out.write(header + whole.read(struct.unpack_from("<I", header, 8)[0]))
