from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from conftest import PFC, PING, ROCE, TCP, VXLAN, Run, all_shown, frame_count, sample

import wirelab as wl
from wirelab import _words


def test_info_begins_with_findings_and_tells_what_there_is(wirelab: Run) -> None:
    for path, words in (
        (PING, ["Protocols", "ICMP", "Pings", "Interfaces", "ETHERNET"]),
        (TCP, ["TCP connections", "handshake RTT", "MSS", "goodput", "5201"]),
        (ROCE, ["RoCE", "RC_RDMA_WRITE", "acknowledgements"]),
        (PFC, ["Pause frames", "PFC", "sender (congested port)", "02:00:00:00:77:99"]),
        (VXLAN, ["Tunnels", "VXLAN", "VNI"]),
    ):
        done = wirelab("info", path)
        text = done.stdout.decode()
        assert (done.returncode, done.stderr) == (0, b""), text
        assert path.name in text and f"{frame_count(path):,}" in text
        assert all(word in text for word in words), text
        assert text.index("Findings") < text.index("Capture") < text.index("Protocols")
        assert "\x1b" not in text


def test_info_puts_failures_first_and_counts_queue_pairs_once(wirelab: Run) -> None:
    samples = ROCE.parents[1]
    text = " ".join(wirelab("info", samples / "roce-verbs" / "roce-verbs.pcap").stdout.decode().split())
    failed, settled = text.index("likely given up"), text.index("then it was accepted")
    assert failed < settled
    assert all(f"QP 0x{number} → " in text for number in (18, 19, "1a"))
    loss = samples / "roce-loss"
    text = " ".join(wirelab("info", loss / "roce-loss.requester.pcap").stdout.decode().split())
    assert "2 events of this kind, the longest 2.28 s: Go-back-N" in text and "until its timer ran out" in text
    assert "RoCE queue pairs that send data: 3." in text and "besides 2 of the connection manager" in text
    assert "and 2 more" not in text
    assert "captured at 2 points" not in text
    text = " ".join(wirelab("info", *sorted(loss.glob("*.pcap"))).stdout.decode().split())
    assert "captured at 2 points" in text and "wirelab match" in text
    assert "each point of capture counted)" in text
    # A frame number alone would not say of which file; where none is given, none is named.
    assert "(Frames of roce-loss.requester.pcap.)" in text
    sentences = text[text.index("Findings") : text.index("Capture Frames")].split("note ")
    assert all("(Frames of " not in one for one in sentences if "frame " not in one)


def test_info_speaks_chinese_where_asked_or_where_the_environment_does(wirelab: Run) -> None:
    asked = wirelab("info", "--lang", "zh", PING)
    found = wirelab("info", PING, env={"LC_ALL": "zh_CN.UTF-8"})
    assert asked.returncode == found.returncode == 0
    assert asked.stdout == found.stdout
    text = asked.stdout.decode()
    assert "协议" in text and "Protocols" not in text
    english = wirelab("info", "--lang", "en", PING, env={"LC_ALL": "zh_CN.UTF-8"}).stdout.decode()
    assert "Protocols" in english and "协议" not in english


def test_info_for_programs_is_json_with_exact_times(wirelab: Run) -> None:
    seen = json.loads(wirelab("info", "--json", PING).stdout)
    cap = wl.open(PING)
    assert seen["frames"] == cap.summary.frames and seen["first_time_ns"] == cap.summary.first_time_ns
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", seen["first_time"])
    assert seen["findings"] == [] and seen["probes"][0]["sent_count"] == cap.probes.num_rows
    opcodes = json.loads(wirelab("info", "--json", ROCE).stdout)["roce"]["opcodes"]
    assert sum(one["packets"] for one in opcodes) == wl.open(ROCE).roce.num_rows > 0


