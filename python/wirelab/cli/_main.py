"""Arguments in, exit code out: 0 done (also with findings), 1 nothing could be read, 2 the call is at fault.

``convert`` ends with 1 where it could not read all."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import _core, _start
from .._errors import UsageError, WirelabError
from .._words import LANGUAGES, default_lang
from . import _convert, _grade, _info, _labs, _match, _sql, _table

DONE, NOTHING_READ, CALL_AT_FAULT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; a traceback never reaches the user."""
    lang = default_lang()
    try:
        _start.begin()
        parser = _parser()
        given = parser.parse_args(_options_first(parser, sys.argv[1:] if arguments is None else list(arguments)))
        lang = getattr(given, "lang", None) or lang
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        if sys.stdout is None:
            raise UsageError("standard output is closed")
        named = [name for key in ("files", "a", "b") for name in _listed(getattr(given, key, None))]
        if named.count("-") > 1:
            raise UsageError("standard input (-) can be named only once")
        given.run(given)
        sys.stdout.flush()
        return DONE
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else DONE
    except BrokenPipeError:
        # Whoever read our output has seen enough. What is still buffered must not complain at exit.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except UsageError as error:
        return _complain(getattr(error, "messages", {}).get(lang) or str(error), CALL_AT_FAULT)
    except (WirelabError, OSError) as error:
        return _complain(getattr(error, "messages", {}).get(lang) or _text(error), NOTHING_READ)
    except MemoryError:
        return _complain("there is not enough memory for this", NOTHING_READ)
    except Exception as error:
        return _complain(f"wirelab has a fault, please report it: {type(error).__name__}: {error}", NOTHING_READ)


