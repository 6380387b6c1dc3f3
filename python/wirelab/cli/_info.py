"""``wirelab info``: findings first, then what the capture is."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _arguments, _card, _core, _format, _happened, _text
from .._errors import NotACaptureError
from .._format import bits_per_s, count, duration, printable, rate, share, size
from .._times import to_text
from .._words import default_lang, say
from . import _reading

_SHOWN = 12
_SPARKS = "▁▂▃▄▅▆▇█"
_PAINT = {"error": "31;1", "warning": "33;1", "info": "36;1", "head": "1", "dim": "2", "good": "32", "bar": "34"}


def run(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    try:
        with _reading.Progress(given.files, lang) as progress:
            seen = _core.overview(
                _arguments.inputs(given.files), _arguments.options(**_reading.options(given)), progress.callback
            )
    except NotACaptureError:
        # Output of iperf3 and its like has tables too.
        logs = [(file, _core.log(file) if os.path.isfile(file) else None) for file in given.files]
        if any(log is None for _, log in logs):
            raise
        _show_logs([(file, log) for file, log in logs if log is not None], given.json, lang)
        return
    if given.json:
        print(json.dumps(for_programs(seen), ensure_ascii=False, indent=2))
    else:
        print(_Page(seen, lang, sys.stdout.isatty()).text(), end="")


def for_programs(seen: Mapping[str, Any]) -> dict[str, Any]:
    """The overview with times also as text: JSON readers that know no 64-bit integers round them."""
    first, last = seen["first_time_ns"], seen["last_time_ns"]
    return {
        "schema": "wirelab-info/1",
        **seen,
        "first_time": None if first is None else to_text(first),
        "last_time": None if last is None else to_text(last),
        "duration_ns": None if first is None or last is None else last - first,
    }


def _show_logs(logs: Sequence[tuple[str, _core.Log]], is_json: bool, lang: str) -> None:
    """What logs hold: their tables, and what is to be said of them."""
    if is_json:
        every = [
            {
                "file": file,
                "tools": log.kinds,
                "tables": dict(log.tables),
                "findings": [{"severity": s, "message_en": en, "message_zh": zh} for s, en, zh in log.findings],
            }
            for file, log in logs
        ]
        print(json.dumps(every, ensure_ascii=False, indent=2))
        return
    for at, (file, log) in enumerate(logs):
        if at:
            print()
        print(f"{printable(os.path.basename(file))}  {say(lang, 'log_of', tools=', '.join(log.kinds))}\n")
        for severity, en, zh in log.findings:
            print(f"  {say(lang, 'severity_' + severity)}  {printable(zh if lang == 'zh' else en)}")
        rows = [[name, count(number)] for name, number in log.tables]
        head = [say(lang, "log_table"), say(lang, "log_rows")]
        print("\n".join("  " + line for line in _text.columns([head, *rows], [False, True])))
        first = next((name for name, number in log.tables if number), log.tables[0][0])
        print("\n" + say(lang, "log_query", table=first, file=printable(file)))


#: Least payload for which a goodput is shown.
_RATE_BYTES = 10_000


class _Page:
    """The parts of the page, each a list of lines; a part without content is left out."""

    def __init__(self, seen: Mapping[str, Any], lang: str, is_screen: bool) -> None:
        self.seen = seen
        self.lang = lang
        self.is_painted = is_screen and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self.width = min(110, max(60, shutil.get_terminal_size((100, 24)).columns))

    def text(self) -> str:
        parts = [
            self.head() + self.findings(),
            self.figures(),
            self.protocols(),
            self.connections(),
            self.tcp_happenings(),
            self.too_big(),
            self.queue_pairs(),
            self.events(),
            self.roce(),
            self.pauses(),
            self.tunnels(),
            self.probes(),
            self.dns(),
            self.udp_flows(),
            self.interfaces(),
        ]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def say(self, key: str, **values: object) -> str:
        return say(self.lang, key, **values)

    def paint(self, text: str, how: str) -> str:
        return f"\x1b[{_PAINT[how]}m{text}\x1b[0m" if self.is_painted else text

    def head(self) -> list[str]:
        name, kind = _card.names(self.seen, self.lang), _card.kind_of_files(self.seen)
        return [f"{self.paint(name, 'head')}  {self.paint(kind, 'dim')}", ""]

    def figures(self) -> list[str]:
        seen = self.seen
        first, last = seen["first_time_ns"], seen["last_time_ns"]
        kept = seen["captured_bytes"]
        on_wire = {"frames": count(seen["frames"]), "bytes": size(seen["original_bytes"])}
        if kept < seen["original_bytes"]:
            pairs = [("frames", self.say("frames_kept", **on_wire, kept=size(kept)))]
        else:
            pairs = [("frames", self.say("frames_value", **on_wire))]
        if first is None or last is None:
            pairs.append(("time", self.say("no_time")))
        else:
            start, end = _format.time_span(first, last)
            pairs.append(("time", self.say("time_value", first=start, last=end)))
            mean = bits_per_s(seen["original_bytes"], last - first)
            length = duration(last - first)
            text = length if mean is None else self.say("duration_value", duration=length, rate=rate(mean))
            pairs.append(("duration", text))
            pairs += self.over_time()
        names = [(self.say(key), text) for key, text in pairs]
        room = max(_text.width(name) for name, _ in names)
        lines = (f"  {self.paint(_text.padded(name, room), 'dim')}  {text}" for name, text in names)
        return [self.title(self.say("capture")), *lines]

    def over_time(self) -> list[tuple[str, str]]:
        bins, bin_ns = self.seen["timeline"]["bytes"], self.seen["timeline"]["bin_ns"]
        if len(bins) < 8:
            return []
        while len(bins) > 60:
            bins = [sum(bins[at : at + 2]) for at in range(0, len(bins), 2)]
            bin_ns *= 2
        most = max(bins)
        sparks = "".join(_SPARKS[min(7, 8 * value // most)] if value else " " for value in bins)
        peak = self.say("over_time_value", rate=rate(bits_per_s(most, bin_ns)), bin=duration(bin_ns))
        return [("over_time", f"{self.paint(sparks, 'bar')}  {peak}")]

    def findings(self) -> list[str]:
        lines = [self.title(self.say("findings"))]
        if not self.seen["findings"]:
            return [*lines, f"  {self.paint('✓', 'good')} {self.say('no_findings')}"]
        words = [self.say("severity_" + severity) for severity in ("error", "warning", "info")]
        room = max(_text.width(word) for word in words)
        for one in self.seen["findings"]:
            severity = one["severity"] if one["severity"] in ("error", "warning") else "info"
            text = printable(one[f"message_{self.lang}"] or one["code"]) + _happened.of_file(self.seen, one, self.lang)
            first, *rest = _text.wrapped(text, self.width - room - 4)
            word = _text.padded(self.say("severity_" + severity), room)
            lines.append(f"  {self.paint(word, severity)}  {first}")
            lines += [" " * (room + 4) + line for line in rest]
        return lines

    def protocols(self) -> list[str]:
        every = self.seen["protocols"]
        if not every:
            return []
        shown = every[:_SHOWN]
        rows = [(one["protocol"], count(one["frames"]), share(one["frames"], self.seen["frames"])) for one in shown]
        left = sum(one["frames"] for one in every[_SHOWN:])
        if left:
            rows.append((self.say("other"), count(left), share(left, self.seen["frames"])))
        frames = [*(one["frames"] for one in shown), left]
        lines = _text.columns(rows, [False, True, True])
        room = max(_text.width(line) for line in lines)
        lengths = [max(1, round(30 * number / self.seen["frames"])) for number in frames if number]
        bars = [self.paint("█" * length, "bar") for length in lengths]
        return [
            self.title(self.say("protocols_title")),
            *(f"  {_text.padded(line, room)}  {bar}" for line, bar in zip(lines, bars, strict=False)),
        ]

    def connections(self) -> list[str]:
        total, largest = self.seen["connections"]["count"], self.seen["connections"]["largest"]
        if not total:
            return []
        keys = ("client", "server", "sent", "received", "resent", "handshake_rtt", "mss", "goodput")
        head = [self.say(key) for key in keys]
        rows = []
        for one in largest:
            sides = ("client", "server")
            best = max(sides, key=lambda side: one[f"{side}_bytes"])
            known = [str(one[f"{side}_mss"]) for side in sides if one[f"{side}_mss"] is not None]
            rows.append(
                [
                    *(_end(one[f"{side}_ip"], one[f"{side}_port"]) for side in sides),
                    size(one["client_bytes"]),
                    size(one["server_bytes"]),
                    _resent(one),
                    duration(one["handshake_rtt_ns"]),
                    "/".join(dict.fromkeys(known)) or _format.NOTHING,
                    # A few segments in a burst are no rate.
                    rate(one[f"{best}_goodput_bps"] if one[f"{best}_bytes"] >= _RATE_BYTES else None),
                ]
            )
        which = "connections_all" if len(largest) == total else "connections_title"
        title = self.say(which, count=count(total), shown=len(largest))
        return self.table(title, head, rows, "llrrrrrr")

    def roce(self) -> list[str]:
        roce = self.seen["roce"]
        if not roce["packets"]:
            return []
        rows = [
            [_opcode(one), count(one["packets"]), share(one["packets"], roce["packets"])]
            for one in sorted(roce["opcodes"], key=lambda one: -one["packets"])
        ]
        title = self.say("roce_title", packets=count(roce["packets"]), bytes=size(roce["payload_bytes"]))
        lines = self.table(title, [self.say("opcode"), self.say("packets"), ""], rows, "lrr")
        if roce["syndromes"]:
            kinds = ", ".join(f"{one['aeth']} {count(one['packets'])}" for one in roce["syndromes"])
            lines.append(f"  {self.say('acknowledgements')}: {kinds}")
        if roce["ce_count"]:
            # Its share of the data packets stands in the finding.
            lines.append(f"  {self.say('ce_marked')}: {count(roce['ce_count'])}")
        return lines

    def tcp_happenings(self) -> list[str]:
        return self.listed(_happened.tcp_title(self.seen, self.lang), _happened.on_tcp(self.seen, self.lang))

    def too_big(self) -> list[str]:
        """Routers that say a packet was too big for the next link."""
        most = sorted(self.seen["too_big"], key=lambda one: -one["messages"])
        rows = [
            [
                printable(one["by"]),
                printable(one["src_ip"]),
                printable(one["dst_ip"]),
                _format.NOTHING if one["mtu"] is None else str(one["mtu"]),
                count(one["messages"]),
            ]
            for one in most[:_SHOWN]
        ]
        head = [self.say(key) for key in ("said_by", "from", "to", "next_mtu", "messages")]
        return self.table(self.say("too_big"), head, rows, "lllrr", len(most) - len(rows), "wirelab table icmp")

    def queue_pairs(self) -> list[str]:
        roce = self.seen["roce"]
        keys = ("requester", "responder", "service", "messages", "payload", "resent", "latency", "throughput", "mtu")
        head = [self.say(key) for key in keys]
        rows = [
            [
                _happened.queue_pair(one["requester_ip"], one["requester_qp"]),
                _happened.queue_pair(one["responder_ip"], one["responder_qp"]),
                one["service"],
                count(one["message_count"]),
                size(one["bytes"]),
                _resent_requests(one),
                _latency(one),
                rate(one["throughput_bps"] if one["bytes"] >= _RATE_BYTES else None),
                _format.NOTHING if one["path_mtu_bytes"] is None else str(one["path_mtu_bytes"]),
            ]
            for one in roce["largest"]
        ]
        left = roce["queue_pair_count"] - len(rows)
        lines = self.table(self.say("queue_pairs"), head, rows, "lllrrrrrr", left, "wirelab table roce_qps")
        if lines and roce["management_count"]:
            lines.append("  " + self.say("management", count=count(roce["management_count"])))
        return lines

    def events(self) -> list[str]:
        title = _happened.queue_pairs_title(self.seen, self.lang)
        return self.listed(title, _happened.on_queue_pairs(self.seen, self.lang))

    def pauses(self) -> list[str]:
        rows = [
            [
                one["kind"],
                _format.NOTHING if one["class"] is None else str(one["class"]),
                one["src_mac"] or _format.NOTHING,
                count(one["pause_count"]),
                count(one["resume_count"]),
                count(one["largest_quanta"]),
            ]
            for one in self.seen["pauses"][:_SHOWN]
        ]
        keys = ("kind", "class", "congested_port", "pause_count", "resume_count", "largest_quanta")
        head = [self.say(key) for key in keys]
        left = len(self.seen["pauses"]) - len(rows)
        return self.table(self.say("pauses"), head, rows, "lrlrrr", left, "wirelab table pause")

    def tunnels(self) -> list[str]:
        most = sorted(self.seen["tunnels"], key=lambda one: -one["packets"])
        rows = [
            [
                one["kind"],
                _format.NOTHING if one["vni"] is None else str(one["vni"]),
                count(one["packets"]),
                size(one["overhead_bytes"]),
            ]
            for one in most[:_SHOWN]
        ]
        head = [self.say(key) for key in ("kind", "vni", "packets", "overhead")]
        return self.table(self.say("tunnels"), head, rows, "lrrr", len(most) - len(rows), "wirelab table tunnels")

    def probes(self) -> list[str]:
        most = sorted(self.seen["probes"], key=lambda one: -one["sent_count"])
        rows = [
            [
                printable(one["src_ip"]),
                printable(one["dst_ip"]),
                count(one["sent_count"]),
                count(one["lost_count"]),
                count(one["error_count"]),
                *(duration(one[f"rtt_{which}_ns"]) for which in ("min", "mean", "max")),
            ]
            for one in most[:_SHOWN]
        ]
        keys = ("from", "to", "sent_count", "lost_count", "error_count", "rtt_min", "rtt_mean", "rtt_max")
        head = [self.say(key) for key in keys]
        return self.table(self.say("probes"), head, rows, "llrrrrrr", len(most) - len(rows), "wirelab table probes")

    def dns(self) -> list[str]:
        """Questions by what became of them: those that went wrong first, then those that were asked most."""
        told = self.seen["dns"]
        rows = [
            [
                _happened.name_of(one),
                printable(one["query_type"] or _format.NOTHING),
                printable(one["server_ip"]),
                count(one["query_count"]),
                count(one["retry_count"]),
                count(one["unanswered_count"]),
                ", ".join(f"{code} {count(number)}" for code, number in one["failures"].items()) or _format.NOTHING,
                *(duration(one[f"rtt_{which}_ns"]) for which in ("min", "mean", "max")),
            ]
            for one in told["questions"][:_SHOWN]
        ]
        keys = ("dns_name", "dns_type", "server", "query_count", "retry_count", "unanswered_count", "failures")
        head = [self.say(key) for key in (*keys, "rtt_min", "rtt_mean", "rtt_max")]
        left = told["question_count"] - len(rows)
        lines = self.table(self.say("dns"), head, rows, "lllrrrlrrr", left, "wirelab table dns")
        if told["left_out_count"]:
            lines.append("  " + self.say("dns_left_out", count=count(told["left_out_count"])))
        for sentence in _happened.silent_servers(self.seen, self.lang):
            lines += ["  " + line for line in _text.wrapped(sentence, self.width - 2)]
        return lines

    def udp_flows(self) -> list[str]:
        total, largest = self.seen["udp_flows"]["count"], self.seen["udp_flows"]["largest"]
        rows = []
        for one in largest:
            payload = max(one["client_payload_bytes"], one["server_payload_bytes"])
            pace = bits_per_s(payload, one["duration_ns"]) if payload >= _RATE_BYTES else None
            rows.append(
                [
                    *(_end(one[f"{side}_ip"], one[f"{side}_port"]) for side in ("client", "server")),
                    *(count(one[f"{side}_packets"]) for side in ("client", "server")),
                    *(size(one[f"{side}_payload_bytes"]) for side in ("client", "server")),
                    duration(one["duration_ns"]),
                    rate(pace),
                ]
            )
        keys = ("client", "server", "sent_packets", "received_packets", "sent_payload", "received_payload")
        head = [self.say(key) for key in (*keys, "lasted", "payload_rate")]
        which = "udp_flows_all" if len(largest) == total else "udp_flows_title"
        return self.table(self.say(which, count=count(total), shown=len(largest)), head, rows, "llrrrrrr")

    def interfaces(self) -> list[str]:
        every = self.seen["interfaces"]
        rows = [
            [
                f"{one['interface_id']} {printable(one['name'] or '')}".strip(),
                one["link_name"],
                _format.NOTHING if one["snap_length_bytes"] is None else count(one["snap_length_bytes"]),
                count(one["frames"]),
                _dropped(one),
                printable(os.path.basename(one["file_name"] or "")),
            ]
            for one in every[:_SHOWN]
        ]
        head = [self.say(key) for key in ("interface", "link", "snap_length", "frames_column", "drops", "file")]
        kinds = "llrrrl"
        if len(self.seen["files"]) < 2:
            head, rows, kinds = head[:-1], [row[:-1] for row in rows], kinds[:-1]
        return self.table(self.say("interfaces"), head, rows, kinds, len(every) - len(rows), "wirelab table interfaces")

    def title(self, text: str) -> str:
        return self.paint(text, "head")

    def listed(self, title: str, sentences: Sequence[str]) -> list[str]:
        """Sentences, each with a mark before it."""
        lines = []
        for sentence in sentences:
            first, *rest = _text.wrapped(sentence, self.width - 4)
            lines += [f"  - {first}", *("    " + line for line in rest)]
        return [self.title(title), *lines] if lines else []

    def table(
        self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]], kinds: str, left: int = 0, how: str = ""
    ) -> list[str]:
        if not rows:
            return []
        first, *rest = _text.columns([head, *rows], [kind == "r" for kind in kinds])
        lines = [self.title(title), "  " + self.paint(first, "dim"), *("  " + line for line in rest)]
        if left > 0:
            lines.append("  " + self.say("more", count=count(left), how=how))
        return lines


def _end(ip: str | None, port: int) -> str:
    ip = printable(ip or "?")
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _resent(one: dict[str, Any]) -> str:
    """Segments sent again by either end, with their share of the data segments of the end that resent."""
    total = one["client_retransmit_count"] + one["server_retransmit_count"]
    share_of = one["client_retransmit_ratio"] if one["client_retransmit_count"] else one["server_retransmit_ratio"]
    if not total:
        return "0"
    return f"{count(total)} ({share_of:.1%})" if share_of is not None else count(total)


def _resent_requests(one: dict[str, Any]) -> str:
    total = one["retransmit_count"]
    return f"{count(total)} ({one['retransmit_ratio']:.1%})" if total else "0"


def _latency(one: Mapping[str, Any]) -> str:
    """Median and longest time that messages took."""
    median, longest = one["latency_median_ns"], one["latency_max_ns"]
    return _format.NOTHING if median is None else f"{duration(median)} / {duration(longest)}"


def _opcode(one: Mapping[str, Any]) -> str:
    return one["opcode_name"] or f"0x{one['opcode']:02x}"


def _dropped(one: Mapping[str, Any]) -> str:
    known = [number for number in (one["interface_drops"], one["os_drops"]) if number is not None]
    return count(sum(known)) if known else _format.NOTHING
