"""``wirelab grade``: one submission or a whole class; one bad submission never stops the rest."""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any

from .. import _core, _text
from .._errors import UsageError
from .._format import printable
from .._grade import Lab, Report
from .._tabular import WholeFile, is_same
from .._words import default_lang, say
from . import _gradebook, _owners, _reading, _scores

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
#: Most bytes of a submission's name in that of its report: file systems take 255, for endings and all.
_NAME_BYTES = 150
#: Names that Windows keeps for devices.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def run(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    lab = Lab(given.lab, given.labs)
    if given.output == "":
        raise UsageError("-o names no folder")
    submissions = _submissions(given.submissions, given.each, lab, given.output, lang)
    if given.output is None and given.format == "html" and len(submissions) > 1:
        raise UsageError("several pages need a folder: name one with -o")
    if given.canvas is not None and given.moodle is not None:
        raise UsageError("one of --canvas and --moodle at a time: --column and --scale speak of that table")
    has_book = given.canvas is not None or given.moodle is not None
    if not has_book and (given.column is not None or given.scale):
        raise UsageError("--column and --scale speak of a table that --canvas or --moodle names")
    if has_book and given.output is None:
        raise UsageError("--canvas and --moodle need a folder for what is to be uploaded: name one with -o")
    # A table that cannot be filled is told before a class is graded.
    book = _book(given, lang)
    params = _params(given.param)
    run = _Run(given, lab, lang, params)
    is_all_written = True
    if given.output is not None:
        folder = _Folder(given, lab, lang, submissions)
        results = folder.graded(run)
        # Before anything is said: standard output may be closed by now.
        try:
            told = folder.fill_gradebook(book)
        finally:
            _show_summary(submissions, results, lang)
            folder.tell_unwritten()
        if told:
            print(told)
        is_all_written = not folder.unwritten
    else:
        results = run.all(submissions)
        _show(given, submissions, results, lang)
    for path in given.submissions:
        if not given.each and os.path.isdir(path) and _core.may_be_class(path):
            print("wirelab: " + say(lang, "grade_each_hint", folder=printable(path)), file=sys.stderr)
    failures = [(path, one) for path, one in zip(submissions, results, strict=True) if not isinstance(one, Report)]
    for path, failure in failures:
        reason = _reason(failure, lang)
        print("wirelab: " + (reason if path in reason else f"{printable(path)}: {reason}"), file=sys.stderr)
    if not is_all_written or len(failures) == len(submissions):
        raise _Failed


def _show(given: argparse.Namespace, submissions: Sequence[str], results: Sequence[Any], lang: str) -> None:
    """All reports on standard output."""
    graded = [one for one in results if isinstance(one, Report)]
    if given.format in ("json", "gradescope"):
        texts = [rendered(report, given.format, lang) for report in graded]
        sys.stdout.write(texts[0] if len(submissions) == 1 and texts else "[\n" + ",\n".join(texts) + "]\n")
        return
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