def test_info_names_dns_questions_and_udp_flows(wirelab: Run) -> None:
    out = wirelab("info", "--lang", "en", sample("vxlan-kubernetes/vxlan-kubernetes.pod.pcap")).stdout.decode()
    lines = [line.split() for line in out.splitlines()]
    assert ["web.default.svc.cluster.local", "A", "10.96.0.2", "24", "0", "0", "–"] in [line[:7] for line in lines]
    assert ["web.default.svc.cluster.local", "AAAA", "10.96.0.2", "24", "0", "0", "NXDOMAIN", "24"] in [
        line[:8] for line in lines
    ]
    assert "UDP flows" not in out
    out = wirelab("info", "--lang", "zh", sample("udp-loss/udp-loss.pcap")).stdout.decode()
    assert "UDP 流（1 条）" in out and "4.84 Mbit/s" in out and "DNS" not in out


def test_info_tells_pings_that_an_icmp_error_answered(wirelab: Run) -> None:
    path = sample("vxlan-mtu-mismatch/vxlan-mtu-mismatch.pod.pcap")
    seen = json.loads(wirelab("info", "--json", path).stdout)["probes"]
    errors = wl.open(path).probes.to_arrow()["error_frame_no"]
    assert sum(one["error_count"] for one in seen) == len(errors) - errors.null_count


def test_words_of_both_languages_have_the_same_keys_and_placeholders() -> None:
    english: dict[str, str] = {}
    chinese: dict[str, str] = {}
    for part in _words.PARTS:
        for lang, words in (("en", english), ("zh", chinese)):
            text = (resources.files("wirelab") / "words" / f"{part}.{lang}.json").read_text(encoding="utf-8")
            of_part = json.loads(text)
            assert not words.keys() & of_part.keys(), "a key in two files"
            words.update(of_part)
    assert list(english) == list(chinese) and len(english) > 60
    for key, text in english.items():
        assert set(re.findall(r"{(\w+)[|}]", text)) == set(re.findall(r"{(\w+)[|}]", chinese[key])), key
    source = "".join(path.read_text(encoding="utf-8") for path in Path(wl.__file__).parent.rglob("*.py"))
    unused = [key for key in english if not re.search(f"[\"']{key}[\"']", source) and not key.startswith("severity_")]
    assert unused == []


def test_csv_gives_every_frame_with_nine_digits(wirelab: Run) -> None:
    done = wirelab("table", "packets", PING, "--format", "csv", "--columns", "frame_no,time")
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr, lines[0]) == (0, b"", "frame_no,time")
    assert len(lines) == 1 + frame_count(PING)
    times = wl.open(PING).packets.to_arrow()["time"].cast("int64").to_pylist()
    for line, time in zip(lines[1:], times, strict=True):
        match = re.fullmatch(r"\d+,\d{4}-\d\d-\d\dT\d\d:\d\d:(\d\d)\.(\d{9})Z", line)
        assert match and int(match[2]) == time % 10**9 and int(match[1]) == time // 10**9 % 60


@pytest.mark.parametrize("format", ["json", "jsonl"])
def test_json_is_json(wirelab: Run, format: str) -> None:
    out = wirelab("table", "probes", PING, "--format", format).stdout
    rows = json.loads(out) if format == "json" else [json.loads(line) for line in out.splitlines()]
    assert [row["sequence"] for row in rows] == wl.open(PING).probes.to_arrow()["sequence"].to_pylist()


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("is_file", [True, False])
def test_binary_formats_go_to_a_file_or_a_pipe(wirelab: Run, tmp_path: Path, format: str, is_file: bool) -> None:
    feather, parquet = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out"
    if is_file:
        done = wirelab("table", "tcp", TCP, "--format", format, "-o", out)
        assert done.stdout == b""
    else:
        done = wirelab("table", "tcp", TCP, "--format", format)
        out.write_bytes(done.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    read = (parquet.read_table if format == "parquet" else feather.read_table)(out)
    assert read.num_rows == wl.open(TCP).tcp.num_rows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
def test_binary_formats_do_not_go_to_a_screen() -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "wirelab", "table", "tcp", str(TCP), "--format", "parquet"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=60)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2 and b"not for a screen" in done.stderr


