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
from harness import checks, measure, programs  # noqa: E402

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
said = json.loads(subprocess.check_output([{PEERS!r}, "bare", sys.argv[1]]))
rows = {{"packets": said["frames"], "tcp": said["tcp"] + {wrong_tcp_by}, "tcp_flows": 8, "roce": said["roce"]}}
print({text!r} or json.dumps({{"rows": {{table: rows[table] for table in sys.argv[3].split(",")}}}}))
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
