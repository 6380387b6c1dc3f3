from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import PING

import wirelab as wl
from wirelab import _core


def both(path: object, error: type[BaseException]) -> list[BaseException]:
    """The exceptions of opening and scanning."""
    seen = []
    for read in (wl.open, wl.scan):
        with pytest.raises(error) as caught:
            read(path)
        seen.append(caught.value)
    return seen


def test_a_missing_file_is_the_error_of_python(tmp_path: Path) -> None:
    for error in both(tmp_path / "missing.pcap", FileNotFoundError):
        assert error.filename == str(tmp_path / "missing.pcap")
        assert "no such file" in error.messages["en"] and error.messages["zh"]


def test_a_directory_is_the_error_of_python(tmp_path: Path) -> None:
    both(tmp_path, IsADirectoryError)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_forbidden_file_is_the_error_of_python(tmp_path: Path) -> None:
    path = tmp_path / "mine.pcap"
    path.write_bytes(PING.read_bytes())
    path.chmod(0)
    both(path, PermissionError)


@pytest.mark.parametrize(
    ("data", "looks_like"),
    [
        (b"", "empty"),
        (b"hello, this is my homework", "text"),
        (b"PK\x03\x04abc", "zip"),
        (PING.read_bytes()[:20], "cut_header"),
    ],
)
def test_what_is_no_capture_is_named(data: bytes, looks_like: str, tmp_path: Path) -> None:
    path = tmp_path / "homework.pcap"
    path.write_bytes(data)
    for error in both(path, wl.NotACaptureError):
        assert isinstance(error, ValueError) and isinstance(error, wl.WirelabError)
        assert error.looks_like == looks_like and error.path == str(path)
        assert "homework.pcap" in str(error) and error.messages["zh"] != error.messages["en"]


def test_an_unknown_table_or_column_is_suggested() -> None:
    with pytest.raises(wl.UsageError, match="did you mean packets"):
        wl.scan(PING, "packet")
    with pytest.raises(wl.UsageError, match="did you mean tcp_flows"):
        wl.open(PING).table("tcp_flow")
    with pytest.raises(wl.UsageError, match="did you mean src_ip"):
        wl.scan(PING, columns=["srcip"])
    with pytest.raises(wl.UsageError, match="twice"):
        wl.scan(PING, columns=["time", "time"])
    with pytest.raises(wl.UsageError, match="list of names"):
        wl.scan(PING, columns="time")


def test_usage_errors_are_value_errors() -> None:
    assert issubclass(wl.UsageError, ValueError) and issubclass(wl.UsageError, wl.WirelabError)
    assert issubclass(wl.LimitError, wl.WirelabError)


@pytest.mark.skipif(not hasattr(_core, "panicking_stream"), reason="only a debug build can panic on purpose")
def test_a_panic_does_not_cross_into_the_reader_of_a_stream() -> None:
    pyarrow = pytest.importorskip("pyarrow")

    class Panics:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return _core.panicking_stream()

    with pytest.raises(pyarrow.ArrowInvalid, match="please report"):
        pyarrow.table(Panics())
