"""The harness itself: does it see what programs cost, and does it fail when they disagree?"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import run  # noqa: E402
from harness import bench as bench_run  # noqa: E402
from harness import checks, inputs, measure, programs, report, scaling  # noqa: E402

PEERS = os.environ.get("WIRELAB_BENCH_PEERS")
needs_peers = pytest.mark.skipif(not PEERS, reason="WIRELAB_BENCH_PEERS names no wirelab-bench program")
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")


def run_python(tmp_path: Path, code: str, timeout_s: float | None = None) -> measure.Run:
    command = [sys.executable, "-c", code]
    return measure.run(command, tmp_path / "out", tmp_path / "err", timeout_s=timeout_s)


@needs_linux
def test_memory_that_is_touched_is_seen_and_mapped_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(64 << 20))
    touched = "import time; data = bytearray(b'x') * (64 << 20); time.sleep(0.2)"
    mapped = (
        "import mmap, time; file = open('file', 'rb'); data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ);"
        "sum(data[at] for at in range(0, len(data), 4096)); time.sleep(0.2)"
    ).replace("'file'", repr(str(tmp_path / "file")))
    touched_cost, mapped_cost = run_python(tmp_path, touched).cost, run_python(tmp_path, mapped).cost
    assert touched_cost.peak_anon_bytes is not None and touched_cost.peak_anon_bytes > 64 << 20
    assert mapped_cost.peak_anon_bytes is not None and mapped_cost.peak_anon_bytes < 32 << 20
    assert mapped_cost.peak_rss_bytes is not None and mapped_cost.peak_rss_bytes > 64 << 20


@needs_linux
def test_memory_of_a_child_process_counts(tmp_path: Path) -> None:
    child = "import time; data = bytearray(b'x') * (64 << 20); time.sleep(0.3)"
    cost = run_python(tmp_path, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])").cost
    assert cost.peak_anon_bytes is not None and cost.peak_anon_bytes > 64 << 20


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="no wait4 here")
def test_cpu_time_is_work_and_wall_time_is_waiting_too(tmp_path: Path) -> None:
    slept = run_python(tmp_path, "import time; time.sleep(0.5)").cost
    worked = run_python(tmp_path, "import time\nwhile time.process_time() < 0.5: pass").cost
    assert slept.cpu_s is not None and slept.cpu_s < 0.4 and slept.wall_s > 0.5
    assert worked.cpu_s is not None and worked.cpu_s >= 0.5


def test_a_program_over_its_time_is_ended_and_said_to_be(tmp_path: Path) -> None:
    done = run_python(tmp_path, "import time; time.sleep(30)", timeout_s=0.2)
    assert done.is_over_time and done.cost.wall_s < 10
    assert not run_python(tmp_path, "pass", timeout_s=20).is_over_time


def test_an_exit_code_comes_through(tmp_path: Path) -> None:
    assert run_python(tmp_path, "raise SystemExit(3)").exit_code == 3


def test_the_median_is_taken_of_times_and_the_maximum_of_memory() -> None:
    costs = [measure.Cost(3.0, 1.0, 10, 5), measure.Cost(1.0, 9.0, 30, 1), measure.Cost(2.0, 2.0, 20, None)]
    assert measure.median(costs) == measure.Cost(2.0, 2.0, 30, 5)


def test_disagreement_names_the_fact_and_who_says_what() -> None:
    facts = {"wirelab": {"frames": 10, "tcp": 9}, "tshark": {"frames": 10, "tcp": 8}, "bare loop": {"frames": 10}}
    assert checks.disagreements(facts) == ["tcp: 8 (tshark); 9 (wirelab)"]


def test_agreement_is_silent_also_where_some_say_less() -> None:
    assert checks.disagreements({"wirelab": {"frames": 10, "tcp": 9}, "bare loop": {"frames": 10}}) == []


def test_a_program_that_leaves_out_what_it_was_asked_for_is_found() -> None:
    assert checks.missing_facts(("frames", "tcp"), {"frames": 1}) == ["says nothing of tcp"]


def test_tcptrace_output_is_read(tmp_path: Path) -> None:
    text = """12 packets seen, 10 TCP packets traced
