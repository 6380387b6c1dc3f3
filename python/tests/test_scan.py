from __future__ import annotations

import io
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import PING, ROCE, TCP, VXLAN

import wirelab as wl


def rows(scan: wl.Scan) -> list[dict]:
    return pa.table(scan).to_pylist()


@pytest.mark.parametrize("table", list(wl.tables()))
@pytest.mark.parametrize("path", [TCP, ROCE, VXLAN])
def test_a_scan_gives_the_rows_of_the_table(path, table: str) -> None:
    whole = wl.open(path).table(table).to_arrow()
    batches = [pa.record_batch(batch) for batch in wl.scan(path, table)]
    assert pa.Table.from_batches(batches, whole.schema).equals(whole)
    assert pa.table(wl.scan(path, table)).equals(whole)


def test_columns_come_in_the_order_asked_for() -> None:
    scan = wl.scan(PING, columns=["dst_ip", "time"])
    assert scan.columns == ["dst_ip", "time"]
    batch = next(scan)
    assert batch.columns == ["dst_ip", "time"] == list(batch.schema) and batch.name == "packets"
    whole = wl.open(PING).packets.to_arrow()
    assert batch.to_arrow().equals(whole.select(["dst_ip", "time"]))


def test_time_is_exact_and_half_open() -> None:
    times = wl.open(PING).packets.to_arrow()["time"].cast(pa.int64()).to_pylist()
    first, last = times[3], times[8]
    kept = [time for time in times if first <= time < last]
    assert 0 < len(kept) < len(times)

    def seen(time_from: object, time_to: object) -> list[int]:
        scan = wl.scan(PING, columns=["time"], time_from=time_from, time_to=time_to)
        return pa.table(scan)["time"].cast(pa.int64()).to_pylist()

    def text(ns: int, zone_hours: int = 0) -> str:
        moment = datetime.fromtimestamp(ns // 10**9, timezone(timedelta(hours=zone_hours)))
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09}{moment:%z}"

    assert seen(first, last) == kept
    assert seen(text(first), text(last, 8)) == kept
    assert seen(first + 1, last + 1) == [time for time in times if first < time <= last]
    pandas = pytest.importorskip("pandas")
    assert seen(pandas.Timestamp(first), pandas.Timestamp(last, tz="UTC")) == kept
    numpy = pytest.importorskip("numpy")
    assert seen(numpy.datetime64(first, "ns"), numpy.int64(last)) == kept


@pytest.mark.parametrize(
    ("time", "ns"),
    [
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-02", 86_400 * 10**9),
        ("1970-01-01 01:00+01:00", 0),
        ("1970-01-01T00:00:01.5-00:30", 1_801_500_000_000),
        ("1969-12-31T23:59:59.999999999Z", -1),
        (datetime(1970, 1, 1, 0, 0, 1, 3), 1_000_003_000),
        (datetime(1970, 1, 1, 8, tzinfo=timezone(timedelta(hours=8))), 0),
        (-5, -5),
    ],
)
def test_times_are_read(time: object, ns: int) -> None:
    from wirelab._times import to_ns, to_text

    assert to_ns(time, "time_from") == ns
    assert to_ns(to_text(ns), "time_from") == ns


@pytest.mark.parametrize(
    "time",
    [1.5, True, "yesterday", "2026-13-01", "2026-01-01T25:00", "1970-01-01T00:00:00.0000000001", 2**63, "3000-01-01"],
)
def test_what_is_no_time_is_refused(time: object) -> None:
    with pytest.raises(wl.UsageError, match="time_from"):
        wl.scan(PING, time_from=time)


