"""Do the programs agree? A cost is worth nothing if the work was not done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from .programs import Facts

# What the generator writes down, under the names the programs use.
TRUTH_NAMES = {
    "frames": "frames",
    "tcp": "tcp",
    "tcp_flows": "tcp_flows",
    "roce": "roce",
    "retransmissions": "repeated_segments",
}
GENERATOR = "the generator"


def truth_facts(truth: Mapping[str, int]) -> Facts:
    """The generator's account as facts; it makes no frame that cannot be decoded."""
    return {TRUTH_NAMES[name]: value for name, value in truth.items() if name in TRUTH_NAMES} | {"undecoded": 0}


def missing_facts(needs: tuple[str, ...], facts: Facts) -> list[str]:
    """What a program should have said and did not."""
    return [f"says nothing of {name}" for name in needs if name not in facts]


def disagreements(facts_by_source: Mapping[str, Facts]) -> list[str]:
    """One line for each fact that is not the same everywhere, with who says what."""
    sources_by_value: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for source, facts in facts_by_source.items():
        for name, value in facts.items():
            sources_by_value[name][value].append(source)
    lines = []
    for name, sources in sorted(sources_by_value.items()):
        if len(sources) > 1:
            said = "; ".join(f"{value:,} ({', '.join(who)})" for value, who in sorted(sources.items()))
            lines.append(f"{name}: {said}")
    return lines
