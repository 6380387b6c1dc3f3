"""``wirelab grade``: one submission or a whole class; one bad submission never stops the rest."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from .. import _core, _text
from .._errors import UsageError
from .._format import printable
from .._grade import Lab, Report
from .._words import default_lang, say
from . import _gradebook, _reading, _scores, _table

FORMATS = ("text", "json", "html")
_ENDINGS = {"text": "txt", "json": "json", "html": "html", "gradescope": "json"}
_COLUMNS = ("grade_submission", "grade_points", "grade_status", "grade_review", "grade_failing")
_STATUS = {
    "graded": "grade_graded",
    "partial": "grade_partial",
    "not_assessable": "grade_not_assessable",
    "error": "grade_error",
    # Nothing was made of it, so there is no report either.
    "stopped": "grade_stopped",
}
#: Names that Windows keeps for devices.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def run(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    lab = Lab(given.lab, given.labs)
    submissions = _submissions(given.submissions, given.each, lab)
    if given.output is None and given.format == "html" and len(submissions) > 1:
        raise UsageError("several pages need a folder: name one with -o")
    if given.canvas is not None and given.moodle is not None:
        raise UsageError("one of --canvas and --moodle at a time: --column and --scale speak of that table")
    has_book = given.canvas is not None or given.moodle is not None
    if not has_book and (given.column is not None or given.scale):
        raise UsageError("--column and --scale speak of a table that --canvas or --moodle names")
    if has_book and given.output is None:
        raise UsageError("--canvas and --moodle need a folder for what is to be uploaded: name one with -o")
    if has_book:
        # A table that cannot be filled is told before a class is graded.
        _filled(given, [], lang)
    params = _params(given.param)
    names = _names(submissions)
    if given.output is not None:
        _prepare(given.output, submissions)
    results = _Run(given, lab, lang, params).all(submissions)
    graded = [one for one in results if isinstance(one, Report)]
    if given.output is not None:
        for name, report in zip(names, results, strict=True):
            if isinstance(report, Report):
                path = os.path.join(given.output, f"{name}.{_ENDINGS[given.format]}")
                with _table.output(path) as out:
                    out.write(rendered(report, given.format, lang).encode())
        _show_summary(submissions, results, lang)
        reasons = ["" if isinstance(one, Report) else _reason(one, lang) for one in results]
        for note in _scores.write(given.output, lab, submissions, results, reasons, given.student, lang):
            print("wirelab: " + note, file=sys.stderr)
        _fill_gradebook(given, submissions, results, lang)
    elif given.format in ("json", "gradescope"):
        texts = [rendered(report, given.format, lang) for report in graded]
        sys.stdout.write(texts[0] if len(submissions) == 1 and texts else "[\n" + ",\n".join(texts) + "]\n")
    else:
        is_screen = sys.stdout.isatty()
        width = min(110, max(60, shutil.get_terminal_size((100, 24)).columns))
        is_painted = is_screen and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        for at, report in enumerate(graded):
            if at:
                print("\n" + "─" * width + "\n")
            sys.stdout.write(rendered(report, given.format, lang, width, is_painted))
        if len(submissions) > 1:
            print("\n" + "─" * width + "\n")
            _show_summary(submissions, results, lang)
    for path in given.submissions:
        if not given.each and os.path.isdir(path) and _core.may_be_class(path):
            print("wirelab: " + say(lang, "grade_each_hint", folder=printable(path)), file=sys.stderr)
    failures = [(path, one) for path, one in zip(submissions, results, strict=True) if not isinstance(one, Report)]
    for path, failure in failures:
        reason = _reason(failure, lang)
        print("wirelab: " + (reason if path in reason else f"{printable(path)}: {reason}"), file=sys.stderr)
    if failures and not graded:
        raise _NothingGraded


def _fill_gradebook(given: argparse.Namespace, submissions: Sequence[str], results: Sequence[Any], lang: str) -> None:
    if given.canvas is None and given.moodle is None:
        return
    both = zip(submissions, results, strict=True)
    graded = [_gradebook.Graded(path, report) for path, report in both if isinstance(report, Report)]
    filled = _filled(given, graded, lang)
    path = os.path.join(given.output, "moodle.csv" if given.canvas is None else "canvas.csv")
    if os.path.exists(path) and os.path.samefile(path, given.canvas or given.moodle):
        raise UsageError(f"{printable(path)} is the table that was downloaded: keep that elsewhere")
    with _table.output(path) as out:
        out.write(filled.data)
    for note in filled.notes:
        print("wirelab: " + note, file=sys.stderr)
    print(say(lang, "gradebook_written", path=printable(path), count=filled.count))


def _filled(given: argparse.Namespace, graded: Sequence[_gradebook.Graded], lang: str) -> _gradebook.Filled:
    if given.canvas is not None:
        return _gradebook.canvas(given.canvas, given.column, graded, given.scale, lang)
    return _gradebook.moodle(given.moodle, given.column, graded, given.scale, lang)


def _same_captures(graded: Sequence[Report], lang: str) -> list[str]:
    """Captures that several submissions of this run hold byte for byte."""
    holders: dict[str, dict[str, str]] = {}
    for report in graded:
        for file in report.to_dict()["submission"]["files"]:
            if file["kind"] == "capture" and file["input"] is not None:
                holders.setdefault(file["sha256"], {}).setdefault(report.submission, file["name"])
    return [
        say(
            lang,
            "grade_same_capture",
            held=", ".join(printable(f"{name}/{file}") for name, file in sorted(one.items())),
        )
        for one in holders.values()
        if len(one) > 1
    ]


class _NothingGraded(SystemExit):
    """Nothing could be read: what there is to say was said."""

    def __init__(self) -> None:
        super().__init__(1)


class _Run:
    """Grades submissions, several at once, in the order given."""

    def __init__(self, given: argparse.Namespace, lab: Lab, lang: str, params: dict[str, str]) -> None:
        self._lab = lab
        self._lang = lang
        self._params = params
        self._is_student = given.student
        self._cores = os.cpu_count() or 1
        jobs = _reading.whole(given.jobs, "--jobs")
        if jobs is not None and jobs < 1:
            raise UsageError("--jobs must be at least 1")
        self._jobs = jobs
        self._stop = threading.Event()
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()

    def all(self, submissions: Sequence[str]) -> list[Report | BaseException]:
        jobs = min(self._jobs or self._cores, len(submissions))
        if jobs <= 1:
            results: list[Report | BaseException] = []
            for path in submissions:
                self._tell(len(results), len(submissions))
                results.append(self._one(path, None))
            self._clear()
            return results
        threads = max(1, self._cores // jobs)
        with ThreadPoolExecutor(jobs) as pool:
            futures: list[Future[Report | BaseException]] = [
                pool.submit(self._one, path, threads) for path in submissions
            ]
            try:
                waiting = set(futures)
                while waiting:
                    self._tell(len(futures) - len(waiting), len(futures))
                    # A wait without an end would not notice Ctrl-C on every system.
                    _, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
            except BaseException:
                self._stop.set()
                for future in futures:
                    future.cancel()
                raise
            finally:
                self._clear()
        return [future.result() for future in futures]

    def _one(self, path: str, threads: int | None) -> Report | BaseException:
        try:
            return self._lab.grade(
                path,
                lang=self._lang,
                params=self._params,
                student=self._is_student,
                threads=threads,
                progress=self._look,
            )
        except UsageError:
            # A parameter that the lab does not have is wrong for every submission.
            raise
        except Exception as error:
            return error

    def _look(self, _done: int, _total: int | None) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt

    def _tell(self, done: int, total: int) -> None:
        if self._is_shown and total > 1:
            sys.stderr.write(f"\r{say(self._lang, 'grading')} {done} / {total}\x1b[K")
            sys.stderr.flush()

    def _clear(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _submissions(given: Sequence[str], is_each: bool, lab: Lab) -> list[str]:
    if "" in given:
        raise UsageError("the path of a submission is empty")
    if not is_each:
        return list(given)
    found = []
    for folder in given:
        if not os.path.isdir(folder):
            raise UsageError(f"--each takes folders of submissions; {folder} is none")
        inside = [os.fspath(path) for path in _core.submissions(folder)]
        if _is_one_submission(inside, lab):
            raise UsageError(f"{folder} is one submission: its files are inputs of the lab; leave out --each")
        found += inside
    if not found:
        raise UsageError(f"there is no submission in {', '.join(given)}")
    return found


def _is_one_submission(paths: Sequence[str], lab: Lab) -> bool:
    """Whether these files, by their names, are different inputs of the lab, and no submissions of several people."""
    if any(os.path.isdir(path) for path in paths):
        return False
    named = set()
    for one in lab.facts()["inputs"]:
        # A pattern for any name tells nothing.
        patterns = [pattern.lower() for pattern in one["match"] if not pattern.startswith("*.")]
        for path in paths:
            name = os.path.basename(path).lower()
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                named.add(one["name"])
    return len(named) > 1 and len(paths) > 1


def _params(given: Sequence[str] | None) -> dict[str, str]:
    params = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--param takes name=value, not {text}")
        params[name.strip()] = value
    return params


def _names(submissions: Sequence[str]) -> list[str]:
    """A safe file name for each, none twice, also where case does not count."""
    names: list[str] = []
    taken: set[str] = set()
    for path in submissions:
        base = os.path.basename(os.path.abspath(path))
        if not os.path.isdir(path):
            base = os.path.splitext(base)[0]
        safe = re.sub(r"[^\w.\- ()]", "_", base).strip(" .")[:100].rstrip(" .") or "submission"
        if _DEVICES.fullmatch(safe):
            safe = f"_{safe}"
        name, number = safe, 2
        while name.lower() in taken:
            name, number = f"{safe}-{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names


def _prepare(folder: str, submissions: Sequence[str]) -> None:
    """Makes the folder for reports; it may not lie in a submission, nor be one."""
    real = os.path.realpath(folder)
    for path in submissions:
        own = os.path.realpath(path)
        if real == own or (os.path.isdir(own) and real.startswith(os.path.join(own, ""))):
            raise UsageError(f"{folder} is inside the submission {path}: reports would be mixed with it; name another")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror or error}") from None
    inside = {os.path.realpath(path) for path in submissions if os.path.isfile(path)}
    if any(os.path.dirname(path) == real and path.rsplit(".", 1)[-1] in _ENDINGS.values() for path in inside):
        raise UsageError(f"{folder} holds submissions that a report could overwrite; name another folder with -o")


def rendered(report: Report, format: str, lang: str, width: int = 100, is_painted: bool = False) -> str:
    """The report in one of the formats."""
    if format == "json":
        return report.to_json()
    if format == "gradescope":
        return json.dumps(report.to_gradescope(lang), ensure_ascii=False, indent=2) + "\n"
    return report.to_html(lang) if format == "html" else report.to_text(lang, width, is_painted)


def _show_summary(submissions: Sequence[str], results: Sequence[Any], lang: str) -> None:
    rows = [[say(lang, key) for key in _COLUMNS]]
    for path, report in zip(submissions, results, strict=True):
        name = printable(os.path.basename(os.path.abspath(path)))
        if not isinstance(report, Report):
            rows.append([name, "–", say(lang, "grade_stopped"), say(lang, "grade_yes"), ""])
            continue
        score, most = report._data.points()
        lost = [item["id"] for item in report.items if item["status"] != "pass" and item["counted"] != "excluded"]
        rows.append(
            [
                name,
                "–" if score is None else f"{score} / {most}",
                say(lang, _STATUS[report.status]),
                say(lang, "grade_yes") if report.needs_review else "",
                " ".join(lost),
            ]
        )
    for line in _text.columns(rows, [False, True, False, False, False]):
        print(line)
    if same := _same_captures([report for report in results if isinstance(report, Report)], lang):
        print("\n" + "\n".join(same))
    print(
        "\n" + _summary(Counter(report.status if isinstance(report, Report) else "stopped" for report in results), lang)
    )


def _summary(counts: Counter[str], lang: str) -> str:
    """How many have a grade, and what became of the others."""
    in_part = counts["partial"]
    summary = say(lang, "grade_summary", done=counts["graded"] + in_part, total=sum(counts.values()))
    if in_part:
        summary += say(lang, "grade_in_part", count=in_part)
    for status, key in _STATUS.items():
        if counts[status] and status not in ("graded", "partial"):
            summary += say(lang, "grade_not_graded", count=counts[status], status=say(lang, key))
    return summary


def _reason(failure: BaseException, lang: str) -> str:
    messages = getattr(failure, "messages", {})
    if messages.get(lang):
        return str(messages[lang])
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror
    return f"{type(failure).__name__}: {failure}"
