"""What a program costs: wall time, CPU time, peak memory. Linux gives all; elsewhere what cannot be known is None."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Memory is looked at this often once a program has run for a while; short ones are looked at more often.
SAMPLE_S = 0.02
FIRST_SAMPLE_S = 0.001
# What ru_maxrss counts in.
RSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Cost:
    """One run. CPU is user and system time of the program and the children it waited for."""

    wall_s: float
    cpu_s: float | None
    peak_rss_bytes: int | None
    peak_anon_bytes: int | None


@dataclass(frozen=True)
class Run:
    cost: Cost
    exit_code: int
    is_over_time: bool


def run(
    command: Sequence[str],
    stdout: Path,
    stderr: Path,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> Run:
    """Runs a program to its end, output into files so that reading it costs the program nothing."""
    with stdout.open("wb") as out, stderr.open("wb") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
        memory = _MemorySampler(process.pid)
        memory.start()
        limit = _TimeLimit(process.pid, timeout_s)
        limit.start()
        try:
            exit_code, cpu_s, reported_rss = _wait(process)
        finally:
            wall_s = time.perf_counter() - start
            is_over_time = limit.stop()
            memory.stop()
    peak_rss = _peak_rss(reported_rss, memory.peak_rss_bytes)
    return Run(Cost(wall_s, cpu_s, peak_rss, memory.peak_anon_bytes), exit_code, is_over_time)


def median(costs: Sequence[Cost]) -> Cost:
    """Each figure's median; for memory the maximum, which is what a user has to have."""
    cpu = [cost.cpu_s for cost in costs if cost.cpu_s is not None]
    rss = [cost.peak_rss_bytes for cost in costs if cost.peak_rss_bytes is not None]
    anon = [cost.peak_anon_bytes for cost in costs if cost.peak_anon_bytes is not None]
    return Cost(
        wall_s=statistics.median(cost.wall_s for cost in costs),
        cpu_s=statistics.median(cpu) if cpu else None,
        peak_rss_bytes=max(rss, default=None),
        peak_anon_bytes=max(anon, default=None),
    )


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, float | None, int | None]:
    if not hasattr(os, "wait4"):
        return process.wait(), None, None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * RSS_UNIT_BYTES


def _peak_rss(reported_bytes: int | None, sampled_bytes: int | None) -> int | None:
    """The system's figure, unless it is this process's own: a child begins with its parent's peak on Linux."""
    if reported_bytes is None or sampled_bytes is None:
        return reported_bytes
    import resource

    own_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT_BYTES
    return reported_bytes if reported_bytes > own_bytes else sampled_bytes


class _MemorySampler(threading.Thread):
    """Looks at a process and its children in Linux's /proc.

    `peak_anon_bytes` is the highest sum of their RssAnon, in which a mapped capture file does not count.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak_anon_bytes: int | None = None
        self.peak_rss_bytes: int | None = None
        self._pid = pid
        self._stopped = threading.Event()

    def run(self) -> None:
        start = time.perf_counter()
        while True:
            now = _memory_of_tree(self._pid)
            if now is None:
                return
            self.peak_anon_bytes = max(now[0], self.peak_anon_bytes or 0)
            self.peak_rss_bytes = max(now[1], self.peak_rss_bytes or 0)
            elapsed_s = time.perf_counter() - start
            if self._stopped.wait(min(SAMPLE_S, max(FIRST_SAMPLE_S, elapsed_s / 20))):
                return

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def _memory_of_tree(pid: int) -> tuple[int, int] | None:
    """RssAnon of a process and its descendants, and the highest VmHWM of any, in bytes."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    # A process that has ended but was not waited for has no such lines.
    if "RssAnon" not in fields or "VmHWM" not in fields:
        return None
    anon, rss = (int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "VmHWM"))
    for child in children:
        below = _memory_of_tree(int(child)) or (0, 0)
        anon, rss = anon + below[0], max(rss, below[1])
    return anon, rss


class _TimeLimit:
    """Ends a program that takes too long."""

    def __init__(self, pid: int, limit_s: float | None) -> None:
        self._lock = threading.Lock()
        self._pid: int | None = pid
        self._has_struck = False
        self._timer = threading.Timer(limit_s, self._strike) if limit_s is not None else None

    def start(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._pid = None
            return self._has_struck

    def _strike(self) -> None:
        with self._lock:
            # After the program was waited for, its number may be another's.
            if self._pid is None:
                return
            self._has_struck = True
            with contextlib.suppress(OSError):
                os.kill(self._pid, 9)