class _Folder:
    """The folder of ``-o``: every report is in it as soon as there is one, and one that cannot be written costs no
    other.
    """

    def __init__(self, given: argparse.Namespace, lab: Lab, lang: str, submissions: Sequence[str]) -> None:
        self._given = given
        self._lab = lab
        self._lang = lang
        self._submissions = submissions
        is_case_blind = _prepare(given.output, submissions)
        self._book = os.path.join(given.output, "moodle.csv" if given.canvas is None else "canvas.csv")
        if is_same(given.canvas or given.moodle or "", self._book):
            raise UsageError(f"{printable(self._book)} is the table that was downloaded: keep that elsewhere")
        # One of an earlier run must not be taken for what this one gives.
        if (given.canvas or given.moodle) and os.path.isfile(self._book):
            os.remove(self._book)
        self._names = _names(submissions, given.output, _ENDINGS[given.format], is_case_blind)
        self._results: dict[int, Report | BaseException] = {}
        self._kept = 0
        #: What could not be written, and why.
        self.unwritten: list[str] = []

    def graded(self, run: _Run) -> list[Report | BaseException]:
        try:
            results = run.all(self._submissions, self._keep)
        except BaseException as stop:
            self._list_scores()
            self.tell_unwritten()
            if isinstance(stop, KeyboardInterrupt):
                total, folder = len(self._submissions), printable(self._given.output)
                words = say(self._lang, "grade_interrupted", done=self._kept, total=total, folder=folder)
                print("wirelab: " + words, file=sys.stderr)
            raise
        self._list_scores()
        return results

    def fill_gradebook(self, book: _gradebook.Canvas | _gradebook.Moodle | None) -> str | None:
        """Returns what is to be said of it."""
        if book is None:
            return None
        both = ((self._submissions[at], self._results[at]) for at in sorted(self._results))
        filled = book.filled([_owners.Graded(path, report) for path, report in both if isinstance(report, Report)])
        is_written = self._put(self._book, filled.data)
        for note in filled.notes:
            print("wirelab: " + note, file=sys.stderr)
        return (
            say(self._lang, "gradebook_written", path=printable(self._book), count=filled.count) if is_written else None
        )

    def tell_unwritten(self) -> None:
        for one in self.unwritten:
            print("wirelab: " + one, file=sys.stderr)

    def _keep(self, at: int, result: Report | BaseException) -> None:
        if isinstance(result, Report):
            text = rendered(result, self._given.format, self._lang)
            self._kept += self._put(os.path.join(self._given.output, self._names[at]), text.encode())
        self._results[at] = result

    def _put(self, path: str, data: bytes) -> bool:
        try:
            with WholeFile(path) as out:
                out.write(data)
        except OSError as error:
            self._miss(path, error)
            return False
        return True

    def _miss(self, path: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        self.unwritten.append(say(self._lang, "grade_unwritten", path=printable(path), reason=reason))

    def _list_scores(self) -> None:
        """The class list, also of a run that was stopped: then of those that were graded, as in a rerun of them."""
        places = sorted(self._results)
        if not places:
            return
        results = [self._results[at] for at in places]
        reasons = ["" if isinstance(one, Report) else _reason(one, self._lang) for one in results]
        submissions = [self._submissions[at] for at in places]
        given = self._given
        try:
            notes = _scores.write(given.output, self._lab, submissions, results, reasons, given.student, self._lang)
        except UsageError as error:
            self.unwritten.append(str(error))
        except OSError as error:
            self._miss(os.path.join(given.output, _scores.NAME), error)
        else:
            for note in notes:
                print("wirelab: " + note, file=sys.stderr)


def _book(given: argparse.Namespace, lang: str) -> _gradebook.Canvas | _gradebook.Moodle | None:
    if given.canvas is not None:
        return _gradebook.Canvas(given.canvas, given.column, given.scale, lang)
    return None if given.moodle is None else _gradebook.Moodle(given.moodle, given.column, given.scale, lang)


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


class _Failed(SystemExit):
    """Nothing could be read, or not everything be written: what there is to say was said."""

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

    def all(
        self,
        submissions: Sequence[str],
        keep: Callable[[int, Report | BaseException], None] = lambda at, result: None,
    ) -> list[Report | BaseException]:
        """``keep`` gets what became of each, with its place among the submissions, as soon as that is known."""
        jobs = min(self._jobs or self._cores, len(submissions))
        results: dict[int, Report | BaseException] = {}

        def done(at: int, result: Report | BaseException) -> None:
            keep(at, result)
            results[at] = result

        if jobs <= 1:
            try:
                for at, path in enumerate(submissions):
                    self._tell(at, len(submissions))
                    done(at, self._one(path, None))
            finally:
                self._clear()
            return list(results.values())
        threads = max(1, self._cores // jobs)
        with ThreadPoolExecutor(jobs) as pool:
            places = {pool.submit(self._one, path, threads): at for at, path in enumerate(submissions)}
            try:
                waiting = set(places)
                while waiting:
                    self._tell(len(places) - len(waiting), len(places))
                    # A wait without an end would not notice Ctrl-C on every system.
                    ended, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                    for future in ended:
                        done(places[future], future.result())
            except BaseException:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
                # What came to its end meanwhile was graded as well.
                for future, at in places.items():
                    if at not in results and not future.cancelled() and future.exception() is None:
                        done(at, future.result())
                raise
            finally:
                self._clear()
        return [results[at] for at in range(len(submissions))]

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


def _submissions(given: Sequence[str], is_each: bool, lab: Lab, output: str | None, lang: str) -> list[str]:
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
        if output is not None and _is_inside(output, folder):
            raise UsageError(
                f"with --each everything in {folder} is a submission, so reports cannot go into {output}: the next run "
                "would grade them; name a folder outside with -o"
            )
        found += inside
        if others := [printable(os.path.basename(path)) for path in _core.left_out(folder)]:
            names = ", ".join(others[:10]) + (", …" if len(others) > 10 else "")
            print("wirelab: " + say(lang, "grade_left_out", folder=printable(folder), names=names), file=sys.stderr)
    if not found:
        raise UsageError(f"there is no submission in {', '.join(given)}")
    return found


def _is_one_submission(paths: Sequence[str], lab: Lab) -> bool:
    """Whether these files, by their names, are different inputs of the lab, and no submissions of several people."""
    names = [os.path.basename(path) for path in paths]
    is_archive = any(name.lower().endswith((".zip", ".rar", ".7z", ".tar", ".tgz", ".tar.gz")) for name in names)
    if is_archive or any(map(os.path.isdir, paths)) or any(map(_owners.is_download, names)):
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


def _names(submissions: Sequence[str], folder: str, ending: str, is_case_blind: bool) -> list[str]:
    """The file of each report. It follows from the submission's own name alone, so that a later run of some of them
    finds their reports and nobody else's. Only where several of a run have one name, where they lie tells them apart,
    and does so from then on.
    """

    def key(name: str) -> str:
        # As file systems of Windows and macOS compare names.
        return unicodedata.normalize("NFC", name).casefold() if is_case_blind else name

    paths = [os.path.abspath(path) for path in submissions]
    plain = [_safe(os.path.basename(path)) for path in paths]
    count = Counter(key(name) for name, _ in {*zip(plain, paths, strict=True)})
    names = []
    for name, path in zip(plain, paths, strict=True):
        apart = f"{name}-{_hash(path)}"
        was_apart = any(os.path.lexists(os.path.join(folder, f"{apart}.{one}")) for one in _ENDINGS.values())
        names.append(f"{apart if was_apart or count[key(name)] > 1 else name}.{ending}")
    return names


def _safe(name: str) -> str:
    """A name that every system takes. One that is not what it was has a hash of that, so that no two become one."""
    safe = re.sub(r"[^\w.\- ()]", "_", name).strip(" .")
    # Systems count bytes: a Chinese character is three.
    safe = safe.encode()[:_NAME_BYTES].decode(errors="ignore").rstrip(" .") or "submission"
    if _DEVICES.fullmatch(safe):
        safe = f"_{safe}"
    return safe if safe == name else f"{safe}-{_hash(name)}"


def _hash(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]


def _prepare(folder: str, submissions: Sequence[str]) -> bool:
    """Makes the folder for reports, and tells whether names in it are the same in capitals. It may not lie in a
    submission, nor be one, and must take files: that is told before a class is graded.
    """
    for path in submissions:
        if is_same(path, folder) or (os.path.isdir(path) and _is_inside(folder, path)):
            raise UsageError(f"{folder} is inside the submission {path}: reports would be mixed with it; name another")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror or error}") from None
    real = os.path.realpath(folder)
    inside = {os.path.realpath(path) for path in submissions if os.path.isfile(path)}
    if any(os.path.dirname(path) == real and path.rsplit(".", 1)[-1] in _ENDINGS.values() for path in inside):
        raise UsageError(f"{folder} holds submissions that a report could overwrite; name another folder with -o")
    try:
        # Permissions alone do not tell: a file system may be read-only.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".Wirelab-") as probe:
            return os.path.lexists(os.path.join(folder, os.path.basename(probe.name).swapcase()))
    except OSError as error:
        raise UsageError(f"no file can be written into {folder}: {error.strerror or error}") from None


def _is_inside(folder: str, outer: str) -> bool:
    """Whether a folder, which need not be there yet, is the other one or lies in it at any depth."""
    at = os.path.realpath(folder)
    while not is_same(outer, at):
        at, below = os.path.dirname(at), at
        if at == below:
            return False
    return True


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
