"""Who of a class handed in what, told by the names that a site gives to downloads, or by a person's own name.

Nobody may get the points of another: where a name fits nobody, several people, or one by its number and another by
its words, it is told, and nothing is entered.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .._format import printable
from .._grade import Report
from .._words import say

#: ``name_12345_67890_file.zip`` or ``name_LATE_12345_67890_file.zip``: the second number is the file's.
_CANVAS = re.compile(r"([^_]+)_(?:LATE_)?(\d+)_\d+_")
#: ``Full Name_12345_assignsubmission_file``.
_MOODLE = re.compile(r"_(\d+)_assignsubmission_")


@dataclass
class Graded:
    """A submission and what came of it."""

    path: str
    report: Report

    @property
    def name(self) -> str:
        return os.path.basename(os.path.abspath(self.path))

    @property
    def has_points(self) -> bool:
        score, most = self.report._data.points()
        return score is not None and most is not None and self.report.status in ("graded", "partial")


@dataclass
class Person:
    """A row of the table."""

    row: list[str]
    #: What downloads call the person by.
    number: str
    #: Number, login, e-mail address, name.
    keys: Sequence[str]
    #: ``None`` where the table does not tell.
    full_name: str | None


def is_download(name: str) -> bool:
    """Whether a site gave this name: several of them are several people's."""
    return _CANVAS.match(name) is not None or _MOODLE.search(name) is not None


def find(
    people: Sequence[Person], graded: Sequence[Graded], lang: str
) -> tuple[list[tuple[Person, Graded]], list[str]]:
    """Those who have points, in the order of the table; and what is to be told of the others."""
    by_number: dict[str, list[int]] = {}
    by_name: dict[str, set[int]] = {}
    for place, person in enumerate(people):
        by_number.setdefault(person.number.strip(), []).append(place)
        for key in {_folded(key) for key in person.keys} - {""}:
            by_name.setdefault(key, set()).add(place)
    owners: dict[int, list[Graded]] = {}
    strangers: list[str] = []
    unclear: list[str] = []
    ungraded: list[str] = []
    for one in graded:
        if not one.has_points:
            ungraded.append(one.name)
            continue
        stem = one.name if os.path.isdir(one.path) else os.path.splitext(one.name)[0]
        places = set(by_name.get(_folded(one.name), set()) or by_name.get(_folded(stem), set()))
        claims = list(_claims(one.name))
        for name, number in claims:
            places |= {place for place in by_number.get(number, []) if _fits(people[place], name, len(claims))}
        if len(places) == 1:
            owners.setdefault(places.pop(), []).append(one)
        else:
            (unclear if places else strangers).append(one.name)
    twice = [one.name for found in owners.values() if len(found) > 1 for one in found]
    notes = [
        say(lang, key, names=listed(names))
        for key, names in (
            ("gradebook_strangers", strangers),
            ("gradebook_unclear", unclear),
            ("gradebook_twice", twice),
            ("gradebook_ungraded", ungraded),
        )
        if names
    ]
    return [(people[place], owners[place][0]) for place in sorted(owners) if len(owners[place]) == 1], notes


def listed(names: Iterable[str]) -> str:
    told = [printable(name) for name in names]
    return ", ".join(told[:20]) + (f", … ({len(told)})" if len(told) > 20 else "")


def _claims(name: str) -> Iterable[tuple[str, str]]:
    """Names and numbers of people that a download may be called by. What the person called the file stands behind them,
    and may look the same.
    """
    if canvas := _CANVAS.match(name):
        yield canvas.group(1), canvas.group(2)
    for moodle in _MOODLE.finditer(name):
        yield name[: moodle.start()], moodle.group(1)


def _fits(person: Person, name: str, claims: int) -> bool:
    """Whether the name before a person's number is that person's."""
    return claims == 1 if person.full_name is None else _letters(person.full_name) == _letters(name)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


def _letters(name: str) -> str:
    """What sites leave of a name: letters and digits."""
    return "".join(one for one in unicodedata.normalize("NFC", name).casefold() if one.isalnum())