def _options_first(parser: argparse.ArgumentParser, arguments: list[str]) -> list[str]:
    """The same arguments with options before files: argparse does not take files on both sides of an option."""
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    command = commands.choices.get(arguments[0]) if arguments else None
    if command is None or any(isinstance(action, argparse._SubParsersAction) for action in command._actions):
        return arguments
    known = command._option_string_actions
    options: list[str] = []
    others: list[str] = []
    rest = iter(arguments[1:])
    for one in rest:
        if one == "--":
            others += rest
        elif not one.startswith("-") or one == "-":
            others.append(one)
        else:
            options.append(one)
            near = [name for name in known if name == one] or [name for name in known if name.startswith(one)]
            if len({known[name].dest for name in near}) == 1 and known[near[0]].nargs != 0:
                options += [value for value in [next(rest, None)] if value is not None]
    is_odd = any(one.startswith("-") and one != "-" for one in others)
    return [arguments[0], *options, *(["--"] if is_odd else []), *others]


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def _complain(message: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(f"wirelab: {message}", file=sys.stderr)
    return code


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


class _Parser(argparse.ArgumentParser):
    """An argument parser that says what was probably meant."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(CALL_AT_FAULT, f"{self.prog}: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        near = difflib.get_close_matches(str(value), known, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        what = action.metavar or action.dest if not action.option_strings else action.option_strings[0]
        raise argparse.ArgumentError(None, f"there is no {what} {value}{hint}; there are {', '.join(known)}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="wirelab", description="Packet captures of AI-cluster networks as tables.")
    parser.add_argument("--version", action="version", version=f"wirelab {_core.__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)

    info = commands.add_parser("info", help="what a capture is, findings first")
    _add_files(info)
    info.add_argument("--lang", choices=LANGUAGES, help="language of the words (default: that of the environment)")
    info.add_argument("--json", action="store_true", help="for programs")
    _add_reading(info)
    info.set_defaults(run=_info.run)

    table = commands.add_parser("table", help="the rows of a table")
    table.add_argument("table", metavar="TABLE", help="its name; 'wirelab tables' lists them")
    _add_files(table)
    table.add_argument("--format", choices=_table.FORMATS, default="table", help="(default: table, for people)")
    table.add_argument("--columns", metavar="A,B", help="these columns, in this order")
    table.add_argument(
        "--time-from", metavar="TIME", help="rows from this time on: ISO 8601 (UTC), or nanoseconds since 1970"
    )
    table.add_argument("--time-to", metavar="TIME", help="rows before this time")
    table.add_argument("--host", metavar="IP", action="append", help="rows that speak of this address; may be repeated")
    table.add_argument("--port", metavar="N", action="append", help="rows that speak of this port; may be repeated")
    table.add_argument("--limit", metavar="N", help="at most so many rows")
    table.add_argument("-o", "--output", metavar="OUT", help="write to this file")
    table.add_argument("--lang", choices=LANGUAGES, help=argparse.SUPPRESS)
    _add_reading(table)
    table.set_defaults(run=_table.run)

    query = commands.add_parser(
        "sql", help="a query over the tables, as SQLite reads it", description="A query over the tables of captures."
    )
    query.add_argument(
        "query", metavar="QUERY", nargs="?", help='such as "SELECT src_ip, count(*) FROM tcp GROUP BY 1"'
    )
    query.add_argument(
        "files",
        metavar="[NAME=]FILE",
        nargs="*",
        help="capture files; those without a name are one capture, those of a NAME another: NAME.tcp_flows",
    )
    query.add_argument("--tables", action="store_true", help="list all tables with their columns")
    query.add_argument(
        "--param", metavar="NAME=VALUE", action="append", help="the value of :NAME in the query; may be repeated"
    )
    query.add_argument("--format", choices=_table.FORMATS, default="table", help="(default: table, for people)")
    query.add_argument("-o", "--output", metavar="OUT", help="write to this file")
    query.add_argument("--limit-time", metavar="SECONDS", help="most seconds that the query runs (default: 30)")
    query.add_argument("--limit-rows", metavar="N", help="most rows of the result (default: 10000000)")
    query.add_argument("--limit-memory", metavar="SIZE", help="most memory of the result (default: 1GiB)")
    query.add_argument("--lang", choices=LANGUAGES, help="language of messages (default: that of the environment)")
    _add_reading(query)
    query.set_defaults(run=_sql.run)

    compare = commands.add_parser(
        "match", help="two captures of the same traffic: what was lost, delayed, reordered between them"
    )
    compare.add_argument("a", metavar="A", help="capture at one point")
    compare.add_argument("b", metavar="B", help="capture at the other; either may be the one upstream")
    compare.add_argument("--format", choices=_table.FORMATS, default="table", help="(default: table, for people)")
    compare.add_argument("--summary", action="store_true", help="only the figures, as JSON")
    compare.add_argument("--unmatched-only", action="store_true", help="leave out what was delivered")
    compare.add_argument("--same-clock", action="store_true", help="one clock stamped both captures")
    compare.add_argument(
        "--max-packets", metavar="N", help="compare at most so many of each capture (default: 5000000)"
    )
    compare.add_argument("--limit", metavar="N", help="at most so many rows")
    compare.add_argument("-o", "--output", metavar="OUT", help="write to this file")
    compare.add_argument("--lang", choices=LANGUAGES, help="language of the words (default: that of the environment)")
    _add_decoding(compare)
    compare.set_defaults(run=_match.run, link_speed=None, pause_storm=None, log=None, checksums="off")

    convert = commands.add_parser(
        "convert",
        help="many captures to a dataset of Parquet or Arrow files",
        description="Converts captures to DIR/TABLE/capture=NAME/part-0.parquet, which DuckDB, Polars and pandas read "
        "as one table with a column 'capture'. A second run does only what is missing or has changed; one bad file "
        "does not stop the rest (exit code 1 at the end).",
    )
    convert.add_argument("files", metavar="FILE", nargs="+", help="capture files, or folders with captures in them")
    convert.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="empty, not there yet, or the dataset of an earlier run"
    )
    convert.add_argument("--tables", metavar="A,B", help="these tables (default: all); 'wirelab tables' lists them")
    convert.add_argument("--format", choices=_convert.FORMATS, default="parquet", help="(default: parquet)")
    convert.add_argument(
        "--group-by",
        metavar="WHAT",
        default="file",
        help="which files are one capture: each file (default), those of a ring (tcpdump -C), all, or as many in a "
        "row as fit a size, as 2GiB",
    )
    convert.add_argument("--jobs", metavar="N", help="captures at once at most (default: as many as threads)")
    convert.add_argument("--lang", choices=LANGUAGES, help="language of messages (default: that of the environment)")
    _add_reading(convert)
    convert.set_defaults(run=_convert.run)

    grade = commands.add_parser("grade", help="submissions by a lab's rubric")
    grade.add_argument("lab", metavar="LAB", help="its name, or its folder; 'wirelab labs list' lists them")
    grade.add_argument("submissions", metavar="SUBMISSION", nargs="+", help="folders, zips or files, each a submission")
    grade.add_argument("--each", action="store_true", help="what is in each folder named is a submission of its own")
    grade.add_argument("--format", choices=(*_grade.FORMATS, "gradescope"), default="text", help="(default: text)")
    grade.add_argument("-o", "--output", metavar="DIR", help="write a file for each submission into this folder")
    grade.add_argument("--param", metavar="NAME=VALUE", action="append", help="a parameter of the lab; may be repeated")
    grade.add_argument("--student", action="store_true", help="show visible checks only")
    grade.add_argument(
        "--canvas", metavar="CSV", help="a gradebook exported from Canvas: write DIR/canvas.csv to import"
    )
    grade.add_argument("--moodle", metavar="CSV", help="a grading worksheet of Moodle: write DIR/moodle.csv to upload")
    grade.add_argument("--column", metavar="NAME", help="the column of that table that the points go into")
    grade.add_argument("--scale", action="store_true", help="convert points to what that column counts to")
    grade.add_argument("--jobs", metavar="N", help="submissions at once (default: one per core)")
    _add_labs(grade)
    grade.set_defaults(run=_grade.run)

    labs = commands.add_parser("labs", help="which labs there are; check one, begin one")
    actions = labs.add_subparsers(metavar="action", required=True)
    listed = actions.add_parser("list", help="all labs")
    listed.add_argument("--json", action="store_true", help="for programs")
    _add_labs(listed)
    listed.set_defaults(run=_labs.run_list)
    show = actions.add_parser("show", help="what a lab asks")
    show.add_argument("lab", metavar="LAB", help="its name, or its folder")
    show.add_argument("--json", action="store_true", help="for programs")
    _add_labs(show)
    show.set_defaults(run=_labs.run_show)
    check = actions.add_parser("check", help="whether a lab is sound: its files, its words, its cases")
    check.add_argument(
        "lab", metavar="LAB", nargs="+", help="its folder, or the name of one that is in a folder of --labs"
    )
    check.add_argument("--json", action="store_true", help="for programs")
    check.add_argument("--case", metavar="NAME", help="show the report that this case gets")
    check.add_argument("--format", choices=_grade.FORMATS, default="text", help="of that report (default: text)")
    _add_labs(check)
    check.set_defaults(run=_labs.run_check)
    new = actions.add_parser("new", help="a small lab to begin with")
    new.add_argument("name", metavar="NAME", help="small letters, digits and hyphens")
    new.add_argument("--into", metavar="DIR", default=".", help="where its folder is made (default: here)")
    new.add_argument("--lang", choices=LANGUAGES, help="language of the words (default: that of the environment)")
    new.set_defaults(run=_labs.run_new)
    schema = actions.add_parser("schema", help="the JSON Schema of reports")
    schema.set_defaults(run=_labs.run_schema)

    tables = commands.add_parser("tables", help="which tables there are, or the columns of one")
    tables.add_argument("table", metavar="TABLE", nargs="?")
    tables.set_defaults(run=_table.run_tables)
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="capture files; several are one capture; - is standard input"
    )


def _add_labs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labs", metavar="DIR", action="append", help="a folder with your own labs; may be repeated")
    parser.add_argument("--lang", choices=LANGUAGES, help="language of the words (default: that of the environment)")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--link-speed", metavar="BIT/S", help="turns pause quanta into time, as 100G or 25000000000")
    parser.add_argument(
        "--checksums",
        choices=("auto", "on", "off"),
        default="auto",
        help="verify them (default: unless the input is large)",
    )
    parser.add_argument("--pause-storm", metavar="TIME", help="a pause as long is a storm (default: 200ms)")
    parser.add_argument(
        "--log", metavar="FILE", action="append", help="output of perftest: names queue pairs; may be repeated"
    )
    _add_decoding(parser)


def _add_decoding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", metavar="N", help="worker threads (default: one per core)")
    parser.add_argument("--vxlan-port", metavar="N", action="append", help="UDP port of VXLAN; may be repeated")
    parser.add_argument("--roce-port", metavar="N", action="append", help="UDP port of RoCEv2; may be repeated")
