"""A report as Gradescope's autograder wants it: ``/autograder/results/results.json``."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ._words import say

if TYPE_CHECKING:
    from ._grade import Report

#: Frames named of one piece of evidence.
_FRAMES = 20


def results(report: Report, lang: str) -> dict[str, Any]:
    """A function of the canonical result alone.

    The score is given, and not left to be summed up: checks that left the total have none. Where there is no grade it
    is 0, since Gradescope takes nothing else, and the words above it say that it is none.
    """
    full = report.to_dict()
    shown = report.for_student()
    items = full["items"]
    has_grade = full["score"] is not None and full["status"] in ("graded", "partial")
    lines = [] if has_grade else [say(lang, "gradescope_no_grade")]
    lines += [one["message"][lang] for one in shown.to_dict()["review"]]
    return {
        "score": _number(full["score"]) if has_grade else 0.0,
        "output": "\n".join([*lines, "", shown.to_text(lang)]) if lines else shown.to_text(lang),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "tests": [_test(number, item, lang) for number, item in enumerate(items, 1)],
        "extra_data": {
            "schema": full["schema"],
            "tool_version": full["tool_version"],
            "lab": full["lab"],
            "rubric": full["rubric"],
            "max_score": full["max_score"],
            "status": full["status"],
            "needs_review": full["needs_review"],
        },
    }


def _test(number: int, item: dict[str, Any], lang: str) -> dict[str, Any]:
    test: dict[str, Any] = {
        "number": str(number),
        "name": item["title"][lang],
        "output": "\n".join(_lines(item, lang)),
        "visibility": "visible" if item["visibility"] == "visible" else "hidden",
        "tags": [*item["tags"], item["status"]],
    }
    # Without a score it only informs.
    if item["counted"] != "excluded":
        test["score"] = _number(item["points"])
        test["max_score"] = _number(item["max_points"])
        test["status"] = "passed" if item["status"] == "pass" else "failed"
    return test


def _lines(item: dict[str, Any], lang: str) -> list[str]:
    lines = [item["message"][lang]] if item["message"] else []
    if item["status"] == "pass":
        return lines
    lines += [_frames(one, lang) for one in item["evidence"] if one["frames"]]
    if item["hint"]:
        lines.append(say(lang, "gradescope_next", hint=item["hint"][lang]))
    return lines


def _frames(evidence: dict[str, Any], lang: str) -> str:
    frames = ", ".join(str(frame) for frame in evidence["frames"][:_FRAMES])
    return say(lang, "gradescope_frames", file=evidence["file"], frames=frames)


def _number(text: str) -> float:
    return float(Decimal(text))
