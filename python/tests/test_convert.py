"""Datasets: what the dataframe libraries see, what a caller is told, and what an interruption leaves."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import PING, ROCE, TCP, VXLAN, Run, repeated

import wirelab as wl

FILES = [PING, TCP, ROCE, VXLAN]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables of the samples, and of one whose name reads as a number."""
    folder = tmp_path_factory.mktemp("dataset")
    numbered = folder / "20260131"
    shutil.copy(PING, numbered)
    out = folder / "out"
    done = wl.convert([*FILES, numbered], out)
    assert [one.status for one in done.captures] == ["written"] * 5
    return out


def rows_by_capture(table: str) -> dict[str, int]:
    counts = {path.name: getattr(wl.open(path), table).num_rows for path in FILES}
    return {**counts, "capture-20260131": counts[PING.name]}


def content(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("table", ["packets", "tcp_flows", "roce", "capture_quality"])
def test_duckdb_polars_and_pandas_read_the_partitions(dataset: Path, table: str) -> None:
    expected = {name: count for name, count in rows_by_capture(table).items() if count}
    assert expected
    folder = dataset / table

    duckdb = pytest.importorskip("duckdb")
    query = f"SELECT capture, count(*) FROM read_parquet('{folder}/*/*.parquet', hive_partitioning = true) GROUP BY 1"
    assert dict(duckdb.sql(query).fetchall()) == expected

    polars = pytest.importorskip("polars")
    for place, options in ((folder, {}), (f"{folder}/*/*.parquet", {"hive_partitioning": True})):
        frame = polars.scan_parquet(place, **options).group_by("capture").len().collect()
        assert dict(frame.iter_rows()) == expected

    pandas = pytest.importorskip("pandas")
    assert pandas.read_parquet(folder)["capture"].value_counts().loc[lambda count: count > 0].to_dict() == expected


def test_a_partition_alone_is_read_and_the_others_are_not(dataset: Path) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    rows = wl.open(TCP).tcp.num_rows
    frame = polars.scan_parquet(dataset / "tcp").filter(polars.col("capture") == TCP.name)
    assert frame.select(polars.len()).collect().item() == rows
    query = f"SELECT count(*) FROM read_parquet('{dataset}/tcp/*/*.parquet') WHERE capture = '{TCP.name}'"
    assert duckdb.sql(query).fetchall() == [(rows,)]


def test_values_are_those_of_the_table(dataset: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    for path, table in ((TCP, "tcp_flows"), (TCP, "tcp"), (ROCE, "roce_messages"), (PING, "probes")):
        read = pyarrow.read_table(dataset / table / f"capture={path.name}" / "part-0.parquet", partitioning=None)
        ours = getattr(wl.open(path), table).to_arrow()
        assert read.num_rows == ours.num_rows > 0 and read.to_pylist() == ours.to_pylist()
        assert (
            read.schema.field(table == "probes" and "rtt_ns" or "time").type
            == ours.schema.field(table == "probes" and "rtt_ns" or "time").type
        )
    times = duckdb_times(dataset)
    assert times == wl.open(PING).packets.to_arrow()["time"].cast("int64").to_pylist()


def duckdb_times(dataset: Path) -> list[int]:
    duckdb = pytest.importorskip("duckdb")
    place = dataset / "packets" / f"capture={PING.name}" / "part-0.parquet"
    return [row[0] for row in duckdb.sql(f"SELECT epoch_ns(time) FROM '{place}' ORDER BY frame_no").fetchall()]


def test_arrow_files_are_a_dataset_too(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow.dataset")
    wl.convert([PING, TCP], tmp_path / "out", ["packets"], format="arrow")
    rows = {path.name: wl.open(path).packets.num_rows for path in (PING, TCP)}
    found = pyarrow.dataset(tmp_path / "out" / "packets", format="ipc", partitioning="hive").to_table()
    counts = found.group_by("capture").aggregate([([], "count_all")]).to_pylist()
    assert {one["capture"]: one["count_all"] for one in counts} == rows
    frame = polars.scan_ipc(tmp_path / "out" / "packets" / "*" / "*.arrow", hive_partitioning=True)
    assert dict(frame.group_by("capture").len().collect().iter_rows()) == rows


def test_a_conversion_says_what_became_of_each_capture(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = wl.convert(TCP, out, ["tcp_flows", "probes"])
    (one,) = done.captures
    flows = wl.open(TCP).tcp_flows.num_rows
    assert (one.name, one.files, one.status, one.error) == (TCP.name, [str(TCP)], "written", None)
    assert one.rows == {"tcp_flows": flows, "probes": 0} and one.warnings() == []
    assert done.path == str(out) and "1 written, 0 unchanged, 0 failed" in repr(done)
    done = wl.convert(iter([TCP, PING]), str(out), ["probes"], link_speed_bps=None)
    assert [(one.name, one.status) for one in done.captures] == [(TCP.name, "unchanged"), (PING.name, "written")]
    assert (len(done.written), len(done.unchanged), done.failed, done.outdated_count) == (1, 1, [], 0)
    assert wl.convert(PING, out, ["probes"], link_speed_bps=10**9).outdated_count == 1


def test_a_bad_file_raises_once_the_others_are_done(tmp_path: Path) -> None:
    bad, cut = tmp_path / "bad.pcap", tmp_path / "cut.pcap"
    bad.write_text("no capture")
    cut.write_bytes(PING.read_bytes()[:-5])
    out = tmp_path / "out"
    with pytest.raises(wl.ConversionError, match="2 of 4 captures failed.*bad.pcap.*and 1 more") as raised:
        wl.convert([bad, tmp_path / "gone.pcap", PING, cut], out, ["probes"])
    done = raised.value.conversion
    assert [one.status for one in done.captures] == ["failed", "failed", "written", "written"]
    assert isinstance(done.failed[0].error, wl.NotACaptureError) and isinstance(done.failed[1].error, FileNotFoundError)
    assert raised.value.__cause__ is done.failed[0].error
    assert "cut.pcap" in done.captures[3].warnings()[0] and "cut.pcap" in done.captures[3].warnings("zh")[0]
    again = wl.convert([bad, PING], out, ["probes"], errors="report")
    assert [one.status for one in again.captures] == ["failed", "unchanged"]


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments, why in (
        ({"errors": "ignore"}, "errors must be"),
        ({"group_by": "host"}, "group_by must be"),
        ({"group_by": 0}, "group_by must be from 1"),
        ({"group_by": True}, "group_by must be a whole number"),
        ({"jobs": 0}, "jobs must be from 1"),
        ({"jobs": True}, "jobs must be a whole number"),
        ({"roce_endpoints": 5}, "roce_endpoints must be a list"),
        ({"format": "csv"}, "the formats are parquet and arrow"),
        ({"tables": "tcp"}, "list of names"),
        ({"tables": ["tpc"]}, "did you mean tcp"),
        ({"tables": []}, "no table"),
    ):
        with pytest.raises(wl.UsageError, match=why):
            wl.convert(PING, out, **arguments)  # type: ignore[arg-type]
    for paths, why in (([], "no capture"), ("-", "standard input"), (b"bytes", "paths of files"), ([open], "paths")):
        with pytest.raises(wl.UsageError, match=why):
            wl.convert(paths, out)  # type: ignore[arg-type]
    assert not out.exists()
    (out / "mine").mkdir(parents=True)
    with pytest.raises(wl.UsageError, match="neither empty nor a dataset"):
        wl.convert(PING, out)


def test_progress_ends_with_the_whole_and_may_stop_the_run(tmp_path: Path) -> None:
    long = repeated(PING, tmp_path / "long.pcap", 20_000_000)
    told: list[tuple[int, int | None]] = []
    wl.convert([long, PING], tmp_path / "out", ["packets"], progress=lambda done, total: told.append((done, total)))
    total = long.stat().st_size + PING.stat().st_size
    assert told[-1] == (total, total) and [done for done, _ in told] == sorted(done for done, _ in told)
    assert {of for _, of in told} == {total} and len(told) > 1

    def stop(done: int, total: int | None) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        wl.convert([long], tmp_path / "stopped", progress=stop)
    assert list((tmp_path / "stopped" / "_wirelab" / "part").iterdir()) == []


def test_the_command_line_converts_and_tells(wirelab: Run, tmp_path: Path) -> None:
    out, bad = tmp_path / "out", tmp_path / "bad.pcap"
    bad.write_text("no capture")
    done = wirelab("convert", PING, bad, TCP, "-o", out, "--tables", "probes, tcp_flows", "--jobs", "2")
    assert done.returncode == 1
    assert re.fullmatch(rf"{out}: 2 captures written \([\d,]+ rows\), 0 unchanged, 1 failed\n", done.stdout.decode())
    assert done.stderr.decode().startswith(f"wirelab: {bad} is no capture")
    again = wirelab("convert", PING, TCP, "-o", out, "--tables", "probes", "--lang", "zh")
    assert (again.returncode, again.stderr) == (0, b"") and "2 个无变化" in again.stdout.decode()
    renewed = wirelab("convert", PING, "-o", out, "--tables", "probes", "--link-speed", "100G")
    assert "1 capture of the dataset that was not named" in renewed.stdout.decode()
    sized = wirelab("convert", PING, TCP, "-o", tmp_path / "sized", "--tables", "packets", "--group-by", "1GiB")
    assert sized.returncode == 0 and "1 capture written" in sized.stdout.decode()
    for arguments, why in (
        (["--group-by", "host"], "--group-by must be file, ring, all or a size"),
        (["--jobs", "none"], "--jobs must be a whole number"),
        (["--tables", ","], "--tables names no table"),
        (["--format", "csv"], "there is no --format csv"),
    ):
        refused = wirelab("convert", PING, "-o", tmp_path / "refused", *arguments)
        assert (refused.returncode, refused.stdout) == (2, b"") and why in refused.stderr.decode()
    other = wirelab("convert", PING, "-o", out, "--format", "arrow")
    assert other.returncode == 2 and "its files have the format parquet, not arrow" in other.stderr.decode()
    assert not (tmp_path / "refused").exists()


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Enough work to be interrupted in the middle."""
    folder = tmp_path_factory.mktemp("captures")
    small = [shutil.copy(PING, folder / f"small{at}.pcap") for at in range(4)]
    large = [repeated(PING, folder / f"large{at}.pcap", 10_000_000) for at in range(3)]
    return [Path(path) for path in [*small, *large]]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_keeps_what_is_done_and_the_next_one_does_the_rest(
    captures: list[Path], tmp_path: Path, signal_number: signal.Signals
) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "wirelab", "convert", *map(str, captures), "-o", str(out)]
    command += ["--tables", "packets,probes", "--lang", "en"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    markers = out / "_wirelab" / "captures"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not markers.is_dir() or len(list(markers.iterdir())) < 4):
        time.sleep(0.01)
    running.send_signal(signal_number)
    _, errors = running.communicate(timeout=60)
    # One that was being put in its place when the run was killed says so.
    whole = [path for path in markers.iterdir() if "unfinished" not in json.loads(path.read_bytes())]
    done = {path.name: path.stat().st_mtime_ns for path in whole}
    # Of the four that have a marker, those may be unfinished that were worked on at the same time.
    assert max(1, 4 - (os.cpu_count() or 1)) <= len(done) < len(captures), "it was interrupted in the middle"
    if signal_number == signal.SIGINT:
        assert running.returncode == 130 and b"the same command does the rest" in errors and b"Traceback" not in errors
        assert list((out / "_wirelab" / "part").iterdir()) == []
    # What stands in its place is whole, and nothing else does.
    for path in out.rglob("*.parquet"):
        assert path.read_bytes()[-4:] == b"PAR1"
    again = wl.convert(captures, out, ["packets", "probes"])
    assert len(again.unchanged) == len(done)
    assert {name: (markers / name).stat().st_mtime_ns for name in done} == done
    assert list((out / "_wirelab" / "part").iterdir()) == []
    fresh = tmp_path / "fresh"
    wl.convert(captures, fresh, ["packets", "probes"], threads=1)
    assert content(out) == content(fresh)


def test_a_full_disk_is_told_and_leaves_nothing_half_written(captures: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "wirelab", "convert", str(captures[0]), str(captures[-1]), "-o", str(out)]

    def limit() -> None:
        # Writing beyond it fails as on a full disk; Python ignores the signal.
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    done = subprocess.run(command, capture_output=True, preexec_fn=limit, timeout=120)
    assert done.returncode == 1 and b"Traceback" not in done.stderr
    assert b"File too large" in done.stderr and b"capture=large2.pcap" in done.stderr, done.stderr
    assert list((out / "_wirelab" / "part").iterdir()) == []
    assert list(out.rglob("capture=large2.pcap")) == []


def test_a_person_sees_how_far_it_is_how_fast_and_how_long_it_takes(captures: list[Path], tmp_path: Path) -> None:
    control, terminal = pty.openpty()
    command = [sys.executable, "-m", "wirelab", "convert", *map(str, captures), "-o", str(tmp_path / "out")]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env=environment)
    os.close(terminal)
    seen = b""
    while True:
        try:
            data = os.read(control, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    output, _ = running.communicate(timeout=60)
    os.close(control)
    text = seen.decode()
    assert running.returncode == 0 and b"7 captures written" in output
    assert re.search(r"converting \[#+\.+\] +\d+ %  [\d.]+ MB / 3\d\.\d MB  [\d.]+ MB/s  [\d.]+ s left", text), text
    assert text.endswith("\r\x1b[K"), "the line is gone at the end"


def test_the_marker_says_what_was_read_and_how(dataset: Path) -> None:
    marker = json.loads((dataset / "_wirelab" / "captures" / f"{TCP.name}.json").read_text())
    stat = TCP.stat()
    assert marker["inputs"] == [{"path": str(TCP.resolve()), "bytes": stat.st_size, "modified_ns": stat.st_mtime_ns}]
    assert marker["made_with"]["wirelab"] == wl.__version__ and marker["made_with"]["checksums"] == "auto"
    place = dataset / "tcp" / f"capture={TCP.name}" / "part-0.parquet"
    assert marker["tables"]["tcp"] == {"rows": wl.open(TCP).tcp.num_rows, "bytes": place.stat().st_size}
