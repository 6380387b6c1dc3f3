"""Text in columns, for screens: Chinese characters take two places."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def width(text: str) -> int:
    """Places that the text takes on a screen."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def padded(text: str, places: int, is_right: bool = False) -> str:
    room = " " * max(0, places - width(text))
    return room + text if is_right else text + room


def cut(text: str, places: int) -> str:
    """The text, or its start and an ellipsis."""
    if width(text) <= places:
        return text
    kept, used = "", 1
    for character in text:
        used += width(character)
        if used > places:
            break
        kept += character
    return kept + "…"


def wrapped(text: str, places: int) -> list[str]:
    """The text in lines of at most so many places; breaks at spaces, and between Chinese characters."""
    lines, line = [], ""
    for word in _words(text):
        if line and width(line) + width(word.rstrip()) > places:
            lines.append(line.rstrip())
            line = ""
        line += word
    return [*lines, line.rstrip()] if line.rstrip() or not lines else lines


def columns(rows: Sequence[Sequence[str]], is_right: Sequence[bool], gap: int = 2) -> list[str]:
    """Rows as lines whose columns stand below each other."""
    places = [max(width(row[at]) for row in rows) for at in range(len(is_right))]
    return [line(row, places, is_right, gap) for row in rows]


def line(row: Sequence[str], places: Sequence[int], is_right: Sequence[bool], gap: int = 2) -> str:
    cells = [padded(cell, room, right) for cell, room, right in zip(row, places, is_right, strict=True)]
    return (" " * gap).join(cells).rstrip()


def _words(text: str) -> list[str]:
    words, word = [], ""
    for character in text:
        is_wide = unicodedata.east_asian_width(character) in "WF"
        # A line may begin with any wide character but punctuation.
        if word and is_wide and unicodedata.category(character)[0] != "P":
            words.append(word)
            word = ""
        word += character
        if character == " ":
            words.append(word)
            word = ""
    return [*words, word] if word else words
