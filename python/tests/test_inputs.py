from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import PING, TCP, frame_count

import wirelab as wl

DATA = PING.read_bytes()
FRAMES = frame_count(PING)


class Slow:
    """Gives a few bytes at a time, whatever is asked for."""

    def __init__(self, data: bytes, kind: type = bytes) -> None:
        self.rest, self.kind = data, kind

    def read(self, size: int) -> object:
        given, self.rest = self.rest[: min(size, 7)], self.rest[min(size, 7) :]
        return self.kind(given)


class Greedy:
    """Gives all at once, however little is asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, size: int) -> bytes:
        given, self.data = self.data, b""
        return given


@pytest.mark.parametrize(
    "make",
    [
        lambda: PING,
        lambda: str(PING),
        lambda: DATA,
        lambda: bytearray(DATA),
        lambda: memoryview(DATA),
        lambda: io.BytesIO(DATA),
        lambda: open(PING, "rb"),  # noqa: SIM115
        lambda: Slow(DATA),
        lambda: Slow(DATA, bytearray),
        lambda: Slow(DATA, memoryview),
        lambda: Greedy(DATA),
        lambda: gzip.compress(DATA),
        lambda: io.BytesIO(gzip.compress(DATA)),
        lambda: [PING],
    ],
)
def test_a_capture_comes_in_many_shapes(make) -> None:
    assert wl.open(make()).packets.num_rows == FRAMES
    assert sum(batch.num_rows for batch in wl.scan(make())) == FRAMES


@pytest.mark.parametrize("data", [DATA, gzip.compress(DATA)], ids=["plain", "gzip"])
@pytest.mark.parametrize("after", [0, 10, 3_000])
def test_an_exception_of_a_file_object_comes_out_as_it_is(data: bytes, after: int) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= min(after, len(data) - 1):
                raise RuntimeError("the cable was pulled")
            return super().read(min(size or 1, 500))

    with pytest.raises(RuntimeError, match="the cable was pulled"):
        wl.open(Broken(data)).load()
    with pytest.raises(RuntimeError, match="the cable was pulled"):
        list(wl.scan(Broken(data)))


def test_a_file_opened_as_text_is_named_as_such() -> None:
    for given in (io.StringIO("text"), Slow("text", str)):  # type: ignore[arg-type]
        with pytest.raises((wl.UsageError, TypeError), match="binary mode|bytes"):
            wl.open(given)


def test_what_is_no_input_is_refused() -> None:
    for given in (3, None, object(), 1.5):
        with pytest.raises(wl.UsageError, match=type(given).__name__):
            wl.open(given)
    for nothing in ((), ([],)):
        with pytest.raises(wl.UsageError, match="no capture"):
            wl.open(*nothing)


def test_standard_input_is_read() -> None:
    code = "import wirelab as wl; print(wl.open('-').packets.num_rows)"
    done = subprocess.run([sys.executable, "-c", code], input=DATA, capture_output=True, timeout=60, check=True)
    assert int(done.stdout) == FRAMES
    code = "import wirelab as wl; print(sum(b.num_rows for b in wl.scan('-')))"
    done = subprocess.run([sys.executable, "-c", code], input=DATA, capture_output=True, timeout=60, check=True)
    assert int(done.stdout) == FRAMES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (lambda: wl.open(pipe).packets.num_rows, lambda: sum(b.num_rows for b in wl.scan(pipe))):
        writer = threading.Thread(target=pipe.write_bytes, args=(DATA,))
        writer.start()
        assert read() == FRAMES
        writer.join()


def test_paths_may_hold_any_name(tmp_path: Path) -> None:
    for name in ("抓包.pcap", "with space.pcap", "-dash.pcap"):
        path = tmp_path / name
        path.write_bytes(TCP.read_bytes())
        assert wl.open(path).summary.frames == frame_count(TCP)