TCP connection info:
2 TCP connections traced:
TCP connection 1:
\t   rexmt data pkts:          4           rexmt data pkts:           1
TCP connection 2:
\t   rexmt data pkts:          0           rexmt data pkts:           3
"""
    (tmp_path / "out").write_text(text)
    facts = programs.read_tcptrace(tmp_path / "out")
    assert facts == {"frames": 12, "tcp": 10, "tcp_flows": 2, "repeated_segments": 8}


def test_tshark_output_is_read(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("0\t\t\t1\n1\t\t1\t2\n0\t\t\t3\n\t17\t\t4\n\t\t\t5\n")
    facts = programs.read_tshark(tmp_path / "out")
    assert facts == {"frames": 5, "tcp": 3, "tcp_flows": 2, "roce": 1, "ws_retransmissions": 1}


def fake_scan(folder: Path, wrong_tcp_by: int, text: str | None = None) -> Path:
    """A program that answers as wirelab-scan does; its numbers are the bare loop's, or wrong by so many."""
    script = folder / "wirelab-scan"
    script.write_text(
        f"""#!{sys.executable}
import json, subprocess, sys
from collections import defaultdict
from pathlib import Path
said = json.loads(subprocess.check_output([{PEERS!r}, "bare", sys.argv[1]]))
flows = json.loads(Path(sys.argv[1]).with_suffix(".json").read_text())["tcp_flows"]
known = {{"packets": said["frames"], "tcp": said["tcp"] + {wrong_tcp_by}, "tcp_flows": flows, "roce": said["roce"]}}
rows = defaultdict(int, known)
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
if "--convert" in options:
    Path(options["--convert"]).mkdir()
if "--sql" in options:
    said = {{"answer": rows["packets"]}}
elif "--tables" in options or "--convert" in options:
    said = {{"rows": {{table: rows[table] for table in options.get("--tables", "packets,tcp,tcp_flows").split(",")}}}}
else:
    said = {{"frames": rows["packets"]}}
print({text!r} or json.dumps(said))
"""
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def bench(tmp_path: Path, scan: Path) -> int:
    options = ["--quick", "--inputs", "bulk", "--bulk-mb", "2", "--plain-only", "--dir", str(tmp_path / "captures")]
    return run.main([*options, "--wirelab", str(scan), "--peers", str(PEERS), "--markdown", str(tmp_path / "out.md")])


@needs_peers
def test_a_run_in_which_all_agree_writes_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, fake_scan(tmp_path, 0)) == 0
    assert "bare loop" in capsys.readouterr().out
    assert "| bulk | bare loop |" in (tmp_path / "out.md").read_text()


@needs_peers
def test_one_row_too_many_fails_before_any_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, fake_scan(tmp_path, 1)) == 1
    said = capsys.readouterr()
    assert said.out == "" and "bulk: tcp:" in said.err
    assert not (tmp_path / "out.md").exists()


@needs_peers
def test_output_that_is_no_json_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, fake_scan(tmp_path, 0, "done")) == 1
    assert "was not understood" in capsys.readouterr().err


@needs_peers
def test_a_capture_is_made_once(tmp_path: Path) -> None:
    scan = fake_scan(tmp_path, 0)
    assert bench(tmp_path, scan) == 0
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "captures").glob("*.pcap")}
    assert bench(tmp_path, scan) == 0
    assert times and times == {path: path.stat().st_mtime_ns for path in (tmp_path / "captures").glob("*.pcap")}
    assert not list((tmp_path / "captures").glob("*.tmp"))


def test_a_call_without_wirelab_is_at_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    true = shutil.which("true") or sys.executable
    assert run.main(["--quick", "--wirelab", str(tmp_path / "none"), "--peers", true]) == 2
    assert "--wirelab" in capsys.readouterr().err


def row(name: str, program: str, cpu_s: float, wall_s: float = 1.0, compression: str | None = None) -> bench_run.Row:
    truth = {"frames": 1_000_000, "bytes": 2_000_000_000}
    capture = inputs.Capture(name, name.split(".")[0], Path("none"), truth, compression)
    costs = [measure.Cost(wall_s, cpu_s, None, 100 << 20)]
    return bench_run.Row(capture, programs.Program(program, [], lambda _: {}, ()), costs)


def value_of(bars: list[report.Bar], text: str) -> tuple[float, bool]:
    (bar,) = (bar for bar in bars if text in bar.text)
    return round(bar.value, 3), bar.is_met


def test_bars_compare_what_they_say_they_compare() -> None:
    bars = report.bars(
        [
            row("bulk", "wirelab packets+tcp+tcp_flows, 1 thread", 1.0, wall_s=1.0),
            row("bulk", "wirelab packets+tcp+tcp_flows, 2 threads", 1.1, wall_s=0.5),
            row("bulk", "wirelab all TCP tables, 1 thread", 2.0),
            row("bulk", "wirelab packets, 1 thread", 0.5),
            row("bulk", "wirelab packets and checksums, 1 thread", 0.9),
            row("bulk", "wirelab decoding alone, 1 thread", 0.4),
            row("bulk", "wirelab SELECT count(*) FROM packets, 1 thread", 0.48),
            row("bulk", "bare loop", 0.25),
            row("bulk", "nfstream", 12.0),
            row("bulk.gz", "wirelab packets+tcp+tcp_flows, 1 thread", 3.0, 3.0, "gzip"),
            row("bulk.gz", "wirelab packets+tcp+tcp_flows, 2 threads", 3.0, 1.5, "gzip"),
            row("bulk.gz", "gzip -dc", 1.0, 1.25, "gzip"),
            row("roce", "wirelab packets+roce, 1 thread", 1.5),
            row("roce", "wirelab all RoCE tables, 1 thread", 4.5),
        ]
    )
    assert value_of(bars, "bulk: nfstream") == (12.0, True)
    assert value_of(bars, "bulk: wirelab's CPU over the bare loop's") == (4.0, False)
    assert value_of(bars, "packets alone over the bare loop's") == (2.0, True)
    assert value_of(bars, "speed of two threads over one") == (2.0, True)
    assert value_of(bars, "count(*) FROM packets over that of decoding alone") == (1.2, False)
    assert value_of(bars, "checksums, GB/s") == (5.0, True)
    assert value_of(bars, "bulk.gz: wall time of two threads over that of gzip -dc") == (1.2, False)
    assert value_of(bars, "packets and headers: roce over bulk TCP") == (1.5, True)
    assert value_of(bars, "all tables: roce over bulk TCP") == (2.25, False)
    assert "MISSED" not in next(bar.line() for bar in bars if "checksums" in bar.text), "no bar is set for it"


