"""Grades into the tables that Canvas and Moodle take: what was downloaded there is read, and what changes is written.

Neither table is made up: who is who, and what the column is called, is taken from the download.
"""

from __future__ import annotations

import csv
import html
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from .._errors import UsageError
from .._format import printable
from .._grade import Report
from .._words import say

#: Larger files are no list of a class.
_MOST_BYTES = 64 << 20
#: ``name_12345_67890_file.zip`` or ``name_LATE_12345_67890_file.zip``: the second number is the file's.
_CANVAS_NAME = re.compile(r".*?_(?:LATE_)?(\d+)_\d+_")
#: ``Full Name_12345_assignsubmission_file``.
_MOODLE_NAME = re.compile(r".*_(\d+)_assignsubmission_")
_CANVAS_OWN = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")
_CANVAS_KEYS = ("ID", "SIS User ID", "SIS Login ID", "Student")
_CANVAS_TITLE = re.compile(r"(.*\S)\s*\((\d+)\)")
#: Headings of Moodle's worksheet, as far as they are known.
_MOODLE_ID = ("Identifier", "标识符", "识别号")
_MOODLE_GRADE = ("Grade", "成绩")
_MOODLE_MOST = ("Maximum Grade", "最高成绩", "最高分")
_MOODLE_FEEDBACK = ("Feedback comments", "反馈评论")
_MOODLE_KEYS = ("ID number", "学号", "Email address", "电子邮件地址", "Full name", "姓名", "全名")


@dataclass
class Graded:
    """A submission and what came of it."""

    path: str
    report: Report

    @property
    def name(self) -> str:
        return os.path.basename(os.path.abspath(self.path))

    @property
    def points(self) -> Decimal | None:
        score, _ = self.report._data.points()
        return None if score is None or self.report.status not in ("graded", "partial") else Decimal(score)

    @property
    def most(self) -> Decimal | None:
        _, most = self.report._data.points()
        return None if most is None else Decimal(most)


@dataclass
class Table:
    """A table as it was downloaded."""

    path: str
    head: list[str]
    rows: list[list[str]]
    delimiter: str
    has_mark: bool

    @classmethod
    def read(cls, path: str) -> Table:
        try:
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise UsageError(f"{printable(path)} cannot be read: {error.strerror or error}") from None
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{printable(path)} is larger than {_MOST_BYTES >> 20} MiB: it is no list of a class")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError(
                f"{printable(path)} is not UTF-8: give the file as it was downloaded, not one saved by a spreadsheet"
            ) from None
        first = text.split("\n", 1)[0]
        delimiter = max(",;\t", key=first.count)
        try:
            rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
        except csv.Error as error:
            raise UsageError(f"{printable(path)} is no CSV: {error}") from None
        if not rows:
            raise UsageError(f"{printable(path)} is empty")
        width = len(rows[0])
        rows = [[*row, *[""] * (width - len(row))] for row in rows]
        return cls(path, rows[0], rows[1:], delimiter, data.startswith(b"\xef\xbb\xbf"))

    def column(self, names: Iterable[str]) -> int | None:
        """The first of these headings that is there."""
        return next((self.head.index(name) for name in names if name in self.head), None)

    def written(self, rows: Iterable[Sequence[str]]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.delimiter).writerows(rows)
        return text.getvalue().encode("utf-8-sig" if self.has_mark else "utf-8")


@dataclass
class Filled:
    """What to upload, and what is to be told of it."""

    data: bytes
    #: People who have points in it.
    count: int
    notes: list[str]


