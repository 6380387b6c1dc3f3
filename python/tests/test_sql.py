"""SQL over captures, from Python and from the command line."""

from __future__ import annotations

import datetime
import io
import ipaddress
import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest import PING, ROCE, SAMPLES, TCP, Run, frame_count, sample

import wirelab as wl

STANDARD = sample("tcp-mtu-1500/tcp-mtu-1500.pcap")
JUMBO = sample("tcp-mtu-9000/tcp-mtu-9000.pcap")
DOCS = Path(__file__).parents[2] / "docs" / "sql.md"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module")
def cap() -> wl.Capture:
    return wl.open(TCP)


def first(table: wl.Table) -> Any:
    return next(iter(table.to_arrow().to_pylist()[0].values()))


def test_a_query_gives_a_table_like_any_other(cap: wl.Capture) -> None:
    found = cap.sql("SELECT src_ip, count(*) AS segments, min(frame_no) AS first FROM tcp GROUP BY src_ip ORDER BY 1")
    counts: dict[str, int] = {}
    for ip in cap.tcp.to_arrow()["src_ip"].to_pylist():
        counts[ip] = counts.get(ip, 0) + 1
    assert isinstance(found, wl.Table)
    assert found.columns == ["src_ip", "segments", "first"] and len(found) == found.num_rows == len(counts)
    assert found.schema == {"src_ip": "utf8", "segments": "int64", "first": "int64"}
    assert dict(zip(*(found.to_arrow()[name].to_pylist() for name in ("src_ip", "segments")), strict=True)) == counts
    assert "segments" in repr(found) and "segments" in found._repr_html_()
    assert found.docs == {"src_ip": "", "segments": "", "first": ""} and "GROUP BY" in found.description
    out = io.BytesIO()
    assert found.write(out, "csv") == len(counts)
    assert out.getvalue().decode().splitlines()[0] == "src_ip,segments,first"


def test_times_come_back_as_times_and_booleans_as_booleans(cap: wl.Capture) -> None:
    found = cap.sql("SELECT time, ws_retransmission, sack, flags FROM tcp").to_arrow()
    tcp = cap.tcp.to_arrow()
    for name in ("time", "ws_retransmission", "flags"):
        assert found[name].type == tcp[name].type and found[name].to_pylist() == tcp[name].to_pylist(), name
    assert [json.loads(text) for text in found["sack"].to_pylist()] == tcp["sack"].to_pylist()
    assert any(found["sack"].to_pylist()[at] != "[]" for at in range(len(found)))
    addresses = wl.open(ROCE).roce.to_arrow()["va"].to_pylist()
    shown = wl.open(ROCE).sql("SELECT va FROM roce").to_arrow()["va"].to_pylist()
    assert shown == [None if va is None else f"0x{va:016x}" for va in addresses]


def test_parameters_are_bound_by_name(cap: wl.Capture) -> None:
    start = cap.tcp.to_arrow()["time"].cast(pa.int64())[0].as_py()
    moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    given = {"text": "x' OR 1 = 1", "none": None, "whole": 7, "real": 0.5, "flag": True, "moment": moment}
    echo = cap.sql(
        "SELECT :text, :none, :whole, :real, :flag, :moment, :ip", given, ip=ipaddress.ip_address("10.0.0.1")
    )
    (row,) = echo._rows(0, 10)
    assert row == ("x' OR 1 = 1", None, 7, 0.5, 1, 1_577_836_800_000_000_000, "10.0.0.1")
    assert first(cap.sql("SELECT count(*) FROM tcp WHERE time = :t", params={"t": start})) >= 1
    with pytest.raises(wl.SqlError, match=r":port.*did you mean ports\?"):
        cap.sql("SELECT :port", ports=1)
    for wrong in ([1], {"a": 1}, object(), 2**63, b"x"):
        with pytest.raises(wl.UsageError, match="parameter x"):
            cap.sql("SELECT :x", x=wrong)
    numpy = pytest.importorskip("numpy")
    assert cap.sql("SELECT :a, :b", a=numpy.int32(5), b=numpy.float32(0.25))._rows(0, 1) == [(5, 0.25)]


