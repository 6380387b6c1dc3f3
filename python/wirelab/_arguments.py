"""What callers hand in, checked and brought into the forms that the compiled part takes."""

from __future__ import annotations

import io
import ipaddress
import operator
import os
import stat
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import UsageError
from ._times import to_ns
from ._words import LANGUAGES

if TYPE_CHECKING:
    from ._core import _Endpoint, _Filter, _Input, _Options

Progress = Callable[[int, "int | None"], object]


def inputs(given: Iterable[Any]) -> list[_Input]:
    """Paths, bytes and file-like objects; lists of them are taken apart."""
    flat: list[_Input] = []
    for one in given:
        if isinstance(one, (list, tuple, set, frozenset)) or hasattr(one, "__next__") and not hasattr(one, "read"):
            flat.extend(inputs(one))
        else:
            flat.append(_input(one))
    return flat


def _input(given: Any) -> _Input:
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    if isinstance(given, (str, os.PathLike)):
        path = os.fsdecode(given)
        if path == "-":
            return _standard_input()
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            return path  # The reading says what is wrong with it.
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return path
        # Pipes and devices are read through Python, which wakes from a wait when Ctrl-C is pressed.
        return (_Raw(path), path)
    if hasattr(given, "read"):
        name = getattr(given, "name", None)
        return (given, name if isinstance(name, str) else f"<{type(given).__name__}>")
    raise UsageError(f"a capture is a path, bytes or a file-like object, not {type(given).__name__}")


class _Raw:
    """A pipe or device, opened at the first read."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: Any = None

    def read(self, size: int) -> bytes | None:
        if self._file is None:
            self._file = io.open(self._path, "rb", buffering=0)  # noqa: UP020, SIM115
        data: bytes | None = self._file.read(size)
        return data


class _StandardInput:
    def __init__(self, file: Any) -> None:
        # read1 gives what is there and does not wait for more.
        self.read: Callable[[int], bytes] = getattr(file, "read1", file.read)


def _standard_input() -> _Input:
    file = getattr(sys.stdin, "buffer", None)
    if file is None:
        raise UsageError("there is no standard input to read")
    return (_StandardInput(file), "-")


def options(
    threads: int | None,
    link_speed_bps: int | None,
    vxlan_ports: int | Iterable[int] | None,
    roce_ports: int | Iterable[int] | None,
    checksums: str,
    pause_storm_ns: int | None = None,
    logs: Any = None,
    roce_endpoints: Iterable[Any] | None = None,
    memory_budget: int | None = None,
) -> _Options:
    if checksums not in ("auto", "on", "off"):
        raise UsageError(f'checksums must be "auto", "on" or "off", not {checksums!r}')
    return {
        "threads": None if threads is None else whole(threads, "threads", 1, 4096),
        "link_speed_bps": None if link_speed_bps is None else whole(link_speed_bps, "link_speed_bps", 1, 2**63 - 1),
        "vxlan_ports": None if vxlan_ports is None else ports(vxlan_ports, "vxlan_ports"),
        "roce_ports": None if roce_ports is None else ports(roce_ports, "roce_ports"),
        "checksums": checksums,
        "pause_storm_ns": None if pause_storm_ns is None else whole(pause_storm_ns, "pause_storm_ns", 1, 2**63 - 1),
        "roce_endpoints": [*_of_logs(logs), *_endpoints(roce_endpoints)],
        "memory_budget_bytes": None if memory_budget is None else whole(memory_budget, "memory_budget", 1, 2**63 - 1),
    }


#: Most bytes of a log that are read.
_LOG_BYTES = 64 << 20


def _of_logs(given: Any) -> list[_Endpoint]:
    """The queue pairs that logs name: paths, bytes or file-like objects, one or several."""
    if given is None:
        return []
    if isinstance(given, (str, bytes, bytearray, memoryview, os.PathLike)) or hasattr(given, "read"):
        given = [given]
    if not isinstance(given, Iterable):
        raise UsageError(f"logs must be paths, bytes or file-like objects, not {given!r}")
    return [end for one in given for end in _of_log(one)]


def _of_log(given: Any) -> list[_Endpoint]:
    if isinstance(given, (bytes, bytearray, memoryview)):
        name, log = "log", bytes(given)
    elif isinstance(given, (str, os.PathLike)):
        name = os.fsdecode(given)
        with io.open(name, "rb") as file:  # noqa: UP020
            log = file.read(_LOG_BYTES)
    elif hasattr(given, "read"):
        name = str(getattr(given, "name", "log"))
        log = given.read(_LOG_BYTES)
        log = log.encode("utf-8", "replace") if isinstance(log, str) else bytes(log)
    else:
        raise UsageError(f"logs must be paths, bytes or file-like objects, not {type(given).__name__}")
    return _core.log_endpoints(name, log[:_LOG_BYTES])


def _endpoints(given: Iterable[Any] | None) -> list[_Endpoint]:
    """Queue pairs by hand: address, queue pair number, first packet sequence number, and the peer's number if known."""
    ends: list[_Endpoint] = []
    if given is not None and (not isinstance(given, Iterable) or isinstance(given, (str, bytes))):
        raise UsageError(f"roce_endpoints must be a list of queue pairs, each as (address, qpn, psn), not {given!r}")
    for one in () if given is None else given:
        if not isinstance(one, (list, tuple)) or not 3 <= len(one) <= 4:
            raise UsageError(
                f"roce_endpoints must hold (address, qpn, psn) or (address, qpn, psn, peer_qpn), not {one!r}"
            )
        address, *numbers = one
        try:
            ip = _address(address)
        except (TypeError, ValueError) as error:
            raise UsageError(f"roce_endpoints: {error}") from None
        qpn, psn, *rest = (whole(number, "roce_endpoints", 0, 2**24 - 1) for number in numbers)
        ends.append((ip, qpn, psn, None, None, rest[0] if rest else None))
    return ends


