"""Runs beside other threads, progress, and Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import PING, SOON_S, TCP

import wirelab as wl

NOBODY = "203.0.113.99"


def test_other_threads_run_meanwhile(large: Path) -> None:
    steps = 0
    is_over = threading.Event()

    def count() -> None:
        nonlocal steps
        while not is_over.wait(0.005):
            steps += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        # No row is kept, so this is one single call into the compiled part.
        before = steps
        started = time.monotonic()
        assert list(wl.scan(large, "packets", columns=["frame_no"], host=NOBODY, threads=1)) == []
        took, stepped = time.monotonic() - started, steps - before
    finally:
        is_over.set()
        thread.join()
    assert took > 0.2, "too quick to tell"
    # Were the lock held, none would be counted. A loaded machine gets a wide margin.
    assert stepped > took / 0.005 / 20, f"{stepped} steps in {took:.2f} s"


def test_a_stream_read_by_another_library_holds_no_lock_either(large: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    seen: list[float] = []
    is_over = threading.Event()

    def tick() -> None:
        while not is_over.wait(0.01):
            seen.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        assert pa.table(wl.scan(large, columns=["frame_no"], host=NOBODY, threads=1)).num_rows == 0
    finally:
        is_over.set()
        thread.join()
    assert len(seen) > 5


@pytest.mark.parametrize("run", ["scan", "table"])
def test_progress_is_told_now_and_then_and_at_the_end(large: Path, run: str) -> None:
    told: list[tuple[int, int | None, float]] = []

    def progress(done: int, total: int | None) -> None:
        told.append((done, total, time.monotonic()))

    started = time.monotonic()
    if run == "scan":
        list(wl.scan(large, columns=["frame_no"], host=NOBODY, progress=progress))
    else:
        assert wl.open(large, progress=progress).pause.num_rows == 0
    took = time.monotonic() - started
    size = large.stat().st_size
    assert told[-1][:2] == (size, size)
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert {total for _, total, _ in told} == {size}
    assert 2 <= len(told) <= took / 0.1 + 2
    times = [at for _, _, at in told[:-1]]
    assert all(later - earlier >= 0.099 for earlier, later in zip(times, times[1:], strict=False))


def test_a_short_run_tells_of_its_end() -> None:
    told: list[tuple[int, int | None]] = []
    list(wl.scan(PING, progress=lambda *both: told.append(both)))
    assert told == [(PING.stat().st_size, PING.stat().st_size)]
    told.clear()
    list(wl.scan(io.BytesIO(PING.read_bytes()), progress=lambda *both: told.append(both)))
    assert told == [(PING.stat().st_size, None)]


def test_an_exception_in_progress_ends_the_run(large: Path) -> None:
    class Enough(Exception):
        pass

    def progress(done: int, total: int | None) -> None:
        raise Enough(done)

    with pytest.raises(Enough) as caught:
        list(wl.scan(large, host=NOBODY, progress=progress))
    assert caught.value.args[0] < large.stat().st_size
    with pytest.raises(Enough):
        wl.open(large, progress=progress).pause.to_arrow()
    cap = wl.open(TCP, progress=progress)
    with pytest.raises(Enough):
        cap.tcp.to_arrow()


def interrupted(code: str, wait_s: float = 0.5, **options: object) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Runs code that prints a line when it begins; sends it a real Ctrl-C; how long it took to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )
    try:
        assert process.stdout.readline() == "begun\n", process.stderr.read()
        time.sleep(wait_s)
        assert process.poll() is None, "it was over before the signal"
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        took = time.monotonic() - sent
        out, err = process.stdout.read(), process.stderr.read()
    finally:
        process.kill()
    return took, subprocess.CompletedProcess(process.args, process.returncode, out, err)


CATCH = """
import os, signal, sys, wirelab as wl
signal.signal(signal.SIGINT, signal.default_int_handler)
print("begun", flush=True)
try:
    # Another library raises its own exception for a stream that ends in Ctrl-C, which is due right after it.
    try: {call}
    except Exception: sum(()); raise
