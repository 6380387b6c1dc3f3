"""Words in English and Chinese, kept in ``words/``."""

from __future__ import annotations

import json
import os
from importlib import resources

LANGUAGES = ("en", "zh")
#: Files of words, each in every language; no two have a key in common.
PARTS = ("info", "grade", "convert")


def default_lang() -> str:
    """What the environment asks for, as programs of the C library read it."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def say(lang: str, key: str, **values: object) -> str:
    """The words under ``key``, with their placeholders filled in.

    ``{count|packet|packets}`` is the first form where ``count`` is 1, else the second.

    Neither form may hold one of ``.:![``.
    """
    return _words(lang)[key].format_map(_Values(values))


class _Values(dict[str, object]):
    def __missing__(self, placeholder: str) -> object:
        name, one, other = placeholder.split("|")
        return one if str(self[name]) == "1" else other


def _words(lang: str) -> dict[str, str]:
    if lang not in _loaded:
        words: dict[str, str] = {}
        for part in PARTS:
            text = (resources.files(__package__) / "words" / f"{part}.{lang}.json").read_text(encoding="utf-8")
            words.update(json.loads(text))
        _loaded[lang] = words
    return _loaded[lang]


_loaded: dict[str, dict[str, str]] = {}