def test_several_captures_are_queried_together(cap: wl.Capture) -> None:
    found = wl.sql(
        "SELECT s.client_mss AS s, j.client_mss AS j FROM standard.tcp_flows s, jumbo.tcp_flows j",
        {"standard": wl.open(STANDARD), "jumbo": JUMBO},
    )
    assert found._rows(0, 1) == [(1460, 8960)]
    bare = wl.sql("SELECT count(*) FROM packets", {"a": PING, "b": TCP})
    assert first(bare) == frame_count(PING)
    with pytest.raises(wl.UsageError):
        wl.sql("SELECT 1", {})
    with pytest.raises(wl.SqlError, match="at most 10"):
        wl.sql("SELECT 1", {f"c{number}": cap for number in range(11)})
    with pytest.raises(wl.SqlError, match="cannot be the name"):
        wl.sql("SELECT 1", {"a-b": cap})


def test_what_is_wrong_is_shown_in_both_languages(cap: wl.Capture) -> None:
    with pytest.raises(wl.SqlError) as caught:
        cap.sql("SELECT flowid FROM tcp")
    error = caught.value
    assert isinstance(error, wl.UsageError) and isinstance(error, ValueError)
    assert str(error) == "there is no column flowid (did you mean flow_id?)\n  SELECT flowid FROM tcp\n         ^"
    assert error.messages["zh"].startswith("没有名为 flowid 的列（是否想写 flow_id？）")
    assert error.offset == 7
    for hostile in (
        "DELETE FROM tcp",
        "PRAGMA user_version",
        "ATTACH 'x' AS y",
        "SELECT 1; SELECT 2",
        "",
        "SELECT 1\0",
    ):
        with pytest.raises(wl.SqlError):
            cap.sql(hostile)
    with pytest.raises(wl.UsageError):
        cap.sql(5)  # type: ignore[arg-type]


def test_limits_end_a_query_and_name_themselves(cap: wl.Capture) -> None:
    for query, limits, name in (
        (ENDLESS, {"seconds": 0.2}, "query_time"),
        ("SELECT * FROM packets", {"rows": 3}, "query_rows"),
        ("SELECT median(frame_no) FROM packets", {"bytes": 1000}, "query_bytes"),
    ):
        with pytest.raises(wl.QueryLimitError) as caught:
            cap.sql(query, limits=limits)
        assert caught.value.limit == name and isinstance(caught.value, wl.LimitError)
    for wrong in ({"minutes": 1}, {"rows": 0}, {"seconds": -1}, {"bytes": "much"}):
        with pytest.raises(wl.UsageError):
            cap.sql("SELECT 1", limits=wrong)  # type: ignore[arg-type]


def test_other_threads_run_meanwhile_and_progress_may_end_it() -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.01):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        with pytest.raises(wl.QueryLimitError):
            wl.open(PING).sql(ENDLESS, limits={"seconds": 0.6})
    finally:
        done.set()
        thread.join()
    assert ticks > 10

    def enough(done_bytes: int, total_bytes: int | None) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        wl.open(PING, progress=enough).sql(ENDLESS)


