from __future__ import annotations

import csv
import io
import json
from collections import Counter

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from conftest import PING, Run, frame_count, sample

import wirelab as wl

H1, H2 = sample("tcp-loss/tcp-loss.h1.pcap"), sample("tcp-loss/tcp-loss.h2.pcap")
REQUESTER, RESPONDER = sample("roce-loss/roce-loss.requester.pcap"), sample("roce-loss/roce-loss.responder.pcap")


@pytest.mark.parametrize(("a", "b"), [(H1, H2), (REQUESTER, RESPONDER)])
def test_what_is_missing_at_the_other_point_is_lost(a: object, b: object) -> None:
    matches = wl.match(a, b)
    there, back = matches.summary["a_to_b"], matches.summary["b_to_a"]
    # Nothing was duplicated and both captures are whole, so the difference of frames is what was lost.
    assert there["lost_count"] - back["lost_count"] == frame_count(a) - frame_count(b)
    assert there["sent_count"] == there["delivered_count"] + there["lost_count"]
    assert len(matches) == there["sent_count"] + back["sent_count"]
    statuses = Counter(pa.table(matches)["status"].to_pylist())
    assert statuses["lost"] == there["lost_count"] + back["lost_count"] > 0
    swapped = wl.match(b, a).summary
    assert (swapped["b_to_a"], swapped["a_to_b"]) == (there, back)


def test_delays_never_stand_without_a_word_on_clocks() -> None:
    matches = wl.match(H1, H2)
    assert "not one-way latencies" in matches.notes()[0]
    assert "不是单向时延" in matches.notes("zh_CN")[0]
    assert "not one-way latencies" in repr(matches)
    summary = matches.summary
    assert summary["clock_offset_low_ns"] <= summary["clock_offset_ns"] <= summary["clock_offset_high_ns"]
    assert wl.match(H1, H2, same_clock=True).notes() != matches.notes()


def test_only_what_was_not_delivered_on_request() -> None:
    matches = wl.match(H1, H2, unmatched_only=True)
    assert set(pa.table(matches)["status"].to_pylist()) == {"lost"}
    assert set(matches.docs) == set(matches.columns)


def test_a_limit_of_packets_is_said() -> None:
    matches = wl.match(H1, H2, max_packets=100)
    assert matches.summary["a"]["packets"] == 100
    assert any("limit" in note for note in matches.notes())
    with pytest.raises(wl.UsageError):
        wl.match(H1, H2, max_packets=0)


def test_the_command_line_compares(wirelab: Run) -> None:
    lost = wl.match(H1, H2).summary["a_to_b"]["lost_count"]
    done = wirelab("match", H1, H2)
    assert done.returncode == 0 and done.stderr == b""
    assert b"A to B" in done.stdout and b"one-way" in done.stdout
    done = wirelab("match", H1, H2, "--lang", "zh")
    assert "单向时延" in done.stdout.decode()
    done = wirelab("match", H1, H2, "--format", "csv", "--unmatched-only")
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert [row["status"] for row in rows] == ["lost"] * lost
    assert all(row["b_frame_no"] == "" and row["a_frame_no"] for row in rows)
    assert b"one-way" in done.stderr
    done = wirelab("match", H1, H2, "--format", "json", "--limit", "3")
    assert [row["a_frame_no"] for row in json.loads(done.stdout)] == [1, 2, 3]
    done = wirelab("match", H1, H2, "--summary")
    assert json.loads(done.stdout)["a_to_b"]["lost_count"] == lost
    done = wirelab("match", PING, H2)
    assert done.returncode == 0 and b"No packet was seen at both points" in done.stdout


def test_parquet_and_arrow_files_hold_the_same_rows(wirelab: Run, tmp_path: object) -> None:
    whole = wl.match(H1, H2)
    for kind, read in (("parquet", parquet.read_table), ("arrow", feather.read_table)):
        path = f"{tmp_path}/out.{kind}"
        assert wirelab("match", H1, H2, "--format", kind, "-o", path).returncode == 0
        assert read(path).num_rows == len(whole)


def test_the_table_is_described(wirelab: Run) -> None:
    assert b"delay_above_min_ns" in wirelab("tables", "matches").stdout
    assert "match" in wl.__all__