except KeyboardInterrupt: print("interrupted")
else: print("went through")
"""

posix = pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")


@posix
@pytest.mark.parametrize(
    "call",
    [
        "list(wl.scan([PATH] * 3, 'tcp_flows', columns=['flow_id'], host=NOBODY, threads=1))",
        "list(wl.scan([PATH] * 3, columns=['frame_no'], host=NOBODY, threads=2))",
        "wl.open(*[PATH] * 3, threads=1).pause.num_rows",
        "wl.open(*[PATH] * 3).summary",
        "__import__('pyarrow').table(wl.scan([PATH] * 3, columns=['frame_no'], host=NOBODY, threads=1))",
        "__import__('polars').DataFrame(wl.scan([PATH] * 3, columns=['frame_no'], host=NOBODY, threads=1))",
        "wl.scan([PATH] * 3, threads=1).write(open('/dev/null', 'wb'), 'csv')",
        "wl.open(PATH, threads=2, memory_budget=1_000_000).packets.num_rows",
        "wl.match(PATH, PATH)",
        "wl.open(*[PATH] * 3).write(os.path.join(os.environ['TMPDIR'], 'out.pcapng'))",
    ],
)
def test_ctrl_c_ends_a_long_run_soon(large: Path, tmp_path: Path, call: str) -> None:
    code = CATCH.format(call=call.replace("PATH", repr(str(large))).replace("NOBODY", repr(NOBODY)))
    took, done = interrupted(code, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.stdout == "interrupted\n", done
    assert took < SOON_S
    assert list(tmp_path.iterdir()) == []


@posix
@pytest.mark.parametrize("call", ["wl.open('-')", "list(wl.scan('-'))"])
@pytest.mark.parametrize("sent", [b"", PING.read_bytes()[:300]])
def test_ctrl_c_ends_the_wait_for_standard_input(call: str, sent: bytes) -> None:
    read, write = os.pipe()
    try:
        os.write(write, sent)
        took, done = interrupted(CATCH.format(call=call), stdin=read)
    finally:
        os.close(read)
        os.close(write)
    assert done.stdout == "interrupted\n", done
    assert took < SOON_S


@posix
def test_ctrl_c_ends_the_wait_for_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    took, done = interrupted(CATCH.format(call=f"wl.open({str(pipe)!r})"))
    assert done.stdout == "interrupted\n", done
    assert took < SOON_S


@posix
@pytest.mark.parametrize("packing", ["plain", "gzip"])
@pytest.mark.parametrize(
    "words",
    [
        ["info", "--threads", "1"],
        ["sql", "select count(*), max(ttl) from packets"],
        ["match"],
        ["table", "packets", "--format", "csv"],
        ["convert", "-o", "OUT"],
    ],
)
def test_ctrl_c_ends_the_command_line_without_a_traceback(
    large: Path, large_gz: Path, tmp_path: Path, words: list[str], packing: str
) -> None:
    path = str(large if packing == "plain" else large_gz)
    files = {"info": [path] * 3, "match": [path, path]}.get(words[0], [path])
    words = [word.replace("OUT", str(tmp_path / "out")) for word in words]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    code = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from wirelab.cli import main
print("begun", flush=True)
sys.stdout = open("/dev/null", "w")
sys.exit(main({[*words, *files]!r}))
"""
    took, done = interrupted(code, env={**os.environ, "TMPDIR": str(temporary), "LC_ALL": "C.UTF-8"})
    assert (done.returncode, done.stdout) == (130, "")
    if words[0] == "convert":
        assert done.stderr.count("\n") == 1 and "the same command does the rest" in done.stderr
        assert list((tmp_path / "out" / "_wirelab" / "part").iterdir()) == []
        assert list((tmp_path / "out").rglob("*.parquet")) == []
    else:
        assert done.stderr == ""
    assert took < SOON_S
    assert list(temporary.iterdir()) == []


@posix
def test_ctrl_c_while_the_command_is_loaded_leaves_no_traceback() -> None:
    for wait_s in (0.02, 0.05, 0.1, 0.2, 0.3):
        process = subprocess.Popen([sys.executable, "-m", "wirelab", "tables"], stdout=-1, stderr=-1)
        # Python itself must be up: before, nothing of wirelab's can do anything about it.
        time.sleep(wait_s)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        # Nor can it before its own first lines.
        assert b"wirelab" not in err or b"import _start" in err, err


def test_loading_the_library_leaves_ctrl_c_as_it_was() -> None:
    code = "import signal; import wirelab; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    for arguments in (["-c", code], ["-m", "timeit", "-n1", "-r1", code]):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("True"), done