def test_growth_and_memory_are_flat_or_missed() -> None:
    def part(figures: list[tuple[str, int, float, int]]) -> scaling.Part:
        points = []
        for series, size, cpu_s, peak_bytes in figures:
            one = row("small", "wirelab packets, 1 thread", cpu_s)
            one.costs = [measure.Cost(1.0, cpu_s, None, peak_bytes)]
            points.append(scaling.Point(series, size, 10, [one]))
        return scaling.Part(points)

    growth = scaling.growth_bars(part([("packets", 1, 1.0, 1), ("packets", 10, 1.3, 1), ("packets", 100, 1.1, 1)]))
    assert [(round(bar.value, 3), bar.is_met) for bar in growth] == [(1.3, False)]
    memory = scaling.memory_bars(part([("bytes", 1, 1.0, 100 << 20), ("bytes", 10, 1.0, 110 << 20)]))
    assert [(round(bar.value, 3), bar.is_met) for bar in memory] == [(1.1, True), (100.0, True), (110.0, True)]
    assert not scaling.memory_bars(part([("flows", 1_000_000, 1.0, 2 << 30)]))[0].is_met


def test_notes_stand_behind_the_bars_without_their_comments(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("<!-- how to\nwrite -->\n- bulk: because\n")
    notes = report.read_notes(tmp_path / "notes.md")
    assert notes == "- bulk: because" and report.read_notes(tmp_path / "none.md") == ""
    page = report.markdown([], "quick", [], notes=notes)
    assert page.endswith("## Why bars are missed\n\n- bulk: because\n")
    assert "## Why" not in report.markdown([], "quick", [])


@needs_peers
@pytest.mark.parametrize("room_bytes", [1 << 40, 0])
def test_large_captures_go_and_those_without_room_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, room_bytes: int
) -> None:
    small = inputs.Spec("small", "small", {"packets": 3_000, "flows": 100})
    bulk = inputs.Spec("bulk", "bulk", {"bytes": 1_000_000, "flows": 8})
    monkeypatch.setattr(scaling, "growth_specs", lambda _: [("packets", 3_000, small)])
    monkeypatch.setattr(scaling, "memory_specs", lambda _: [("bytes", 1_000_000, bulk), ("flows", 100, small)])
    monkeypatch.setattr(scaling, "KEPT_BYTES", 0)
    monkeypatch.setattr(inputs.Store, "room_bytes", lambda _: room_bytes)
    options = ["--quick", "--growth", "--memory", "--no-comparison", "--threads", "1", "--dir", str(tmp_path / "kept")]
    options += ["--wirelab", str(fake_scan(tmp_path, 0)), "--peers", str(PEERS), "--markdown", str(tmp_path / "out.md")]
    assert run.main(options) == 0
    page = (tmp_path / "out.md").read_text()
    said = capsys.readouterr()
    if room_bytes:
        assert "| bytes |" in page and "| wirelab convert, 1 thread |" in page and "left out" not in page
        assert page.count("| wirelab tcp_flows, 1 thread |") == 1
        assert page.count("MiB at 100 flows") == 2 and "MiB at 100 flows" in said.out
    else:
        assert page.count("left out, 0.2 GB are needed and 0.0 GB are free") == 3 and "| bytes |" not in page
    assert [path.name for path in (tmp_path / "kept").iterdir() if path.suffix != ".tmp"] == []


@needs_peers
def test_parts_whose_answers_differ_fail_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--quick", "--memory", "--no-comparison", "--dir", str(tmp_path / "kept"), "--peers", str(PEERS)]
    assert run.main([*options, "--wirelab", str(fake_scan(tmp_path, 1))]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "bytes 30,000,000: tcp:" in said.err
    assert not [path for path in (tmp_path / "kept").iterdir() if path.is_dir()], "datasets are removed"
