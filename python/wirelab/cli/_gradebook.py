"""Grades into the tables that Canvas and Moodle take: what was downloaded there is read, and what changes is written.

Neither table is made up: who is who, and what the column is called, is taken from the download.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from .._errors import UsageError
from .._format import printable
from .._grade import Report
from .._words import say
from ._owners import Graded, Person, find, listed

#: Larger files are no list of a class.
_MOST_BYTES = 64 << 20
_CANVAS_OWN = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")
_CANVAS_KEYS = ("ID", "SIS User ID", "SIS Login ID", "Student")
_CANVAS_TITLE = re.compile(r"(.*\S)\s*\((\d+)\)")
#: Headings of Moodle's worksheet, as far as they are known.
_MOODLE_ID = ("Identifier", "标识符", "识别号")
_MOODLE_GRADE = ("Grade", "成绩")
_MOODLE_MOST = ("Maximum Grade", "最高成绩", "最高分")
_MOODLE_FEEDBACK = ("Feedback comments", "反馈评论")
_MOODLE_NAME = ("Full name", "姓名", "全名")
_MOODLE_KEYS = ("ID number", "学号", "Email address", "电子邮件地址", *_MOODLE_NAME)


@dataclass
class Filled:
    """What to upload, and what is to be told of it."""

    data: bytes
    #: People who have points in it.
    count: int
    notes: list[str]


class Table:
    """A table as it was downloaded; read once, before anything is graded."""

    def __init__(self, path: str, first: Sequence[str]) -> None:
        """``first``: headings, one of which it must have."""
        self.path = path
        try:
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise UsageError(f"{printable(path)} cannot be read: {error.strerror or error}") from None
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{printable(path)} is larger than {_MOST_BYTES >> 20} MiB: it is no list of a class")
        self._has_mark = data.startswith(b"\xef\xbb\xbf")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError(
                f"{printable(path)} is not UTF-8: give the file as it was downloaded, not one saved by a spreadsheet"
            ) from None
        if not text.strip():
            raise UsageError(f"{printable(path)} is empty")
        # The one that parts the headings, whatever signs stand in them.
        of_head = {sign: next(csv.reader(io.StringIO(text, newline=""), delimiter=sign), []) for sign in ",;\t"}
        self._delimiter = next((sign for sign, head in of_head.items() if any(one in head for one in first)), ",")
        rows = self._rows(text)
        self.head = rows[0]
        self.rows = [[*row, *[""] * (len(self.head) - len(row))] for row in rows[1:]]

    def _rows(self, text: str) -> list[list[str]]:
        # Feedback may be long.
        before = csv.field_size_limit(_MOST_BYTES)
        try:
            return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter) if any(row)]
        except csv.Error as error:
            raise UsageError(f"{printable(self.path)} is no CSV: {error}") from None
        finally:
            csv.field_size_limit(before)

    def place(self, names: Iterable[str]) -> int | None:
        """The first of these headings that is there."""
        return next((self.head.index(name) for name in names if name in self.head), None)

    def places(self, names: Iterable[str]) -> list[int]:
        return [self.head.index(name) for name in names if name in self.head]

    def written(self, rows: Iterable[Sequence[str]]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self._delimiter).writerows(rows)
        return text.getvalue().encode("utf-8-sig" if self._has_mark else "utf-8")


class Book:
    """A table to be filled in."""

    def __init__(self, table: Table, at: int, is_scaled: bool, lang: str) -> None:
        self._table = table
        self._at = at
        self._is_scaled = is_scaled
        self._lang = lang

    def _points(self, found: Sequence[tuple[Person, Graded]], mosts: Sequence[Decimal | None]) -> list[Decimal]:
        """Points of the lab as points of the table's column. The lab's total is less where checks left it."""
        title, path = self._table.head[self._at], printable(self._table.path)
        if self._is_scaled and any(most is None for most in mosts):
            raise UsageError(f"{path} does not say what {title} counts to: leave out --scale")
        points, others = [], []
        for (_, one), most in zip(found, mosts, strict=True):
            score, total = (Decimal(told or 0) for told in one.report._data.points())
            if most is not None and total != most and not self._is_scaled:
                others.append((total, one.name, most))
            points.append(score * most / total if self._is_scaled and most is not None and total else score)
        if others:
            total, _, most = others[0]
            raise UsageError(
                f"{path}: {title} counts to {_text(most)}, and {_text(total)} points could be had by"
                f" {listed(name for _, name, _ in others)}: change it there, or convert with --scale"
            )
        return points

    def _told(self, found: Sequence[tuple[Person, Graded]]) -> list[str]:
        reviewed = [one.name for _, one in found if one.report.needs_review]
        return [say(self._lang, "gradebook_review", names=listed(reviewed))] if reviewed else []


class Canvas(Book):
    """Rows of those who have a grade, with the columns that say who they are and the one column of the lab: whatever
    else is in the gradebook stays as it is there.
    """

    def __init__(self, path: str, column: str | None, is_scaled: bool, lang: str) -> None:
        table = Table(path, ["Student"])
        if table.head[:2] != ["Student", "ID"]:
            raise UsageError(f"{printable(path)} is no gradebook of Canvas: it does not begin with Student and ID")
        super().__init__(table, _canvas_column(table, column), is_scaled, lang)
        self._own = table.places(_CANVAS_OWN)
        keys = table.places(_CANVAS_KEYS)
        is_possible = [row[0].strip().lower().startswith("points possible") for row in table.rows]
        self._possible = [row for row, is_it in zip(table.rows, is_possible, strict=True) if is_it]
        others = (row for row, is_it in zip(table.rows, is_possible, strict=True) if not is_it)
        self._people = [Person(row, row[1], [row[key] for key in keys], row[0]) for row in others]
        told = self._possible[0][self._at] if self._possible else ""
        if "read only" in told.lower():
            raise UsageError(f"{printable(path)}: {table.head[self._at]} is read only: Canvas takes nothing for it")
        self._most = _decimal(told)

    def filled(self, graded: Sequence[Graded]) -> Filled:
        found, notes = find(self._people, graded, self._lang)
        points = self._points(found, [self._most] * len(found))
        kept = [*self._own, self._at]
        rows = [[self._table.head[place] for place in kept]]
        rows += [[row[place] for place in kept] for row in self._possible]
        for (person, _), number in zip(found, points, strict=True):
            rows.append([*(person.row[place] for place in self._own), _text(number)])
        if self._most is None:
            notes.append(say(self._lang, "gradebook_no_total", column=self._table.head[self._at]))
        return Filled(self._table.written(rows), len(found), [*notes, *self._told(found)])


class Moodle(Book):
    """Rows of those who have a grade, with it and the words on what was lost filled in."""

    def __init__(self, path: str, column: str | None, is_scaled: bool, lang: str) -> None:
        table = Table(path, _MOODLE_ID)
        key = table.place(_MOODLE_ID)
        if key is None:
            raise UsageError(
                f"{printable(path)} is no grading worksheet of Moodle: it has no column Identifier (turn on"
                " 'offline grading worksheet' in the assignment's feedback types, and download it there)"
            )
        at = table.place([column] if column is not None else _MOODLE_GRADE)
        keys, self._most_at = table.places(_MOODLE_KEYS), table.place(_MOODLE_MOST)
        self._feedback = table.place(_MOODLE_FEEDBACK)
        taken = [key, *keys, self._most_at, self._feedback]
        if at is None or at in taken:
            free = (name for place, name in enumerate(table.head) if place not in taken)
            why = "has no column" if at is None else "has no place for points in"
            raise UsageError(f"{printable(path)} {why} {column or 'Grade'}: name one of {listed(free)}")
        super().__init__(table, at, is_scaled, lang)
        name = table.place(_MOODLE_NAME)
        number = re.compile(r"(\d+)\s*$")

        def person(row: list[str]) -> Person:
            told = number.search(row[key])
            full_name = None if name is None else row[name]
            return Person(row, told.group(1) if told else row[key], [row[key], *(row[one] for one in keys)], full_name)

        self._people = [person(row) for row in table.rows]

    def filled(self, graded: Sequence[Graded]) -> Filled:
        found, notes = find(self._people, graded, self._lang)
        most_of = ["" if self._most_at is None else person.row[self._most_at] for person, _ in found]
        points = self._points(found, [_decimal(most) for most in most_of])
        rows = []
        for (person, one), number, most in zip(found, points, most_of, strict=True):
            row = list(person.row)
            # Numbers are written as the site writes them.
            row[self._at] = _text(number).replace(".", "," if "," in most and "." not in most else ".")
            if self._feedback is not None:
                ours = _feedback(one.report.for_student(), self._lang)
                # What a person wrote there stays.
                row[self._feedback] += "" if ours in row[self._feedback] else ours
            rows.append(row)
        return Filled(self._table.written([self._table.head, *rows]), len(found), [*notes, *self._told(found)])


def _canvas_column(table: Table, column: str | None) -> int:
    titles = {place: told for place, name in enumerate(table.head) if (told := _CANVAS_TITLE.fullmatch(name.strip()))}
    all_titles = listed(table.head[place] for place in titles)
    if column is None:
        if len(titles) == 1:
            return next(iter(titles))
        raise UsageError(
            f"{printable(table.path)} has {len(titles)} columns of assignments: name one with --column, of {all_titles}"
        )
    exact = [place for place, name in enumerate(table.head) if name == column and place in titles]
    fitting = exact or [place for place, told in titles.items() if column.strip() in told.groups()]
    if len(fitting) != 1:
        which = "no assignment" if not fitting else "several assignments"
        raise UsageError(f"{printable(table.path)} has {which} called {column}: name one of {all_titles}")
    return fitting[0]


def _feedback(report: Report, lang: str) -> str:
    """What was lost, as the site's editor shows it."""
    lines = []
    data: dict[str, Any] = report.to_dict()
    for item in data["items"]:
        if item["status"] == "pass" or item["counted"] == "excluded":
            continue
        told = " ".join(one[lang] for one in (item["message"], item["hint"]) if one)
        lines.append(f"{item['title'][lang]} ({item['points']} / {item['max_points']}): {told}")
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines or [say(lang, "gradebook_full")])


def _decimal(text: str) -> Decimal | None:
    """A total above zero, with the signs of either way to write it: ``10.00``, ``10,00``, ``1,200.00``."""
    text = text.strip()
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    try:
        number = Decimal(text.replace(",", "."))
    except InvalidOperation:
        return None
    return number if number.is_finite() and number > 0 else None


def _text(number: Decimal) -> str:
    """At most two decimals: neither site keeps more."""
    rounded = number.quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{rounded:f}".rstrip("0").rstrip(".") if rounded % 1 else f"{rounded:.0f}"
