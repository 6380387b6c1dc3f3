"""The class list beside the reports: a row for each submission, also for those of earlier runs."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .._errors import UsageError
from .._format import printable
from .._grade import Lab, Report
from .._tabular import WholeFile
from .._words import say

NAME = "scores.csv"
_HEAD = ("name", "points", "of", "status", "needs_review", "review_reason", "error")
_STATUS = _HEAD.index("status")
#: Columns of any text.
_TEXTS = ("name", "review_reason", "error")


def write(
    folder: str,
    lab: Lab,
    submissions: Sequence[str],
    results: Sequence[Any],
    reasons: Sequence[str],
    is_student: bool,
    lang: str,
) -> list[str]:
    """Writes the list; rows of submissions that were not graded this time stay. Returns what is to be told of that.

    ``reasons``: why those that have no report have none.
    """
    path = os.path.join(folder, NAME)
    checks = [one["id"] for one in lab.facts(lang)["checks"] if one["visible"] or not is_student]
    head = [*_HEAD, *checks]
    rows = [_row(*one, checks, lang) for one in zip(submissions, results, reasons, strict=True)]
    earlier = _read(path, head)
    kept = None
    if isinstance(earlier, str):
        why = say(lang, earlier)
        kept = _put_aside(path, lang)
        notes = [say(lang, "scores_aside", path=printable(path), why=why, kept=printable(kept))]
    else:
        # What could not be graded keeps the grade it has.
        standing = {row[0] for row in earlier if row[_STATUS] != "error"}
        rows = [
            row
            for row, result in zip(rows, results, strict=True)
            if isinstance(result, Report) or row[0] not in standing
        ]
        kept_rows, namesakes = _others(earlier, rows)
        notes = []
        if namesakes:
            names = ", ".join(namesakes)
            kept = _put_aside(path, lang)
            notes.append(say(lang, "scores_namesakes", path=printable(path), names=names, kept=printable(kept)))
        if kept_rows:
            # A class comes in the order of names.
            rows = sorted([*rows, *kept_rows], key=lambda row: row[0].removeprefix("'"))
            notes.append(say(lang, "scores_kept", path=printable(path), count=len(kept_rows)))
    try:
        with WholeFile(path) as out:
            text = io.TextIOWrapper(out, encoding="utf-8-sig", newline="", write_through=True)
            csv.writer(text).writerows([head, *rows])
            text.detach()
    except BaseException:
        # Without a new list, the one that is there stays the one.
        if kept is not None:
            with contextlib.suppress(OSError):
                os.rename(kept, path)
        raise
    return notes


def harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula, and in one line. What is harmless stays as it is."""
    text = " ".join(printable(text).splitlines())
    # Spaces before it do not keep some programs from taking it for one; nor do the wide forms of these characters.
    return f"'{text}" if text.lstrip().startswith(tuple("=+-@|%＝＋－＠")) else text


def _row(submission: str, report: Any, reason: str, checks: Sequence[str], lang: str) -> list[str]:
    name = harmless(os.path.basename(os.path.abspath(submission)))
    if not isinstance(report, Report):
        reason = harmless(reason)
        return [name, "", "", "error", "true", reason, reason, *([""] * len(checks))]
    score, most = report._data.points()
    got = {one["id"]: "" if one["counted"] == "excluded" else one["points"] for one in report.items}
    error = say(lang, "grade_error") if report.status == "error" else ""
    review = "true" if report.needs_review else "false"
    reasons = harmless("; ".join(one["message"][lang] for one in report.to_dict()["review"]))
    of_checks = (got.get(check, "") for check in checks)
    return [name, score or "", most or "", report.status, review, reasons, error, *of_checks]


def _read(path: str, head: Sequence[str]) -> list[list[str]] | str:
    """Rows of the list that is there, or the key of the words for why they cannot be taken over."""
    if not os.path.isfile(path):
        return []
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            # Spreadsheets leave empty rows at the end.
            rows = [row for row in csv.reader(file, strict=True) if any(row)]
    except (OSError, ValueError, csv.Error):
        return "scores_unreadable"
    if not rows:
        return []
    if rows[0] != head:
        return "scores_columns"
    if any(len(row) != len(head) for row in rows):
        return "scores_unreadable"
    # It may have been through other hands.
    return [
        [harmless(cell) if column in _TEXTS else cell for column, cell in zip(head, row, strict=True)]
        for row in rows[1:]
    ]


def _others(earlier: Sequence[list[str]], rows: Sequence[list[str]]) -> tuple[list[list[str]], list[str]]:
    """Rows of submissions that were not graded again, and names of which only some were: of those the first ones go."""
    graded = Counter(row[0] for row in rows)
    there: Counter[str] = Counter()
    others = []
    for row in earlier:
        there[row[0]] += 1
        if there[row[0]] > graded[row[0]]:
            others.append(row)
    return others, sorted(name for name in graded if there[name] > graded[name])


def _put_aside(path: str, lang: str) -> str:
    """Gives the list that is there a name that is free, and says which."""
    stem, ending = os.path.splitext(path)
    kept, number = f"{stem}.before{ending}", 2
    while os.path.lexists(kept):
        kept, number = f"{stem}.before-{number}{ending}", number + 1
    try:
        os.rename(path, kept)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(say(lang, "scores_held", path=printable(path), error=reason)) from None
    return kept
