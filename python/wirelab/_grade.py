"""A submission graded by a lab's rubric."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _arguments, _core, _gradescope
from ._errors import UsageError
from ._words import LANGUAGES, default_lang


class Report:
    """How a submission did. ``str()`` of it is the report as text; a notebook shows it as a page."""

    __slots__ = ("_data", "_json", "_lang")

    def __init__(self, data: _core.Report, lang: str) -> None:
        self._data = data
        self._lang = lang
        self._json: dict[str, Any] | None = None

    @property
    def points(self) -> float | None:
        """The score, a bare float: the last expression of an nbgrader cell. None where a total would tell of checks
        that are not shown."""
        score, _ = self._data.points()
        return None if score is None else float(score)

    @property
    def max_points(self) -> float | None:
        """The most that could be had."""
        _, most = self._data.points()
        return None if most is None else float(most)

    @property
    def status(self) -> str:
        """``graded``, ``partial``, ``not_assessable`` or ``error``."""
        return self._data.status

    @property
    def needs_review(self) -> bool:
        """Whether a person should look at it."""
        return self._data.needs_review

    @property
    def submission(self) -> str:
        """What was graded: the name of the folder or file."""
        return self._data.submission

    @property
    def items(self) -> list[dict[str, Any]]:
        """One for each check, as in :meth:`to_dict`."""
        items: list[dict[str, Any]] = self.to_dict()["items"]
        return items

    def to_dict(self) -> dict[str, Any]:
        """The canonical result; its JSON Schema is printed by ``wirelab labs schema``."""
        if self._json is None:
            self._json = json.loads(self._data.json())
        return json.loads(json.dumps(self._json))  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The same as text: the same bytes for the same submission, rubric and version."""
        return self._data.json()

    def to_html(self, lang: str | None = None) -> str:
        """A page that needs nothing else."""
        return self._data.html(_lang(lang) or self._lang, True)

    def to_gradescope(self, lang: str | None = None) -> dict[str, Any]:
        """What Gradescope's autograder reads from ``results.json``."""
        return _gradescope.results(self, _lang(lang) or self._lang)

    def to_text(self, lang: str | None = None, width: int = 100, painted: bool = False) -> str:
        """The report for a terminal."""
        return self._data.text(_lang(lang) or self._lang, max(0, int(width)), bool(painted))

    def for_student(self) -> Report:
        """What the student may see: visible checks, and no total that would tell of others."""
        return Report(self._data.for_student(), self._lang)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        score, most = self._data.points()
        points = "no total" if score is None else f"{score} of {most}"
        return f"<wirelab.Report {self.submission}: {points}, {self.status}>"

    def _repr_html_(self) -> str:
        return self._data.html(self._lang, False)


class Lab:
    """A lab, read once to grade many submissions."""

    __slots__ = ("_data",)

    def __init__(self, name: str | os.PathLike[str], labs: Any = None) -> None:
        if not isinstance(name, (str, os.PathLike)):
            raise UsageError(f"a lab is its name or its folder, not {type(name).__name__}")
        if not os.fspath(name):
            raise UsageError("the name of the lab is empty; 'wirelab labs list' lists the labs")
        self._data = _core.lab(os.fsdecode(name), folders(labs))

    @property
    def id(self) -> str:
        return self._data.id

    def facts(self, lang: str | None = None) -> dict[str, Any]:
        """Title, parameters, inputs and checks."""
        return self._data.facts(_lang(lang) or default_lang())

    def grade(
        self,
        submission: Any,
        *,
        lang: str | None = None,
        params: Mapping[str, Any] | None = None,
        student: bool = False,
        threads: int | None = None,
        progress: _arguments.Progress | None = None,
    ) -> Report:
        """Like :func:`wirelab.grade`."""
        lang = _lang(lang) or default_lang()
        paths, content = _submission(submission)
        options = _arguments.options(threads, None, None, None, "auto")
        data = self._data.grade(paths, content, texts(params), options, _arguments.progress(progress))
        report = Report(data, lang)
        return report.for_student() if student else report

    def __repr__(self) -> str:
        return f"<wirelab.Lab {self.id}>"


def grade(
    lab: str | os.PathLike[str],
    submission: Any = None,
    *,
    lang: str | None = None,
    params: Mapping[str, Any] | None = None,
    labs: Any = None,
    student: bool = False,
    threads: int | None = None,
    progress: _arguments.Progress | None = None,
) -> Report:
    """Grades a submission by a lab's rubric.

    ``lab``: its name, or its folder. ``submission``: a folder, a zip or a file, several files, or the bytes of one.
    ``lang``: ``en`` or ``zh``, for ``str()`` and the notebook (default: that of the environment).
    ``params``: values of the lab's parameters. ``labs``: folders with labs of your own.
    ``student``: visible checks only.

    A bad submission raises nothing: what is wrong with it is in the report.
    """
    return Lab(lab, labs).grade(
        submission, lang=lang, params=params, student=student, threads=threads, progress=progress
    )


def folders(given: Any) -> list[str]:
    """One folder, several, or none."""
    if given is None:
        return []
    if isinstance(given, (str, bytes, os.PathLike)):
        given = [given]
    try:
        return [os.fsdecode(one) for one in given]
    except TypeError:
        raise UsageError(f"labs must be a folder with labs in it, or several, not {given!r}") from None


def texts(params: Mapping[str, Any] | None) -> dict[str, str]:
    """Values of parameters as the lab reads them."""
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise UsageError(f"params must be a mapping of names to values, not {params!r}")
    return {str(name): _param(value) for name, value in params.items()}


def _param(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _submission(given: Any) -> tuple[list[str], tuple[str, bytes] | None]:
    if isinstance(given, (bytes, bytearray, memoryview)):
        return [], ("submission", bytes(given))
    if isinstance(given, (str, os.PathLike)):
        path = os.fsdecode(given)
        if not path:
            raise UsageError("the path of the submission is empty")
        return [path], None
    if given is None:
        raise UsageError("what is handed in is missing: a folder, an archive, a file, several files or bytes")
    try:
        paths = [os.fsdecode(one) for one in given]
    except TypeError:
        raise UsageError(
            f"a submission is a folder, an archive, a file, several files or bytes, not {type(given).__name__}"
        ) from None
    if not paths:
        raise UsageError("a submission is a folder, an archive or at least one file")
    return paths, None


def _lang(given: str | None) -> str | None:
    if given is None:
        return None
    lang = str(given).lower().replace("_", "-").split("-")[0]
    if lang not in LANGUAGES:
        raise UsageError(f"lang must be one of {', '.join(LANGUAGES)}, not {given!r}")
    return lang
