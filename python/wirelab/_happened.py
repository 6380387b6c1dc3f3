"""What happened in a capture, in sentences: on TCP connections, on RoCE queue pairs, to DNS queries."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import _format
from ._words import say

#: Queue pairs that are named where something happened on several.
_NAMED = 8


def on_tcp(seen: Mapping[str, Any], lang: str) -> list[str]:
    lines = _sentences(seen, seen["tcp_happenings"], lang)
    late = seen["reordered"]
    if late["segments"]:
        numbers = {"count": late["segments"], "connections": late["connections"]}
        lines.append(say(lang, "reordered", **{name: _format.count(number) for name, number in numbers.items()}))
    return lines


def on_queue_pairs(seen: Mapping[str, Any], lang: str) -> list[str]:
    return _sentences(seen, seen["roce"]["happenings"], lang)


def to_dns(seen: Mapping[str, Any], lang: str) -> list[str]:
    """Questions that got no answer, or that a server failed to answer; the most frequent first."""
    wrong = (one for one in seen["dns"]["questions"] if one["wrong_count"])
    return [*silent_servers(seen, lang), *(_question(one, lang) for one in wrong)]


def silent_servers(seen: Mapping[str, Any], lang: str) -> list[str]:
    """Servers of which nothing is there: what became of the queries to them is not known here."""
    names = [_format.printable(one) for one in seen["dns"]["silent_servers"]]
    if not names:
        return []
    shown = ", ".join([*names[:_NAMED], "..."] if len(names) > _NAMED else names)
    return [say(lang, "dns_silent", servers=shown, count=_format.count(len(names)))]


def tcp_title(seen: Mapping[str, Any], lang: str) -> str:
    return say(lang, "tcp_happenings_points" if _has_points(seen) else "tcp_happenings")


def queue_pairs_title(seen: Mapping[str, Any], lang: str) -> str:
    title = "roce_events_points" if _has_points(seen) else "roce_events"
    return say(lang, title, count=_format.count(seen["roce"]["event_count"]))


def of_file(seen: Mapping[str, Any], told: Mapping[str, Any], lang: str) -> str:
    """Whose frame numbers a sentence gives, where there are several files."""
    files, number = seen["files"], told["file_no"]
    text = told["message_en"] or ""
    if len(files) < 2 or number is None or not re.search(r"\bframes? \d", text):
        return ""
    name = os.path.basename(files[number - 1]["name"])
    return "" if name in text else say(lang, "of_file", file=_format.printable(name))


def name_of(one: Mapping[str, Any]) -> str:
    """The name that was asked for; that of the root is empty."""
    return _format.NOTHING if one["query_name"] is None else _format.printable(one["query_name"] or ".")


def queue_pair(ip: str | None, number: int | None) -> str:
    return _format.printable(ip or "?") + (" QP ?" if number is None else f" QP 0x{number:x}")


def _sentences(seen: Mapping[str, Any], happenings: Sequence[Mapping[str, Any]], lang: str) -> list[str]:
    """Events by kind and outcome: how often, on which queue pairs, and the longest of them."""
    lines = []
    for one in happenings:
        message = _format.printable(one["longest"][f"message_{lang}"]) + of_file(seen, one["longest"], lang)
        if one["events"] > 1:
            key = "happened_often" if one["longest_ns"] else "happened_at_once"
            longest = _format.duration(one["longest_ns"])
            where = _where(one, lang)
            message = say(lang, key, count=_format.count(one["events"]), where=where, longest=longest, shown=message)
        lines.append(message)
    return lines


def _where(one: Mapping[str, Any], lang: str) -> str:
    """The queue pairs of several events, if there are several."""
    if len(one["queue_pairs"]) < 2:
        return ""
    ends = [
        queue_pair(of["requester_ip"], of["requester_qp"]) + " → " + queue_pair(of["responder_ip"], of["responder_qp"])
        for of in one["queue_pairs"]
    ]
    shown = ends[:_NAMED]
    if len(ends) > len(shown) or one["has_more_queue_pairs"]:
        shown.append("...")
    return say(lang, "happened_on", queue_pairs=", ".join(shown))


def _has_points(seen: Mapping[str, Any]) -> bool:
    """Whether the same traffic was captured at several points."""
    return any(one["code"] == "several_points" for one in seen["findings"])


def _question(one: Mapping[str, Any], lang: str) -> str:
    counts = {say(lang, "dns_unanswered"): one["unanswered_count"], **one["failures"]}
    became = (
        say(lang, "dns_became", count=_format.count(number), what=_format.printable(what))
        for what, number in counts.items()
        if number
    )
    return say(
        lang,
        "dns_wrong",
        name=name_of(one),
        type=_format.printable(one["query_type"] or _format.NOTHING),
        server=_format.printable(one["server_ip"] or "?"),
        queries=_format.count(one["query_count"]),
        became=say(lang, "dns_joint").join(became),
    )
