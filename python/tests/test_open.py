from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest
from conftest import PFC, PING, ROCE, TCP, VXLAN, frame_count, repeated, sample

import wirelab as wl
from wirelab import _card


def test_every_table_is_an_attribute_and_declared_for_type_checkers() -> None:
    cap = wl.open(PING)
    declared = {name for name, kind in wl.Capture.__annotations__.items() if kind == "Table"}
    assert set(cap.tables) == set(wl.tables()) == declared
    for name in cap.tables:
        table = getattr(cap, name)
        assert isinstance(table, wl.Table) and table is cap.table(name)
        assert name in dir(cap)


def test_a_capture_says_what_it_holds() -> None:
    cap = wl.open(PING)
    frames = frame_count(PING)
    assert cap.summary.frames == frames == cap.packets.num_rows == len(cap.packets)
    assert sum(cap.summary.protocols.values()) == frames
    assert cap.summary.duration_ns == cap.summary.last_time_ns - cap.summary.first_time_ns
    (file,) = cap.files
    assert file["name"] == str(PING) and file["frames"] == frames and file["stored_bytes"] == PING.stat().st_size
    assert "ping-delay.pcap" in repr(cap) and str(frames) in repr(cap)


def test_an_unknown_attribute_names_the_tables() -> None:
    with pytest.raises(AttributeError, match="tcp_flows"):
        _ = wl.open(PING).no_such_table


def test_tables_know_their_columns_and_meanings() -> None:
    for name, meaning in wl.tables().items():
        table = wl.open(PING).table(name)
        assert meaning and table.description == meaning
        assert list(table.schema) == list(table.docs) == table.columns
        assert all(table.docs.values()) and all(table.schema.values())
        assert table.columns[0] == "file_no"


@pytest.mark.parametrize("path", [PING, ROCE, PFC, TCP, sample("vxlan-kubernetes/vxlan-kubernetes.pod.pcap")])
def test_every_table_shows_its_first_rows(path) -> None:
    cap = wl.open(path).load()
    for name, table in cap.tables.items():
        assert repr(table).startswith(f"{name}: {len(table):,} {'row' if len(table) == 1 else 'rows'}, ")
        html = table._repr_html_()
        assert html.count("<tr>") == 1 + min(10, len(table))
        assert all(column in html for column in table.columns)


