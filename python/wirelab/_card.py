"""What a capture is, at a glance: one line of text, and a card for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from . import _format, _happened
from ._words import say

_STYLE = (
    "<style>.wirelab-card{max-width:760px;font:14px/1.45 system-ui,sans-serif;border:1px solid rgba(128,128,128,.35);"
    "border-radius:8px;padding:14px 18px;margin:4px 0}"
    ".wirelab-card h4{margin:0;font-size:16px;font-weight:600;overflow-wrap:anywhere}"
    ".wirelab-card .dim{opacity:.65;font-size:12.5px}"
    ".wirelab-card .finding{border-left:4px solid #8a8f98;background:rgba(128,128,128,.1);padding:6px 10px;"
    "margin:6px 0;border-radius:0 4px 4px 0}"
    ".wirelab-card .error{border-color:#d1242f}.wirelab-card .warning{border-color:#d29922}"
    ".wirelab-card .none{border-color:#2da44e}"
    ".wirelab-card .figures{display:flex;flex-wrap:wrap;gap:4px 28px;margin:10px 0 6px}"
    ".wirelab-card .figures b{display:block;font-size:18px;font-weight:600;font-variant-numeric:tabular-nums}"
    ".wirelab-card .bar{display:flex;height:10px;border-radius:5px;overflow:hidden;margin:10px 0 4px}"
    ".wirelab-card .legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:12.5px}"
    ".wirelab-card .legend i{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:5px}"
    ".wirelab-card .happened{margin-top:10px;font-size:13px}.wirelab-card .happened b{font-weight:600}"
    ".wirelab-card .happened ul{margin:2px 0 4px;padding-left:20px}"
    ".wirelab-card .happened li{margin:2px 0;overflow-wrap:anywhere}"
    ".wirelab-card code{font-size:12.5px;background:none;padding:0;color:inherit}"
    ".wirelab-card svg{display:block;width:100%;height:44px;margin-top:8px}</style>"
)
#: Told apart by people with any colour sight; the last is for the rest.
_COLOURS = ("#0969da", "#e36209", "#1b9e77", "#a475f9", "#d4a72c", "#bf3989", "#8a8f98")
#: Sentences on what happened; `wirelab info` has them all.
_HAPPENED = 6


def line(seen: Mapping[str, Any]) -> str:
    parts = [_format.counted(seen["frames"], "frame"), _format.size(seen["original_bytes"])]
    if _duration_ns(seen) is not None:
        parts.append(_format.duration(_duration_ns(seen)))
    parts += [f"{one['protocol']} {_format.count(one['frames'])}" for one in seen["protocols"][:4]]
    noted = [one for one in seen["findings"] if one["severity"] != "info"]
    if noted:
        parts.append(f"{_format.counted(len(noted), 'finding')}: " + ", ".join(one["code"] for one in noted))
    return f"<wirelab.Capture {names(seen, 'en')}: {'; '.join(parts)}>"


def html(seen: Mapping[str, Any], lang: str) -> str:
    parts = [_STYLE, f'<div class="wirelab-card" lang="{lang}"><h4>{escape(names(seen, lang))}</h4>']
    parts.append(f'<div class="dim">{escape(kind_of_files(seen))}</div>')
    parts += [_finding(one, lang) for one in seen["findings"]]
    if not seen["findings"]:
        parts.append(f'<div class="finding none">{escape(say(lang, "no_findings"))}</div>')
    parts.append(_figures(seen, lang))
    parts.append(_picture(seen, lang))
    parts.append(_protocols(seen, lang))
    parts.append(_happenings(seen, lang))
    parts.append(_tables(seen, lang))
    return "".join([*parts, "</div>"])


def names(seen: Mapping[str, Any], lang: str) -> str:
    """The first files by name, the others by number."""
    files = [_format.printable(one["name"].replace("\\", "/").rsplit("/", 1)[-1]) for one in seen["files"]]
    shown = ", ".join(files[:3])
    return f"{shown}, {say(lang, 'more_files', count=len(files) - 3)}" if len(files) > 3 else shown


def kind_of_files(seen: Mapping[str, Any]) -> str:
    kinds = {one["format"] + (f" + {one['compression']}" if one["compression"] else "") for one in seen["files"]}
    sizes = [one["stored_bytes"] for one in seen["files"]]
    stored = [_format.size(sum(sizes))] if all(one is not None for one in sizes) else []
    return ", ".join([*sorted(kinds), *stored])


def _duration_ns(seen: Mapping[str, Any]) -> int | None:
    first, last = seen["first_time_ns"], seen["last_time_ns"]
    return None if first is None or last is None else last - first


def _finding(one: Mapping[str, Any], lang: str) -> str:
    severity = one["severity"] if one["severity"] in ("error", "warning") else "info"
    message = escape(_format.printable(one[f"message_{lang}"] or one["code"]))
    return f'<div class="finding {severity}"><b>{escape(say(lang, "severity_" + severity))}</b> {message}</div>'


def _figures(seen: Mapping[str, Any], lang: str) -> str:
    duration_ns = _duration_ns(seen)
    figures = [
        (_format.count(seen["frames"]), say(lang, "frames")),
        (_format.size(seen["original_bytes"]), say(lang, "on_the_wire")),
    ]
    if duration_ns is not None:
        figures.append((_format.duration(duration_ns), say(lang, "duration")))
    mean = _format.bits_per_s(seen["original_bytes"], duration_ns)
    if mean is not None:
        figures.append((_format.rate(mean), say(lang, "mean_rate")))
    cells = "".join(
        f'<div><b>{escape(value)}</b><span class="dim">{escape(name)}</span></div>' for value, name in figures
    )
    return f'<div class="figures">{cells}</div>'


def _picture(seen: Mapping[str, Any], lang: str) -> str:
    """Bytes over time."""
    bins, bin_ns = seen["timeline"]["bytes"], seen["timeline"]["bin_ns"]
    first, last = seen["first_time_ns"], seen["last_time_ns"]
    if first is None or last is None:
        return f'<div class="dim">{escape(say(lang, "no_time"))}</div>'
    start, end = _format.time_span(first, last)
    span = f'<div class="dim">{escape(say(lang, "time_value", first=start, last=end))}'
    if len(bins) < 2:
        return span + "</div>"
    most = max(bins)
    bars = "".join(
        f'<rect x="{at}" y="{40 - 40 * value / most:.2f}" width=".86" height="{40 * value / most:.2f}"/>'
        for at, value in enumerate(bins)
        if value
    )
    peak = say(
        lang, "over_time_value", rate=_format.rate(_format.bits_per_s(most, bin_ns)), bin=_format.duration(bin_ns)
    )
    return (
        f'<svg viewBox="0 0 {len(bins)} 40" preserveAspectRatio="none" fill="{_COLOURS[0]}" role="img" '
        f'aria-label="{escape(peak)}">{bars}</svg>{span} · {escape(peak)}</div>'
    )


def _protocols(seen: Mapping[str, Any], lang: str) -> str:
    every = [(one["protocol"], one["frames"]) for one in seen["protocols"]]
    if not every:
        return ""
    shown = every if len(every) <= len(_COLOURS) else every[: len(_COLOURS) - 1]
    left = seen["frames"] - sum(frames for _, frames in shown)
    if left > 0:
        shown = [*shown, (say(lang, "other"), left)]
    bar, legend = [], []
    for (protocol, frames), colour in zip(shown, _COLOURS, strict=False):
        bar.append(f'<div style="flex:{frames};background:{colour}"></div>')
        legend.append(
            f'<span><i style="background:{colour}"></i>{escape(protocol)} {_format.count(frames)} '
            f'<span class="dim">{escape(_format.share(frames, seen["frames"]))}</span></span>'
        )
    return f'<div class="bar">{"".join(bar)}</div><div class="legend">{"".join(legend)}</div>'


def _happenings(seen: Mapping[str, Any], lang: str) -> str:
    """What happened, as far as there is room: each kind has its turn until there is none."""
    every = [
        (_happened.tcp_title(seen, lang), _happened.on_tcp(seen, lang)),
        (_happened.queue_pairs_title(seen, lang), _happened.on_queue_pairs(seen, lang)),
        (say(lang, "dns_happenings"), _happened.to_dns(seen, lang)),
    ]
    total = sum(len(sentences) for _, sentences in every)
    if not total:
        return ""
    turns = sorted((turn, kind) for kind, (_, sentences) in enumerate(every) for turn in range(len(sentences)))
    shown = [kind for _, kind in turns[:_HAPPENED]]
    parts = []
    for kind, (title, sentences) in enumerate(every):
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences[: shown.count(kind)])
        if items:
            parts.append(f"<b>{escape(title)}</b><ul>{items}</ul>")
    if total > len(shown):
        more = say(lang, "more", count=_format.count(total - len(shown)), how="wirelab info")
        parts.append(f'<div class="dim">{escape(more)}</div>')
    return f'<div class="happened">{"".join(parts)}</div>'


def _tables(seen: Mapping[str, Any], lang: str) -> str:
    """What there is to look at next."""
    counts = [
        ("tcp_flows", "connections", seen["connections"]["count"]),
        ("roce", "roce_packets", seen["roce"]["packets"]),
        ("pause", "pauses", sum(one["pause_count"] + one["resume_count"] for one in seen["pauses"])),
        ("tunnels", "tunnelled", sum(one["packets"] for one in seen["tunnels"])),
        ("probes", "probes", sum(one["sent_count"] for one in seen["probes"])),
        ("dns", "dns_queries", seen["dns"]["query_count"]),
        ("flows", "udp_flows_count", seen["udp_flows"]["count"]),
    ]
    there = [
        f"<span>{escape(say(lang, words))} <b>{_format.count(count)}</b> <code class='dim'>.{table}</code></span>"
        for table, words, count in counts
        if count
    ]
    return f'<div class="legend" style="margin-top:10px">{"".join(there)}</div>' if there else ""
