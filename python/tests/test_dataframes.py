"""Into the dataframe libraries, without copies where they allow it."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from conftest import PING, ROCE, TCP, VXLAN, repeated

import wirelab as wl


@pytest.fixture(scope="module")
def many_batches(tmp_path_factory: pytest.TempPathFactory) -> wl.Capture:
    """Dictionaries of its batches differ: first one capture over and over, then another."""
    folder = tmp_path_factory.mktemp("many")
    first = repeated(VXLAN, folder / "first.pcap", 12_000_000)
    later = folder / "later.pcap"
    data = bytearray(repeated(TCP, folder / "more.pcap", 30_000_000).read_bytes())
    later.write_bytes(first.read_bytes() + bytes(data[24:]))
    return wl.open(later)


def test_the_dictionaries_of_batches_do_differ(many_batches: wl.Capture) -> None:
    chunks = many_batches.packets.to_arrow()["src_ip"].chunks
    assert len(chunks) > 1
    assert len({tuple(chunk.dictionary.to_pylist()) for chunk in chunks}) > 1


@pytest.fixture(scope="module")
def expected(many_batches: wl.Capture) -> dict[str, int]:
    """Frames by source address, counted value by value."""
    counts: dict[str, int] = {}
    for ip in many_batches.packets.to_arrow()["src_ip"].to_pylist():
        if ip is not None:
            counts[ip] = counts.get(ip, 0) + 1
    return counts


def test_pyarrow_takes_a_table_without_copying(many_batches: wl.Capture) -> None:
    packets = many_batches.packets
    one, two = pa.table(packets), pa.table(packets)
    assert one.equals(two) and one.num_rows == packets.num_rows and one.column_names == packets.columns
    for name in ("frame_no", "time", "src_ip"):
        for a, b in zip(one[name].chunks, two[name].chunks, strict=True):
            # Two streams of one table lead to the same memory: nothing was copied on the way.
            assert [x and x.address for x in a.buffers()] == [x and x.address for x in b.buffers()]
    assert one.schema.field("time").type == pa.timestamp("ns", "UTC")
    assert pa.schema(packets).equals(one.schema)


def test_polars_takes_a_table(many_batches: wl.Capture, expected: dict[str, int]) -> None:
    polars = pytest.importorskip("polars")
    for frame in (polars.DataFrame(many_batches.packets), many_batches.packets.to_polars()):
        assert frame.columns == many_batches.packets.columns
        assert frame.schema["time"] == polars.Datetime("ns", "UTC")
        counts = frame.drop_nulls("src_ip").group_by(polars.col("src_ip").cast(polars.String)).len()
        assert dict(counts.iter_rows()) == expected


def test_pandas_takes_a_table(many_batches: wl.Capture, expected: dict[str, int]) -> None:
    pytest.importorskip("pandas")
    frame = many_batches.packets.to_pandas()
    assert list(frame.columns) == many_batches.packets.columns and len(frame) == len(many_batches.packets)
    assert str(frame["time"].dtype) == "datetime64[ns, UTC]"
    assert str(frame["frame_no"].dtype) == "uint64"
    assert frame["src_ip"].value_counts().to_dict() == expected


def test_pandas_loses_no_digit_of_whole_numbers_beside_missing_ones() -> None:
    pytest.importorskip("pandas")
    frame, table = wl.open(ROCE).roce.to_pandas(), wl.open(ROCE).roce.to_arrow()
    assert 0 < table["va"].null_count < len(table["va"])
    assert str(frame["va"].dtype) == "UInt64"
    values = frame["va"].astype(object).where(frame["va"].notna(), None)
    assert [None if value is None else int(value) for value in values] == table["va"].to_pylist()


def test_duckdb_takes_a_table(many_batches: wl.Capture, expected: dict[str, int]) -> None:
    duckdb = pytest.importorskip("duckdb")
    packets = many_batches.packets
    for source in (packets, packets.to_arrow()):
        with duckdb.connect() as connection:
            relation = connection.from_arrow(source)
            counts = relation.filter("src_ip IS NOT NULL").aggregate("src_ip, count(*)", "src_ip").fetchall()
            assert dict(counts) == expected
    with duckdb.connect() as connection:
        times = connection.sql("SELECT min(epoch_ns(time)), max(epoch_ns(time)) FROM packets").fetchall()
    summary = many_batches.summary
    assert times == [(summary.first_time_ns, summary.last_time_ns)]


def test_a_scan_flows_into_the_libraries() -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    rows = wl.open(PING).packets.num_rows
    assert polars.DataFrame(wl.scan(PING)).height == rows
    with duckdb.connect() as connection:
        assert connection.from_arrow(wl.scan(PING)).count("*").fetchall() == [(rows,)]
    reader = pa.RecordBatchReader.from_stream(wl.scan(PING))
    assert sum(batch.num_rows for batch in reader) == rows
    for batch in wl.scan(PING):
        assert pa.record_batch(batch).num_rows == batch.num_rows == len(batch.to_pandas())
        assert polars.DataFrame(batch).height == batch.num_rows


def test_a_schema_may_be_asked_for() -> None:
    wanted = pa.schema([("src_ip", pa.string())])
    (batch,) = wl.scan(PING, columns=["src_ip"])
    assert pa.record_batch(batch, schema=wanted).schema == wanted
    reader = pa.RecordBatchReader.from_stream(wl.scan(PING, columns=["src_ip"]), schema=wanted)
    assert reader.read_all().schema == wanted


@pytest.mark.parametrize("method", ["to_arrow", "to_pandas", "to_polars"])
def test_without_the_library_the_message_says_what_to_install(method: str) -> None:
    code = f"""
import sys
for name in ("pyarrow", "pandas", "polars", "duckdb"): sys.modules[name] = None
import wirelab as wl
table = wl.open({str(PING)!r}).packets
assert "packets: " in repr(table) and table._repr_html_()
try: table.{method}()
except ImportError as error: print(error); assert isinstance(error, wl.WirelabError)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "pip install 'wirelab[" in done.stdout