def test_ctrl_c_ends_a_query_within_a_second() -> None:
    program = f"import wirelab as wl\nprint('go', flush=True)\nwl.open({str(PING)!r}).sql({ENDLESS!r})"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"go\n"
        time.sleep(0.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    assert time.monotonic() - start < 1.5
    assert b"KeyboardInterrupt" in told


def test_the_command_line_queries_in_every_format(wirelab: Run, tmp_path: Path) -> None:
    query = "SELECT protocol, count(*) AS frames, min(time) AS first, is_fragment FROM packets GROUP BY 1, 4"
    done = wirelab("sql", query, PING)
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"") and lines[0].split() == [
        "protocol",
        "frames",
        "first",
        "is_fragment",
    ]
    expected = wl.open(PING).sql(query).to_arrow().to_pylist()
    assert len(lines) == 1 + len(expected)
    assert json.loads(wirelab("sql", query, PING, "--format", "json").stdout) == expected
    by_line = wirelab("sql", query, PING, "--format", "jsonl").stdout.decode().splitlines()
    assert [json.loads(line) for line in by_line] == expected
    assert (
        wirelab("sql", query, PING, "--format", "csv").stdout.decode().startswith("protocol,frames,first,is_fragment\n")
    )
    for kind, read in (("parquet", pa.parquet.read_table), ("arrow", lambda path: pa.ipc.open_file(path).read_all())):
        out = tmp_path / f"out.{kind}"
        assert wirelab("sql", query, PING, "--format", kind, "-o", out).returncode == 0
        assert read(out).to_pylist() == expected
    assert wirelab("sql", query, PING, "-o", PING).returncode == 2


def test_the_command_line_takes_parameters_and_several_captures(wirelab: Run) -> None:
    done = wirelab(
        "sql",
        "SELECT DISTINCT :n AS n, :r AS r, :t AS t, s.client_mss AS s, j.client_mss AS j "
        "FROM standard.tcp_flows s, jumbo.tcp_flows j",
        f"standard={STANDARD}",
        f"jumbo={JUMBO}",
        "--format",
        "json",
        *("--param", "n=5201", "--param", "r=0.5", "--param", ":t=a=b"),
    )
    assert json.loads(done.stdout) == [{"n": 5201, "r": 0.5, "t": "a=b", "s": 1460, "j": 8960}]
    both = wirelab("sql", "SELECT max(file_no) AS files FROM packets", PING, TCP, "--format", "json")
    assert json.loads(both.stdout) == [{"files": 2}]


def test_the_command_line_lists_tables_and_says_what_is_wrong(wirelab: Run) -> None:
    listed = wirelab("sql", "--tables", PING).stdout.decode()
    for name in wl.tables():
        assert re.search(rf"^{name}: ", listed, re.MULTILINE)
    assert re.search(r"^  frame_no +uint64$", listed, re.MULTILINE)
    wrong = wirelab("sql", "SELECT flowid FROM tcp", PING)
    assert wrong.returncode == 2 and wrong.stdout == b""
    assert "did you mean flow_id?" in wrong.stderr.decode() and "\n         ^" in wrong.stderr.decode()
    chinese = wirelab("sql", "SELECT flowid FROM tcp", PING, "--lang", "zh").stderr.decode()
    assert "是否想写 flow_id" in chinese
    assert "SELECT" in wirelab("sql", "SELECT 1").stderr.decode() and wirelab("sql").returncode == 2
    slow = wirelab("sql", ENDLESS, PING, "--limit-time", "0.2")
    assert slow.returncode == 2 and b"0.2 s" in slow.stderr
    assert wirelab("sql", "SELECT * FROM packets", PING, "--limit-rows", "2").returncode == 2
    assert wirelab("sql", "SELECT * FROM packets", PING, "--limit-memory", "1k").returncode == 2
    for options in (("--limit-memory", "much"), ("--limit-time", "long"), ("--param", "=5"), ("--param", "x")):
        assert wirelab("sql", "SELECT 1", PING, *options).returncode == 2, options
    assert wirelab("sql", "SELECT 1", "no-such-file.pcap").returncode == 1


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_documentation_runs_and_both_asof_joins_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    monkeypatch.chdir(SAMPLES)
    spoken: dict[str, Any] = {}
    results = []
    for block in blocks("python"):
        exec(block, spoken)  # noqa: S102
        if "last_ack" in block:
            found = spoken["last_ack"]
            results.append(found.fetchall() if hasattr(found, "fetchall") else found.sort("frame_no").rows())
    # The same by hand: of all acknowledgements to the sender on that connection, the last one before.
    rows = spoken["cap"].tcp.to_arrow().to_pylist()
    expected = []
    for row in rows:
        if row["verdict"] == "retransmit":
            before = [
                other
                for other in rows
                if other["flags"] & 16
                and (other["flow_id"], other["dst_ip"]) == (row["flow_id"], row["src_ip"])
                and other["time_rel_ns"] <= row["time_rel_ns"]
            ]
            if before:
                last = max(before, key=lambda other: other["time_rel_ns"])
                since = row["time_rel_ns"] - last["time_rel_ns"]
                expected.append((row["frame_no"], last["frame_no"], last["ack"], since))
    assert len(expected) > 3
    assert results == [expected, expected]