def test_hosts_and_ports_may_be_one_or_several() -> None:
    whole = wl.open(VXLAN).packets.to_arrow()
    ips = [ip for ip in pc.unique(whole["src_ip"].cast(pa.string())).to_pylist() if ip]
    assert len(ips) > 2

    def speaks_of(row: dict, hosts: list[str]) -> bool:
        return any(row[name] in hosts for name in ("src_ip", "dst_ip", "outer_src_ip", "outer_dst_ip"))

    for given, hosts in ((ips[0], ips[:1]), (ips[:2], ips[:2]), (ip_address(ips[1]), ips[1:2])):
        expected = [row["frame_no"] for row in whole.to_pylist() if speaks_of(row, hosts)]
        assert [row["frame_no"] for row in rows(wl.scan(VXLAN, host=given))] == expected
    ports = [port for port in pc.unique(whole["dst_port"]).to_pylist() if port]
    for given, among in ((ports[0], ports[:1]), (ports[:2], ports[:2])):
        expected = [r["frame_no"] for r in whole.to_pylist() if r["src_port"] in among or r["dst_port"] in among]
        assert [row["frame_no"] for row in rows(wl.scan(VXLAN, port=given))] == expected


@pytest.mark.parametrize(
    "wrong", [{"host": "example.org"}, {"host": [3.5]}, {"port": 70_000}, {"port": "x"}, {"port": -1}]
)
def test_a_wrong_filter_is_the_callers_fault(wrong: dict) -> None:
    with pytest.raises(wl.UsageError, match=next(iter(wrong))):
        wl.scan(PING, **wrong)


def test_a_scan_is_read_once() -> None:
    scan = wl.scan(PING)
    assert pa.table(scan).num_rows > 0
    assert list(scan) == []
    with pytest.raises(wl.UsageError, match="once"):
        pa.table(scan)


def test_a_scan_that_was_begun_goes_on_as_a_stream() -> None:
    scan = wl.scan(TCP, "tcp", columns=["frame_no"])
    first = next(scan)
    rest = pa.table(scan)
    assert first.num_rows + rest.num_rows == wl.open(TCP).tcp.num_rows


@pytest.mark.parametrize("format", ["csv", "json", "jsonl", "parquet", "arrow", "arrow_stream"])
def test_a_scan_is_written_in_every_format(format: str) -> None:
    whole = wl.open(TCP).tcp.to_arrow()
    out = io.BytesIO()
    assert wl.scan(TCP, "tcp").write(out, format) == whole.num_rows
    data = out.getvalue()
    out.seek(0)
    if format == "csv":
        assert len(data.decode().splitlines()) == whole.num_rows + 1
    elif format == "json":
        import json

        assert [row["seq_raw"] for row in json.loads(data)] == whole["seq_raw"].to_pylist()
    elif format == "jsonl":
        assert data.count(b"\n") == whole.num_rows
    else:
        import pyarrow.feather
        import pyarrow.parquet

        read = {
            "parquet": pyarrow.parquet.read_table,
            "arrow": pyarrow.feather.read_table,
            "arrow_stream": lambda file: pa.ipc.open_stream(file).read_all(),
        }[format](out)
        assert read.column_names == whole.column_names
        for name in ("time", "seq_raw", "src_ip", "sack"):
            assert read[name].to_pylist() == whole[name].to_pylist(), name


def test_a_limit_cuts_what_is_written() -> None:
    out = io.BytesIO()
    assert wl.scan(PING, columns=["frame_no"]).write(out, "csv", limit=3) == 3
    assert out.getvalue() == b"frame_no\n1\n2\n3\n"


def test_an_exception_of_the_file_written_to_comes_out() -> None:
    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        wl.scan(PING).write(Full(), "csv")
    with pytest.raises(wl.UsageError, match="did you mean csv"):
        wl.scan(PING).write(io.BytesIO(), "cvs")


def test_a_port_of_the_outermost_tunnel_is_a_port_of_the_packet() -> None:
    tunnelled = rows(wl.scan(VXLAN, columns=["frame_no", "outer_dst_port"]))
    expected = [row["frame_no"] for row in tunnelled if row["outer_dst_port"] == 8472]
    assert expected and [row["frame_no"] for row in rows(wl.scan(VXLAN, port=8472))] == expected