def test_findings_are_told_in_both_languages(tmp_path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(PING.read_bytes()[:-5])
    cap = wl.open(cut)
    (english,) = (one for one in cap.quality("en") if one.code == "cut_file")
    (chinese,) = (one for one in cap.quality("zh") if one.code == "cut_file")
    assert english.severity == "warning" and "cut.pcap" in english.message
    assert "cut.pcap" in chinese.message and chinese.message != english.message
    assert cap.packets.num_rows == frame_count(PING) - 1
    with pytest.raises(wl.UsageError):
        cap.quality("fr")


def test_the_card_escapes_what_a_capture_brings_along() -> None:
    file = io.BytesIO(PING.read_bytes()[:-5])
    file.name = "<script>alert('1')</script>\u202e.pcap"
    cap = wl.open(file)
    for html in (cap._repr_html_(), cap.interfaces._repr_html_(), cap.capture_quality._repr_html_()):
        assert "<script" not in html and "&lt;script" in html
        assert "\u202e" not in html


def test_the_card_begins_with_the_findings_and_needs_nothing_from_elsewhere() -> None:
    html = wl.open(io.BytesIO(PING.read_bytes()[:-5]))._repr_html_()
    assert html.index('class="finding warning"') < html.index('class="figures"') < html.index("<svg")
    assert "http" not in html and "<script" not in html


def test_a_clean_capture_says_so(monkeypatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    assert wl.open(PING).quality() == []
    assert "No problem with the capture itself was found" in wl.open(PING)._repr_html_()


def test_the_card_says_what_happened(monkeypatch) -> None:
    for lang, tcp, roce in (
        ("en_US.UTF-8", "What happened on TCP connections", "What happened on RoCE queue pairs"),
        ("zh_CN.UTF-8", "TCP 连接事件", "RoCE 队列对事件"),
    ):
        monkeypatch.setenv("LC_ALL", lang)
        for path, title, happenings in (
            (TCP, tcp, wl.open(TCP).overview()["tcp_happenings"]),
            (ROCE, roce, wl.open(ROCE).overview()["roce"]["happenings"]),
        ):
            card = wl.open(path)._repr_html_()
            assert happenings and title in card
            for one in happenings[:6]:
                assert escape(one["longest"][f"message_{lang[:2]}"]) in card
    assert 'class="happened"' not in wl.open(PING)._repr_html_()


def happening(text: str) -> dict[str, object]:
    longest = {"file_no": 1, "message_en": text, "message_zh": text}
    return {"events": 1, "longest_ns": 0, "longest": longest, "queue_pairs": [], "has_more_queue_pairs": False}


def question(name: str | None, unanswered: int, **failures: int) -> dict[str, object]:
    wrong = unanswered + sum(number for code, number in failures.items() if code != "NXDOMAIN")
    counts = {"query_count": 5, "unanswered_count": unanswered, "failures": failures, "wrong_count": wrong}
    return {"query_name": name, "query_type": "A", "server_ip": "10.0.0.53", **counts}


def test_the_card_has_room_for_each_kind_and_says_how_many_more_there_are() -> None:
    seen = dict(wl.open(PING).overview())
    seen["tcp_happenings"] = [happening(f"<b>tcp {number}</b>") for number in range(9)]
    seen["roce"] = {**seen["roce"], "happenings": [happening("roce 0")], "event_count": 1}
    asked = [
        question("down.example", 1, SERVFAIL=3, NXDOMAIN=1),
        question("<script>\u202e", 2),
        question(None, 1),
        # A name that is not there is an answer.
        question("none.example", 0, NXDOMAIN=5),
    ]
    seen["dns"] = {**seen["dns"], "questions": asked}
    card = _card.html(seen, "en")
    shown = [re.sub(r"<[^>]+>", "", one) for one in re.findall(r"<li>(.*?)</li>", card)]
    assert shown == [
        "&lt;b&gt;tcp 0&lt;/b&gt;",
        "&lt;b&gt;tcp 1&lt;/b&gt;",
        "&lt;b&gt;tcp 2&lt;/b&gt;",
        "roce 0",
        "down.example (A) at 10.0.0.53: 5 queries, 1 unanswered, 3 SERVFAIL, 1 NXDOMAIN",
        "&lt;script&gt;\\u202e (A) at 10.0.0.53: 5 queries, 2 unanswered",
    ]
    assert "and 7 more: wirelab info" in card and "<script" not in card
    chinese = _card.html(seen, "zh")
    assert "down.example（A，服务器 10.0.0.53）：共查询 5 次，无应答 1 次、SERVFAIL 3 次、NXDOMAIN 1 次" in chinese
    assert "另有 7 项：wirelab info" in chinese


def test_several_files_are_one_capture() -> None:
    folder = sample("tcp-loss/tcp-loss.h1.pcap").parent
    paths = sorted(folder.glob("*.pcap"))
    assert len(paths) == 2
    for cap in (wl.open(*paths), wl.open(paths)):
        assert cap.summary.frames == sum(map(frame_count, paths))
        assert [file["name"] for file in cap.files] == [str(path) for path in paths]


def test_options_reach_the_core() -> None:
    unknown = wl.open(PFC).pause.to_arrow()["pause_ns"]
    assert unknown.null_count == len(unknown) > 0
    quick = wl.open(PFC, link_speed_bps=100_000_000_000).pause.to_arrow()
    for quanta, pause_ns in zip(quick["quanta"].to_pylist(), quick["pause_ns"].to_pylist(), strict=True):
        assert pause_ns == quanta * 512 * 10**9 // 10**11
    assert wl.open(ROCE).roce.num_rows > 0
    assert wl.open(ROCE, roce_ports=[9]).roce.num_rows == 0
    for checksums, is_known in (("on", True), ("off", False)):
        column = wl.open(VXLAN, checksums=checksums).packets.to_arrow()["ip_checksum"]
        assert (column.null_count == 0) is is_known
    one, many = (wl.open(TCP, threads=n).tcp.to_arrow() for n in (1, 3))
    assert one.equals(many)


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 0},
        {"threads": -1},
        {"threads": 1.5},
        {"threads": True},
        {"link_speed_bps": 0},
        {"link_speed_bps": True},
        {"vxlan_ports": [70_000]},
        {"vxlan_ports": True},
        {"roce_ports": "x"},
        {"checksums": "yes"},
        {"pause_storm_ns": 0},
        {"logs": 3},
        {"roce_endpoints": 5},
        {"roce_endpoints": True},
        {"roce_endpoints": "10.0.0.1"},
        {"roce_endpoints": [(5, 1, 2)]},
        {"roce_endpoints": [(None, 1, 2)]},
        {"roce_endpoints": [("10.0.0.1", True, 2)]},
        {"roce_endpoints": [("10.0.0.1", 1)]},
        {"roce_endpoints": [("here", 1, 2)]},
        {"roce_endpoints": [("10.0.0.1", 2**24, 2)]},
        {"memory_budget": 0},
        {"memory_budget": True},
        {"progress": 3},
    ],
)
def test_an_option_out_of_range_is_the_callers_fault(options) -> None:
    with pytest.raises(wl.UsageError, match=next(iter(options))):
        wl.open(PING, **options)


