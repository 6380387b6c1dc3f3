"""Wrong calls are told in wirelab's words, never by what Python trips over further in."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PING, frame_count

import wirelab as wl

CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: wl.sql("SELECT 1", PING), 'a mapping of names to captures, such as {"a": capture}, not PosixPath'),
    (lambda: wl.sql("SELECT 1", str(PING)), "not str"),
    (lambda: wl.sql("SELECT 1", [PING]), "not list"),
    (lambda: wl.sql("SELECT 1", wl.open(PING)), "not Capture; one opened capture has a method sql of its own"),
    (lambda: wl.sql("SELECT 1", {1: PING}), "the name of a capture is a text, not 1"),
    (lambda: wl.open(PING).sql("SELECT 1", limits=5), "limits must be a mapping"),
    (lambda: wl.open(PING).sql("SELECT 1", limits=[]), "limits must be a mapping"),
    (lambda: wl.open(PING).sql("SELECT 1", limits={"seconds": "5"}), "the limit of seconds must be a number, not '5'"),
    (lambda: wl.open(PING).sql("SELECT 1", limits={"seconds": [5]}), "the limit of seconds must be a number"),
    (lambda: wl.scan(PING, table=None), "table must be the name of one, not None"),
    (lambda: wl.scan(PING, table=5), "table must be the name of one, not 5"),
    (lambda: wl.scan(PING, columns=5), "columns must be a list of names, not 5"),
    (lambda: wl.open(PING).table(None), "a table is named by a text, not None"),
    (lambda: wl.open(PING).load(["tcp"]), "each as an argument of its own"),
    (lambda: wl.scan(PING, host=5), "host must be an IP address or several: 5 is no address"),
    (lambda: wl.scan(PING, host=["10.0.0.1", 5]), "5 is no address"),
    (lambda: wl.scan(PING, host=b"10.0.0.1"), "b'10.0.0.1' is no address"),
    (lambda: wl.open(PING, roce_endpoints=[(1, 2, 3)]), "roce_endpoints: 1 is no address; one is a text"),
    (lambda: wl.match(PING, PING).notes("xx"), "lang must be one of en, zh, not 'xx'"),
    (lambda: wl.match(PING, PING).notes(None), "lang must be one of en, zh, not None"),
    (lambda: wl.scan(PING).warnings("xx"), "lang must be one of en, zh, not 'xx'"),
    (lambda: wl.open(PING).quality("xx"), "lang must be one of en, zh, not 'xx'"),
    (lambda: wl.scan(PING).write(io.BytesIO(), 5), "format must be a text, such as 'csv', not 5"),
    (lambda: wl.scan(PING).write(io.StringIO(), "csv"), "open the file with 'wb', or give sys.stdout.buffer"),
    (lambda: wl.scan(PING).write(sys.stdout, "csv"), "open the file with 'wb', or give sys.stdout.buffer"),
    (lambda: wl.scan(PING).write(None, "csv"), "out must be a path or a binary file-like object, not NoneType"),
    (lambda: wl.scan(PING).write("", "csv"), "the path to write to is empty"),
    (lambda: wl.open(PING).tcp.write(io.StringIO(), "csv"), "open the file with 'wb', or give sys.stdout.buffer"),
    (lambda: wl.open(PING).tcp.write(sys.stdout, "csv"), "open the file with 'wb', or give sys.stdout.buffer"),
    (lambda: wl.open(PING).tcp.write(None, "csv"), "out must be a path or a binary file-like object, not NoneType"),
    (lambda: wl.grade("mtu-jumbo", PING, labs=5), "labs must be a folder with labs in it, or several, not 5"),
    (lambda: wl.Lab("mtu-jumbo", labs=[5]), "labs must be a folder with labs in it, or several, not [5]"),
]


@pytest.mark.parametrize(("call", "says"), CALLS, ids=[says[:40] for _, says in CALLS])
def test_a_wrong_call_says_what_is_right(call: Callable[[], object], says: str) -> None:
    says = says.replace("PosixPath", type(PING).__name__)
    with pytest.raises(wl.UsageError, match=re.escape(says)):
        call()


def test_languages_are_told_by_locales_too() -> None:
    matches = wl.match(PING, PING)
    assert matches.notes("zh_CN") == matches.notes("zh") != matches.notes("en") == matches.notes("en-US")
    assert wl.open(PING).quality("zh-CN") == wl.open(PING).quality("zh")


def test_rows_are_written_to_a_path(tmp_path: Path) -> None:
    for path in (tmp_path / "a.csv", str(tmp_path / "b.csv"), os.fsencode(tmp_path / "c.csv")):
        Path(os.fsdecode(path)).write_text("what was there before")
        assert wl.scan(PING).write(path, "csv", limit=3) == 3
        assert len(Path(os.fsdecode(path)).read_text().splitlines()) == 4
    assert len(list(tmp_path.iterdir())) == 3
    capture = wl.open(PING)
    for rows in (capture.packets, capture.sql("SELECT frame_no FROM packets"), wl.match(PING, PING)):
        assert rows.write(tmp_path / "d.csv", "csv", 2) == 2
        assert len((tmp_path / "d.csv").read_text().splitlines()) == 3


def test_a_file_stays_as_it_was_where_writing_fails(tmp_path: Path) -> None:
    capture, out = tmp_path / "a.pcap", tmp_path / "out.csv"
    shutil.copy(PING, capture)
    out.write_text("before")
    with pytest.raises(wl.UsageError):
        wl.scan(capture).write(out, "no-format")
    assert out.read_text() == "before"
    with pytest.raises(wl.UsageError, match="is one of the captures"):
        wl.scan(capture).write(capture, "csv")
    assert wl.open(capture).summary.frames == frame_count(PING)
    with pytest.raises(FileNotFoundError) as told:
        wl.scan(capture).write(tmp_path / "none" / "out.csv", "csv")
    assert told.value.filename == str(tmp_path / "none" / "out.csv")
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
            wl.scan(capture).write("/dev/full", "csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pcap", "out.csv"]