def test_the_commands_of_the_documentation_run(monkeypatch: pytest.MonkeyPatch, wirelab: Run) -> None:
    import shlex

    monkeypatch.chdir(SAMPLES)
    commands = [line for block in blocks("sh") for line in block.replace("\\\n", "").splitlines() if line]
    assert len(commands) >= 3
    for command in commands:
        done = wirelab(*shlex.split(command, comments=True)[1:])
        assert done.returncode == 0 and done.stdout, (command, done.stderr)


LOGS = Path(__file__).parents[2] / "tests" / "data" / "logs"


def test_logs_have_tables_alone_and_beside_a_capture(wirelab: Run, tmp_path: Path) -> None:
    log, ping = LOGS / "iperf3_tcp_json.client.txt", LOGS / "ping_lo.txt"
    whole = json.loads(log.read_text())
    rows = json.loads(
        wirelab("sql", "SELECT sent_bytes FROM iperf3_streams", log, "--format", "jsonl").stdout.splitlines()[0]
    )
    assert rows == {"sent_bytes": whole["end"]["streams"][0]["sender"]["bytes"]}
    query = (
        "SELECT (SELECT count(*) FROM tcp_flows), (SELECT count(*) FROM iperf3.iperf3), count(*) FROM ping.ping_replies"
    )
    assert wirelab("sql", query, log, TCP, ping).stdout.splitlines()[-1].split()[1:2] == [b"1"]
    named = wirelab(
        "sql",
        "SELECT a.role, b.role, c.role FROM a.iperf3 a, b.iperf3 b LEFT JOIN c.iperf3 c",
        f"a={log}",
        f"b={log}",
        "c=empty:iperf3",
    )
    assert named.stdout.split()[-3:] == [b"client", b"client", b"-"]
    assert wl.sql("SELECT count(*) FROM log.iperf3", {"cap": TCP, "log": log}).to_arrow()[0].to_pylist() == [1]
    for arguments, says in (
        (("SELECT 1", "x=empty:iperf"), "there is no kind of log iperf"),
        (("SELECT 1", f"x={log}", f"x={TCP}"), "give each a name of its own"),
    ):
        done = wirelab("sql", *arguments)
        assert done.returncode == 2 and says in done.stderr.decode(), done
    notes = tmp_path / "notes.txt"
    notes.write_text("I did the lab and it was fun.\n")
    assert wirelab("sql", "SELECT 1", notes).returncode == 1
    with pytest.raises(wl.NotACaptureError):
        wl.sql("SELECT 1", {"x": notes})


def test_info_tells_of_logs(wirelab: Run) -> None:
    log = LOGS / "iperf3_refused_json.txt"
    done = wirelab("info", log, "--lang", "en")
    text = done.stdout.decode()
    assert done.returncode == 0 and "output of iperf3" in text and "unable to connect" in text
    (told,) = json.loads(wirelab("info", log, "--json").stdout)
    assert told["tools"] == ["iperf3"] and told["tables"]["iperf3"] == 1 and told["findings"][0]["severity"] == "error"
    # A capture among them: then it is the log that is none.
    assert wirelab("info", TCP, log).returncode == 1


def test_a_limit_of_time_beyond_all_measure_is_told(wirelab: Run) -> None:
    for seconds in ("1e300", "nan", "0", "-1"):
        done = wirelab("sql", "SELECT 1", TCP, "--limit-time", seconds)
        assert done.returncode == 2 and b"above 0 and at most 1,000,000,000" in done.stderr, (seconds, done)