def _perftest(cap: wl.Capture) -> str:
    """What perftest would have printed of the first queue pair."""
    qp, first = cap.roce_qps.to_arrow().to_pylist()[0], cap.roce.to_arrow().to_pylist()[0]

    def end(which: str, address: str, qpn: int, psn: int) -> str:
        gid = "00:00:00:00:00:00:00:00:00:00:255:255:" + ":".join(f"{int(part):02}" for part in address.split("."))
        return f" {which} address: LID 0000 QPN 0x{qpn:04x} PSN 0x{psn:06x}\n GID: {gid}\n"

    return (
        "                    RDMA_Write BW Test\n Number of qps   : 1\t\tTransport type : IB\n"
        + end("local", qp["requester_ip"], qp["requester_qp"], first["psn"])
        + end("remote", qp["responder_ip"], qp["responder_qp"], 7)
    )


def test_logs_and_endpoints_pair_queue_pairs_for_certain(tmp_path) -> None:
    plain = wl.open(PFC)
    row = plain.roce_qps.to_arrow().to_pylist()[0]
    assert row["paired_by"] == "psn"
    text = _perftest(plain)
    log = tmp_path / "ib_write_bw.txt"
    log.write_text(text, encoding="utf-8")
    psn = plain.roce.to_arrow().to_pylist()[0]["psn"]
    own = (row["requester_ip"], row["requester_qp"], psn, row["responder_qp"])
    peer = (row["responder_ip"], row["responder_qp"], 7, row["requester_qp"])
    for options in (
        {"logs": log},
        {"logs": [str(log)]},
        {"logs": text.encode()},
        {"logs": io.StringIO(text)},
        {"roce_endpoints": [own, peer]},
        {"roce_endpoints": [own[:3], peer[:3]]},
    ):
        (told,) = wl.open(PFC, **options).roce_qps.to_arrow().to_pylist()[:1]
        assert (told["paired_by"], told["pair_confidence"]) == ("perftest", "certain"), options
        assert told["requester_qp"] == row["requester_qp"]
    with pytest.raises(wl.UsageError, match=r"log: Nothing in it looks like output of perftest") as caught:
        wl.open(PFC, logs=b"64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.1 ms\n")
    assert "perftest" in caught.value.messages["zh"]
    with pytest.raises(FileNotFoundError):
        wl.open(PFC, logs=tmp_path / "none.txt")