def test_a_table_for_people_lines_up_and_takes_filters(wirelab: Run) -> None:
    columns, asker = "frame_no,time,src_ip,protocol", wl.open(PING).probes.to_arrow()["src_ip"][0]
    hosts = ["--host", "203.0.113.9", "--host", asker]
    done = wirelab("table", "packets", PING, "--columns", columns, "--limit", 4, *hosts)
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (0, b"", 5)
    assert lines[0].split() == ["frame_no", "time", "src_ip", "protocol"]
    assert len({line.index("ICMP") for line in lines[1:]} | {lines[0].index("protocol")}) == 1
    whole = wirelab("table", "packets", PING).stdout.decode().splitlines()
    assert len(whole) == 1 + frame_count(PING) and whole[0].split() == wl.open(PING).packets.columns


def test_no_word_of_a_long_cell_is_lost(wirelab: Run) -> None:
    messages = wl.open(TCP).tcp_events.to_arrow()["message_en"].to_pylist()
    assert max(map(len, messages)) > 80
    columns = ["--columns", "frame_no,message_en,kind"]
    piped = wirelab("table", "tcp_events", TCP, *columns).stdout.decode().splitlines()
    assert len(piped) == 1 + len(messages)
    assert all(message in line for message, line in zip(messages, piped[1:], strict=True))


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
@pytest.mark.parametrize("columns", [None, "frame_no,message_en,message_zh"])
def test_on_a_screen_long_cells_go_on_in_the_next_line(columns: str | None) -> None:
    import pty

    messages = wl.open(TCP).tcp_events.to_arrow()["message_en"].to_pylist()[:3]
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "wirelab", "table", "tcp_events", str(TCP), "--limit", "3"]
    command += ["--columns", columns] if columns else []
    environment = {**os.environ, "COLUMNS": "130"}
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    shown = all_shown(ours)
    assert process.wait(timeout=60) == 0
    lines = shown.decode().splitlines()
    if columns is None:
        assert len(lines) == 4 and all(len(line) <= 130 for line in lines)
        assert b"more columns (see --columns): " in process.stderr.read()
    else:
        assert len(lines) > 4
        # The column of the message begins where its name does; its words are all there, in order.
        start, end = lines[0].index("message_en"), lines[0].index("message_zh")
        told = " ".join(line[start:end].strip() for line in lines[1:])
        assert " ".join(told.split()) == " ".join(messages)


def test_time_filters_take_text_and_nanoseconds(wirelab: Run) -> None:
    summary = wl.open(PING).summary
    time = summary.first_time_ns + 1
    command = ["table", "packets", PING, "--format", "csv", "--columns", "frame_no"]
    for given in (time, wl._times.to_text(time)):
        done = wirelab(*command, "--time-from", given)
        assert done.stdout.decode().splitlines()[1] == "2", done.stderr
    assert wirelab(*command, "--time-to", summary.first_time_ns).stdout == b"frame_no\n"


def test_a_reader_that_goes_away_ends_it_quietly(large: Path) -> None:
    for format in ("csv", "table", "jsonl", "parquet"):
        command = [sys.executable, "-m", "wirelab", "table", "packets", str(large), "--format", format]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.read(100)
        process.stdout.close()
        error = process.stderr.read()
        assert (process.wait(timeout=60), error) == (0, b""), format


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
@pytest.mark.parametrize("format", ["csv", "table", "parquet", "arrow"])
def test_memory_stays_bounded_whatever_the_size(large: Path, format: str) -> None:
    # Not ru_maxrss: a new process begins with that of the one that started it.
    code = """
import sys
from wirelab.cli import main
assert main(sys.argv[1:]) == 0
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(peak.split()[1], file=sys.stderr)
"""
    columns = ["--columns", "frame_no,time,src_ip"]
    if format == "table":
        # For people, and as slow as they are.
        columns += ["--limit", "500000"]
    command = [sys.executable, "-c", code, "table", "packets", str(large), "--format", format, *columns]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 0
    # The input alone is more.
    assert int(done.stderr) < 250_000, f"{int(done.stderr):,} kB"


