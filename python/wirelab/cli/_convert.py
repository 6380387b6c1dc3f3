"""``wirelab convert``: many captures to a dataset; one bad file never stops the rest."""

from __future__ import annotations

import argparse
import sys

from .. import _format
from .._convert import ConvertedCapture, convert
from .._errors import UsageError
from .._format import printable
from .._words import default_lang, say
from . import _reading

FORMATS = ("parquet", "arrow")


def run(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    tables = None if given.tables is None else [name.strip() for name in given.tables.split(",") if name.strip()]
    if tables == []:
        raise UsageError("--tables names no table")
    jobs = _reading.whole(given.jobs, "--jobs")
    if jobs is not None and jobs < 1:
        raise UsageError("--jobs must be at least 1")
    group_by: str | int = given.group_by
    if group_by not in ("file", "ring", "all"):
        group_by = _reading.size(given.group_by, "--group-by", "file, ring, all or a size, as 500M or 2GiB")
    try:
        with _reading.Progress(given.files, lang, "converting", least_bytes=0) as progress:
            done = convert(
                given.files,
                given.output,
                tables,
                format=given.format,
                group_by=group_by,
                jobs=jobs,
                errors="report",
                progress=progress.callback,
                **_reading.options(given),
            )
    except KeyboardInterrupt as stop:
        finished = getattr(stop, "conversion", None)
        if finished is None:
            print(f"wirelab: {say(lang, 'convert_stopped')}", file=sys.stderr)
            raise
        done = finished
    for capture in done.captures:
        for warning in capture.warnings(lang):
            print(f"wirelab: {_told(capture, warning)}", file=sys.stderr)
        if capture.error is not None:
            messages = getattr(capture.error, "messages", {})
            print(f"wirelab: {_told(capture, messages.get(lang) or str(capture.error))}", file=sys.stderr)
    rows = sum(count for capture in done.written for count in capture.rows.values())
    print(
        say(
            lang,
            "convert_done",
            path=printable(done.path),
            written=_format.count(len(done.written)),
            rows=_format.count(rows),
            unchanged=_format.count(len(done.unchanged)),
            failed=_format.count(len(done.failed)),
        )
    )
    if done.outdated_count:
        print(say(lang, "convert_outdated", count=_format.count(done.outdated_count)))
    if done.gone_count:
        print(say(lang, "convert_gone", path=printable(done.path), count=_format.count(done.gone_count)))
    if done.failed:
        raise SystemExit(1)


def _told(capture: ConvertedCapture, message: str) -> str:
    """A message with the file that it is about; most name it themselves."""
    names_it = any(file in message for file in capture.files)
    return printable(message if names_it else f"{capture.name}: {message}")