def canvas(path: str, column: str | None, graded: Sequence[Graded], is_scaled: bool, lang: str) -> Filled:
    """Rows of those who have a grade, with the columns that say who they are and the one column of the lab: whatever
    else is in the gradebook stays as it is there.
    """
    table = Table.read(path)
    if table.head[:2] != ["Student", "ID"]:
        raise UsageError(f"{printable(path)} is no gradebook of Canvas: it does not begin with Student and ID")
    at = _canvas_column(table, column)
    own = [place for place, name in enumerate(table.head) if name in _CANVAS_OWN]
    possible = [row for row in table.rows if row[0].strip().lower().startswith("points possible")]
    people = [row for row in table.rows if row not in possible]
    keys = [place for place in (table.column([name]) for name in _CANVAS_KEYS) if place is not None]
    found, notes = _match(people, graded, _CANVAS_NAME, lambda row: row[1], keys, lang)
    most = _decimal(possible[0][at]) if possible else None
    scale = _scale(table, table.head[at], most, graded, is_scaled)
    kept = [*own, at]
    rows = [[table.head[place] for place in kept], *([row[place] for place in kept] for row in possible)]
    for row, one in found:
        rows.append([*(row[place] for place in own), _text(scale(one))])
    return Filled(table.written(rows), len(found), [*notes, *_told(table, found, graded, lang)])


def moodle(path: str, column: str | None, graded: Sequence[Graded], is_scaled: bool, lang: str) -> Filled:
    """Rows of those who have a grade, with it and the words on what was lost filled in."""
    table = Table.read(path)
    key = table.column(_MOODLE_ID)
    if key is None:
        raise UsageError(
            f"{printable(path)} is no grading worksheet of Moodle: it has no column Identifier (turn on"
            " 'offline grading worksheet' in the assignment's feedback types, and download it there)"
        )
    at = table.column([column] if column is not None else _MOODLE_GRADE)
    if at is None:
        raise UsageError(f"{printable(path)} has no column {column or 'Grade'}: name one of {_names(table.head)}")
    keys = [place for place in (table.column([name]) for name in _MOODLE_KEYS) if place is not None]
    number = re.compile(r"(\d+)\s*$")

    def number_of(row: list[str]) -> str | None:
        told = number.search(row[key])
        return told.group(1) if told else None

    found, notes = _match(table.rows, graded, _MOODLE_NAME, number_of, [key, *keys], lang)
    most_at, feedback = table.column(_MOODLE_MOST), table.column(_MOODLE_FEEDBACK)
    most_text = next((row[most_at] for row, _ in found if row[most_at]), "") if most_at is not None else ""
    scale = _scale(table, table.head[at], _decimal(most_text), graded, is_scaled)
    rows = []
    for row, one in found:
        row = list(row)
        row[at] = _text(scale(one))
        # Numbers are written as the site writes them.
        if "," in most_text and "." not in most_text:
            row[at] = row[at].replace(".", ",")
        if feedback is not None:
            row[feedback] = _feedback(one.report.for_student(), lang)
        rows.append(row)
    return Filled(table.written([table.head, *rows]), len(found), [*notes, *_told(table, found, graded, lang)])


def _canvas_column(table: Table, column: str | None) -> int:
    titles = {place: told for place, name in enumerate(table.head) if (told := _CANVAS_TITLE.fullmatch(name.strip()))}
    if column is None:
        if len(titles) == 1:
            return next(iter(titles))
        raise UsageError(
            f"{printable(table.path)} has {len(titles)} columns of assignments: name one with --column, of"
            f" {_names(table.head[place] for place in titles)}"
        )
    exact = [place for place, name in enumerate(table.head) if name == column and place in titles]
    fitting = exact or [place for place, told in titles.items() if column.strip() in told.groups()]
    if len(fitting) != 1:
        which = "no assignment" if not fitting else "several assignments"
        raise UsageError(
            f"{printable(table.path)} has {which} called {column}: name one of"
            f" {_names(table.head[place] for place in titles)}"
        )
    return fitting[0]


