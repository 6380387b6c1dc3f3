"""The English words of the command line, by count."""

import json
import re
from importlib import resources

import pytest

from wirelab import _words

#: Words ending in s that stand after a figure and are no plurals.
NO_PLURALS = {"is", "was", "has", "says", "seems", "comes"}


def texts(part: str, lang: str) -> dict[str, str]:
    return json.loads((resources.files("wirelab") / "words" / f"{part}.{lang}.json").read_text(encoding="utf-8"))


def names(text: str) -> set[str]:
    return {found.split("|")[0] for found in re.findall(r"{([^{}]+)}", text)}


@pytest.mark.parametrize("part", _words.PARTS)
def test_one_thing_is_not_told_as_several(part: str) -> None:
    for key, text in texts(part, "en").items():
        said = _words.say("en", key, **dict.fromkeys(names(text), "1"))
        assert "|" not in said
        plurals = [word for word in re.findall(r"\b1(?: more)? ([A-Za-z]+s)\b", said) if word not in NO_PLURALS]
        assert not plurals, (key, said)


def test_the_form_fits_the_count() -> None:
    def said(packets: str) -> str:
        return _words.say("en", "roce_title", packets=packets, bytes="64 B")

    assert said("1") == "RoCE, 1 packet, 64 B payload"
    assert said("2,600") == "RoCE, 2,600 packets, 64 B payload"