@pytest.mark.parametrize("command", [["info"], ["table", "packets"], ["table", "tcp", "--format", "csv"]])
def test_what_cannot_be_read_is_one_message_and_exit_code_1(wirelab: Run, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "text.pcap").write_text("hello, this is my homework")
    (tmp_path / "empty.pcap").write_bytes(b"")
    for name, says in (
        ("text.pcap", "text file"),
        ("empty.pcap", "is empty"),
        ("missing.pcap", "no such file"),
        (".", "directory"),
    ):
        done = wirelab(*command, tmp_path / name)
        assert (done.returncode, done.stdout) == (1, b"")
        message = done.stderr.decode()
        assert message.startswith("wirelab: ") and message.count("\n") == 1 and says in message, message
    empty = tmp_path / "empty.pcap"
    assert wirelab(*command, empty).stderr.decode().startswith(f"wirelab: {empty} is no capture: it is empty.")
    done = wirelab(*command, "--lang", "zh", empty)
    assert done.returncode == 1 and f"{empty} 不是抓包文件：它是空文件" in done.stderr.decode()


def test_a_cut_file_gives_its_rows_and_a_finding(wirelab: Run, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(PING.read_bytes()[:-5])
    done = wirelab("table", "packets", cut, "--format", "csv")
    assert done.returncode == 0 and done.stdout.count(b"\n") == frame_count(PING)
    assert b"ends in the middle of a record" in done.stderr and done.stderr.count(b"\n") == 1
    for query in ("SELECT count(*) n FROM packets", "SELECT frame_no FROM packets LIMIT 1000"):
        done = wirelab("sql", query, cut, "--format", "csv")
        assert done.returncode == 0 and b"ends in the middle of a record" in done.stderr, query
        assert done.stderr.count(b"\n") == 1
    done = wirelab("info", cut)
    assert done.returncode == 0 and b"ends in the middle of a record" in b" ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["table", "packet", PING], "did you mean packets"),
        (["table", "packets", PING, "--columns", "tiem"], "did you mean time"),
        (["table", "packets", PING, "--format", "parket"], "did you mean parquet"),
        (["table", "packets", PING, "--host", "nobody"], "IP address"),
        (["table", "packets", PING, "--port", "x"], "--port"),
        (["table", "packets", PING, "--time-from", "noon"], "ISO 8601"),
        (["table", "packets", PING, "--limit", "-3"], "--limit"),
        (["table", "packets", PING, "-o", "/no/such/folder/out.csv"], "cannot be written"),
        (["table", "packets"], "FILE"),
        (["info", PING, "--threads", "0"], "threads"),
        (["info", PING, "--link-speed", "fast"], "--link-speed"),
        (["info", PING, "--pause-storm", "long"], "--pause-storm"),
        (["info", PING, "--log", PING], "perftest"),
        (["inof", PING], "did you mean info"),
        ([], "command"),
    ],
)
def test_a_faulty_call_is_exit_code_2_and_says_what_was_meant(wirelab: Run, arguments: list[object], says: str) -> None:
    done = wirelab(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert says in done.stderr.decode() and "Traceback" not in done.stderr.decode()


def test_an_unknown_table_is_told_in_the_language_of_the_environment(wirelab: Run) -> None:
    chinese = {"LC_ALL": "zh_CN.UTF-8"}
    for arguments in (["table", "packet", PING], ["convert", PING, "-o", "/tmp/none", "--tables", "packet"]):
        done = wirelab(*arguments, env=chinese)
        assert done.returncode == 2 and "没有名为 packet 的表（是不是 packets？）" in done.stderr.decode()
    assert (
        "表 packets 没有名为 tiem 的列；是不是 time？"
        in wirelab("table", "packets", PING, "--columns", "tiem", env=chinese).stderr.decode()
    )


def test_what_damages_a_file_is_told_in_the_language_asked_for(wirelab: Run, tmp_path: Path) -> None:
    packed, damaged = tmp_path / "cut.pcap.gz", tmp_path / "damaged.pcap"
    packed.write_bytes(gzip.compress(PING.read_bytes())[:-40])
    whole = bytearray(PING.read_bytes())
    # The stored length of the second record.
    first = int.from_bytes(whole[32:36], "little")
    at = 24 + 16 + first + 8
    whole[at : at + 4] = (2_097_218).to_bytes(4, "little")
    damaged.write_bytes(whole)
    for path, said in ((packed, "不完整"), (damaged, "长度为 2097218")):
        done = wirelab("info", path, "--lang", "zh")
        text = "".join(done.stdout.decode().split())
        assert said.replace(" ", "") in text and "deflatestream" not in text and "（length" not in text


def test_a_log_of_perftest_pairs_the_queue_pairs_of_a_capture(wirelab: Run, tmp_path: Path) -> None:
    first = ["--columns", "requester_ip,requester_qp,responder_ip,responder_qp", "--format", "csv"]
    own_ip, own, peer_ip, peer = wirelab("table", "roce_qps", PFC, *first).stdout.decode().split()[1].split(",")
    psn = wirelab("table", "roce", PFC, "--columns", "psn", "--format", "csv").stdout.decode().split()[1]
    lines = ["                    RDMA_Write BW Test"]
    for which, ip, qpn, number in (("local", own_ip, own, psn), ("remote", peer_ip, peer, "7")):
        gid = ":".join(["00"] * 10 + ["255"] * 2 + [f"{int(part):02}" for part in ip.split(".")])
        lines += [f" {which} address: LID 0000 QPN 0x{int(qpn):04x} PSN 0x{int(number):06x}", f" GID: {gid}"]
    log = tmp_path / "server.txt"
    log.write_text("\n".join(lines) + "\n")
    told = wirelab("table", "roce_qps", PFC, "--columns", "paired_by", "--format", "csv", "--log", log)
    assert told.stdout.decode().split()[1] == "perftest"
    seen = wirelab("info", PFC, "--log", log, "--link-speed", "1G", "--pause-storm", "1us", "--json").stdout
    assert "pause_storm" in {one["code"] for one in json.loads(seen)["findings"]}


def test_a_failed_run_leaves_an_output_file_as_it_was(wirelab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    for arguments in (["packets", tmp_path / "missing"], ["packets", PING, "--columns", "x"]):
        assert wirelab("table", *arguments, "-o", out, "--format", "csv").returncode != 0
        assert out.read_text() == "precious"
    assert wirelab("table", "packets", PING, "-o", out, "--format", "csv").returncode == 0
    assert out.read_text().startswith("file_no,") and [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_standard_input_is_a_capture_too(wirelab: Run) -> None:
    with TCP.open("rb") as file:
        piped = wirelab("info", "-", stdin=file)
    assert piped.returncode == 0 and f"{frame_count(TCP):,}".encode() in piped.stdout
    with PING.open("rb") as file:
        done = wirelab("table", "packets", "-", "--format", "csv", stdin=file)
    assert done.stdout == wirelab("table", "packets", PING, "--format", "csv").stdout


def test_tables_and_their_columns_are_listed(wirelab: Run) -> None:
    text = wirelab("tables").stdout.decode()
    assert [line.split()[0] for line in text.splitlines()] == list(wl.tables())
    text = wirelab("tables", "tcp").stdout.decode()
    assert all(column in text for column in wl.open(PING).tcp.columns)
    assert wirelab("tables", "tpc").returncode == 2


def test_the_version_is_told(wirelab: Run) -> None:
    done = wirelab("--version")
    assert (done.returncode, done.stdout.decode().strip()) == (0, f"wirelab {wl.__version__}")


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
def test_progress_shows_on_a_screen_and_for_long_inputs_only(large: Path) -> None:
    import pty

    def seen(path: Path) -> bytes:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "wirelab", "info", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = all_shown(ours)
        assert process.wait(timeout=60) == 0
        return shown

    assert b"%" in seen(large) and seen(PING) == b""