def _match(
    people: Sequence[list[str]],
    graded: Sequence[Graded],
    pattern: re.Pattern[str],
    number_of: Callable[[list[str]], str | None],
    keys: Sequence[int],
    lang: str,
) -> tuple[list[tuple[list[str], Graded]], list[str]]:
    """Who handed in what, in the order of the table; and what nobody is known for, or somebody twice."""
    by_number: dict[str, list[int]] = {}
    by_name: dict[str, list[int]] = {}
    for place, row in enumerate(people):
        if number := number_of(row):
            by_number.setdefault(number.strip(), []).append(place)
        for name in {row[key].strip().casefold() for key in keys} - {""}:
            by_name.setdefault(name, []).append(place)
    owners: dict[int, list[Graded]] = {}
    strangers = []
    for one in graded:
        told = pattern.match(one.name)
        if told is not None:
            places = by_number.get(told.group(1), [])
        else:
            stem = one.name if os.path.isdir(one.path) else os.path.splitext(one.name)[0]
            places = by_name.get(one.name.strip().casefold()) or by_name.get(stem.strip().casefold(), [])
        if len(places) == 1:
            owners.setdefault(places[0], []).append(one)
        else:
            strangers.append(one)
    twice = [one for found in owners.values() if len(found) > 1 for one in found]
    notes = []
    if strangers:
        notes.append(say(lang, "gradebook_strangers", names=_names(one.name for one in strangers)))
    if twice:
        notes.append(say(lang, "gradebook_twice", names=_names(one.name for one in twice)))
    found = [(people[place], owners[place][0]) for place in sorted(owners) if len(owners[place]) == 1]
    return [(row, one) for row, one in found if one.points is not None], notes


def _scale(
    table: Table, title: str, most: Decimal | None, graded: Sequence[Graded], is_scaled: bool
) -> Callable[[Graded], Decimal]:
    """Points of the lab as points of the table's column. The lab's total is less where checks left it."""
    totals = sorted({one.most for one in graded if one.points is not None and one.most})
    if most is not None and not is_scaled and any(total != most for total in totals):
        raise UsageError(
            f"{printable(table.path)}: {title} counts to {_text(most)}, what was handed in to"
            f" {' or '.join(_text(total) for total in totals)}: change it there, or convert with --scale"
        )
    if most is None and is_scaled:
        raise UsageError(f"{printable(table.path)} does not say what {title} counts to: leave out --scale")

    def points(one: Graded) -> Decimal:
        own = one.points or Decimal(0)
        return own * most / one.most if is_scaled and most is not None and one.most else own

    return points


def _told(table: Table, found: Sequence[tuple[list[str], Graded]], graded: Sequence[Graded], lang: str) -> list[str]:
    notes = []
    if without := [one.name for one in graded if one.points is None]:
        notes.append(say(lang, "gradebook_ungraded", names=_names(without)))
    if reviewed := [one.name for _, one in found if one.report.needs_review]:
        notes.append(say(lang, "gradebook_review", names=_names(reviewed)))
    return [f"{printable(table.path)}: {note}" for note in notes]


def _feedback(report: Report, lang: str) -> str:
    """What was lost, as the site's editor shows it."""
    lines = []
    data: dict[str, Any] = report.to_dict()
    for item in data["items"]:
        if item["status"] == "pass" or item["counted"] == "excluded":
            continue
        told = " ".join(one[lang] for one in (item["message"], item["hint"]) if one)
        lines.append(f"{item['title'][lang]} ({item['points']} / {item['max_points']}): {told}")
    return (
        "".join(f"<p>{html.escape(line)}</p>" for line in lines) or f"<p>{html.escape(say(lang, 'gradebook_full'))}</p>"
    )


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace(",", "."))
    except InvalidOperation:
        return None
    return number if number.is_finite() and number > 0 else None


def _text(number: Decimal) -> str:
    """At most two decimals: neither site keeps more."""
    rounded = number.quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{rounded:f}".rstrip("0").rstrip(".") if rounded % 1 else f"{rounded:.0f}"


def _names(names: Iterable[str]) -> str:
    told = [printable(name) for name in names]
    return ", ".join(told[:20]) + (f", … ({len(told)})" if len(told) > 20 else "")