def test_the_length_of_a_pause_storm_is_settable() -> None:
    storms = [
        sum(wl.open(PFC, link_speed_bps=10**9, **options).pause_intervals.to_arrow()["is_storm"].to_pylist())
        for options in ({}, {"pause_storm_ns": 1_000}, {"pause_storm_ns": 10**15})
    ]
    assert storms[1] > storms[0] >= storms[2] == 0


def test_tables_beyond_the_memory_budget_read_the_same_and_a_finding_tells() -> None:
    small = wl.open(TCP, memory_budget=1)
    assert small.tcp.to_arrow().equals(wl.open(TCP).tcp.to_arrow())
    assert small.tcp_flows.to_pandas().equals(wl.open(TCP).tcp_flows.to_pandas())
    assert [one.code for one in small.quality()].count("large_tables") == 1
    (english,) = (one.message for one in small.quality() if one.code == "large_tables")
    (chinese,) = (one.message for one in small.quality("zh") if one.code == "large_tables")
    assert "wirelab convert" in english and "wirelab convert" in chinese and english != chinese
    assert "large_tables" not in [one.code for one in wl.open(TCP).quality()]


def test_a_folder_for_temporary_files_that_is_missing_is_named() -> None:
    code = f"""
import wirelab as wl
try: wl.open({str(TCP)!r}, memory_budget=1).tcp.num_rows
except FileNotFoundError as error:
    assert error.filename == "/no/such/folder" and "Set TMPDIR to a folder with more room" in str(error), error
    assert "wirelab convert" in str(error) and "TMPDIR" in error.messages["zh"], error.messages
else: raise SystemExit("it was written")
"""
    environment = {**os.environ, "TMPDIR": "/no/such/folder"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_a_full_folder_for_temporary_files_is_told_with_what_to_do_and_left_empty(tmp_path: Path) -> None:
    code = f"""
import errno, resource, wirelab as wl
# Writing beyond it fails as on a full disk; Python ignores the signal.
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
try: wl.open({str(TCP)!r}, memory_budget=1).tcp.num_rows
except OSError as error:
    assert error.errno == errno.EFBIG and error.filename == {str(tmp_path)!r}, error
    assert "Set TMPDIR to a folder with more room" in str(error), error
else: raise SystemExit("it was written")
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_the_finding_on_memory_comes_whichever_way_it_is_asked_for(tmp_path: Path) -> None:
    # Of a capture of this size a query reads only what it needs.
    large = repeated(TCP, tmp_path / "large.pcap", 70_000_000)
    size = frame_count(large) * 170
    for query in ("", " LIMIT 50", " WHERE code = 'large_tables'", " ORDER BY code LIMIT 50 OFFSET 0"):
        cap = wl.open(large, memory_budget=1_000_000)
        rows = cap.sql(f"SELECT code, message_en FROM capture_quality{query}").to_arrow().to_pylist()
        (message,) = (row["message_en"] for row in rows if row["code"] == "large_tables")
        assert f"about {-(-size // 1_000_000)} MB, more than the 1 MB" in message, (query, message)


def test_nothing_goes_to_standard_error_or_output() -> None:
    code = f"""
import io, wirelab as wl
cap = wl.open({str(TCP)!r}, {str(PING)!r})
cap.load(); repr(cap), cap._repr_html_(), [repr(t) + t._repr_html_() for t in cap.tables.values()]
list(wl.scan({str(TCP)!r}, "tcp"))
for bad in (b"", b"text", b"\\x80\\xff" * 50, io.BytesIO(b"\\x1f\\x8b" * 99), "no/such/file"):
    try: wl.open(bad)
    except (wl.WirelabError, OSError): pass
    else: raise SystemExit("was read")
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