def row_filter(time_from: Any, time_to: Any, host: Any, port: Any) -> _Filter:
    return {
        "time_from_ns": to_ns(time_from, "time_from"),
        "time_to_ns": to_ns(time_to, "time_to"),
        "hosts": [] if host is None else hosts(host),
        "ports": [] if port is None else ports(port, "port"),
    }


def columns(given: Iterable[str] | None) -> list[str] | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise UsageError(f"columns must be a list of names, not the text {given!r}")
    if not isinstance(given, Iterable):
        raise UsageError(f"columns must be a list of names, not {given!r}")
    names = list(given)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise UsageError(f"a column's name is text, not {wrong[0]!r}")
    return names


def progress(given: Progress | None) -> Progress | None:
    if given is not None and not callable(given):
        raise UsageError("progress must be callable: progress(done_bytes, total_bytes)")
    return given


def ports(given: Any, name: str) -> list[int]:
    many = [given] if not isinstance(given, Iterable) or isinstance(given, (str, bytes)) else list(given)
    return [whole(port, name, 0, 65_535) for port in many]


def hosts(given: Any) -> list[str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        given = [given]
    try:
        return [_address(one) for one in given]
    except (TypeError, ValueError) as error:
        raise UsageError(f"host must be an IP address or several: {error}") from None


def _address(given: Any) -> str:
    if not isinstance(given, (str, ipaddress.IPv4Address, ipaddress.IPv6Address)):
        # ipaddress takes 5 for 0.0.0.5.
        raise TypeError(f"{given!r} is no address; one is a text, such as '10.0.0.1'")
    return str(ipaddress.ip_address(given.strip() if isinstance(given, str) else given))


def language(given: str) -> str:
    """``en`` or ``zh``; a locale such as ``zh_CN`` says it too."""
    lang = given.lower().replace("_", "-").split("-")[0] if isinstance(given, str) else None
    if lang not in LANGUAGES:
        raise UsageError(f"lang must be one of {', '.join(LANGUAGES)}, not {given!r}")
    return lang


def whole(given: Any, name: str, least: int, most: int) -> int:
    # True is 1 to Python; who writes memory_budget=True means something else.
    wrong = UsageError(f"{name} must be a whole number, not {given!r}")
    if isinstance(given, bool):
        raise wrong
    try:
        number = operator.index(given)
    except TypeError:
        raise wrong from None
    if not least <= number <= most:
        raise UsageError(f"{name} must be from {least} to {most}, not {number}")
    return number
