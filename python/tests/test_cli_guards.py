"""Mistakes that must not cost a capture, and gaps that must be said."""

from __future__ import annotations

import contextlib
import gzip
import inspect
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PING, TCP, Run, frame_count

import wirelab as wl
from wirelab import _arguments
from wirelab.cli import _main, _reading, main


@pytest.mark.parametrize("how", ["itself", "link", "hard link"])
def test_a_capture_is_not_overwritten_by_its_own_table(wirelab: Run, tmp_path: Path, how: str) -> None:
    capture, out = tmp_path / "a.pcap", tmp_path / "out"
    shutil.copy(PING, capture)
    if how == "itself":
        out = capture
    elif how == "link":
        out.symlink_to(capture)
    else:
        os.link(capture, out)
    for call in (["table", "packets", capture], ["match", capture, capture]):
        done = wirelab(*call, "-o", out, "--format", "csv")
        assert done.returncode == 2 and b"overwritten" in done.stderr
    assert capture.read_bytes() == PING.read_bytes()


def test_a_table_of_a_damaged_file_says_so_on_standard_error(wirelab: Run, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(PING.read_bytes()[:-10])
    done = wirelab("table", "packets", cut, "--format", "csv")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == frame_count(PING)
    assert b"ends in the middle" in done.stderr and b"23" in done.stderr
    assert wirelab("table", "packets", PING, "--format", "csv").stderr == b""


def test_a_cut_compressed_file_tells_how_many_frames_were_read(wirelab: Run, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress(TCP.read_bytes())[:50_000])
    rows = len(wirelab("table", "packets", cut, "--format", "csv").stdout.splitlines()) - 1
    assert rows > 700
    assert f"The {rows} frames before".encode() in b" ".join(wirelab("info", cut).stdout.split())


@pytest.mark.parametrize(
    ("table", "option", "what"),
    [
        ("capture_quality", ["--host", "10.0.0.1"], b"address"),
        ("interfaces", ["--time-from", "2030-01-01"], b"time"),
        ("arp", ["--port", "80"], b"port"),
        ("pause", ["--host", "10.0.0.1"], b"address"),
    ],
)
def test_a_filter_that_no_row_can_pass_is_refused(wirelab: Run, table: str, option: list[str], what: bytes) -> None:
    done = wirelab("table", table, PING, *option)
    assert done.returncode == 2 and what in done.stderr and done.stdout == b""


def test_standard_input_can_be_named_once_only(wirelab: Run) -> None:
    for call in (["match", "-", "-"], ["info", "-", "-"]):
        done = wirelab(*call)
        assert done.returncode == 2 and b"only once" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="the shell's way to close a stream")
def test_a_closed_standard_output_is_one_plain_message() -> None:
    for call in ("info", "table packets"):
        line = f'"{sys.executable}" -m wirelab {call} "{PING}" >&-'
        done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2 and b"fault" not in done.stderr and b"closed" in done.stderr


def test_a_table_goes_to_a_text_stream_too() -> None:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert main(["table", "probes", str(PING), "--columns", "frame_no,rtt_ns"]) == 0
    assert "rtt_ns" in text.getvalue() and len(text.getvalue().splitlines()) == 13


class _Stop(Exception):
    pass


@pytest.mark.parametrize("command", ["info X", "table packets X", "sql X Q", "match X Y", "convert X -o D"])
@pytest.mark.parametrize("read", [wl.open, wl.scan, wl.convert])
def test_every_option_of_the_command_line_reaches_each_way_of_reading(
    monkeypatch: pytest.MonkeyPatch, command: str, read: Callable[..., object]
) -> None:
    options = _reading.options(_main._parser().parse_args(command.split()))
    known = set(inspect.signature(_arguments.options).parameters)
    assert {"threads", "checksums"} <= set(options) <= known
    taken: dict[str, object] = {}

    def seen(*given: object, **named: object) -> object:
        taken.update(signature.bind(*given, **named).arguments)
        raise _Stop

    signature = inspect.signature(_arguments.options)
    monkeypatch.setattr(_arguments, "options", seen)
    # Each arrives as itself, and not as its neighbour.
    values = {name: object() for name in options}
    more = {wl.open: [], wl.scan: ["packets"], wl.convert: ["nowhere"]}[read]
    with pytest.raises(_Stop):
        read(PING, *more, **values)
    assert {name: taken[name] for name in values} == values


def test_what_may_be_said_to_open_may_be_said_to_scan_and_convert() -> None:
    known = set(inspect.signature(_arguments.options).parameters)
    assert known <= set(inspect.signature(wl.open).parameters)
    # Neither keeps tables, so neither has a budget for them.
    for read in (wl.scan, wl.convert):
        assert known - set(inspect.signature(read).parameters) == {"memory_budget"}
