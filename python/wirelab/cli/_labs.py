"""``wirelab labs``: which there are, what they ask, whether they are sound, and a new one to begin with."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Sequence

from .. import _arguments, _core, _text
from .._errors import UsageError
from .._grade import Lab, Report, folders
from .._words import default_lang, say
from . import _grade


def run_list(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    rows = []
    for name, folder in _core.labs(folders(given.labs)):
        try:
            facts = Lab(name if folder is None else folder, given.labs).facts(lang)
            rows.append([name, facts["version"], facts["max_score"], facts["title"]])
        except UsageError as error:
            # One lab that is not sound does not hide the others.
            rows.append([name, "–", "–", str(error).splitlines()[0]])
    if given.json:
        keys = ("id", "version", "max_score", "title")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], ensure_ascii=False, indent=2))
    elif rows:
        print("\n".join(_text.columns(rows, [False, False, True, False])))
    else:
        print(say(lang, "labs_none"))


def run_show(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    facts = Lab(given.lab, given.labs).facts(lang)
    if given.json:
        print(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    lines = [f"{facts['title']}", f"{facts['id']} {facts['version']}", "", *_text.wrapped(facts["summary"], 100), ""]
    lines.append(say(lang, "labs_inputs"))
    for one in facts["inputs"]:
        optional = "" if one["required"] else f" ({say(lang, 'labs_optional')})"
        kind = _kind(one["kind"], lang)
        lines.append(f"  {one['name']}: {one['words']}{optional}; {kind} {' '.join(one['match'])}".rstrip())
    if facts["params"]:
        lines += ["", say(lang, "labs_params")]
        lines += [f"  {one['name']} = {one['default']} ({_kind(one['type'], lang)})" for one in facts["params"]]
    lines += ["", f"{say(lang, 'labs_checks')} ({say(lang, 'labs_total', points=facts['max_score'])})"]
    rows = [
        [one["points"], one["id"], one["title"] + ("" if one["visible"] else f" ({say(lang, 'labs_hidden')})")]
        for one in facts["checks"]
    ]
    lines += ["  " + line for line in _text.columns(rows, [True, False, False])]
    if facts["readme"]:
        lines += ["", facts["readme"].rstrip()]
    print("\n".join(lines))


#: Kinds of inputs and of parameters that are words; the others are names of programs.
_KINDS = {
    "capture": "labs_kind_capture",
    "text": "labs_kind_text",
    "integer": "labs_kind_integer",
    "number": "labs_kind_number",
    "boolean": "labs_kind_boolean",
}


def _kind(name: str, lang: str) -> str:
    return say(lang, _KINDS[name]) if name in _KINDS else name


def run_check(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    options = _arguments.options(None, None, None, None, "auto")
    folders_of_labs = [_folder(name, given.labs, lang) for name in given.lab]
    checks = [_core.check_lab(folder, options, given.case) for folder in folders_of_labs]
    if given.case is not None:
        _show_case(checks, given.case, given.format, lang)
        return
    if given.json:
        for check in checks:
            for case in check["cases"]:
                del case["report"]
        print(json.dumps(checks, ensure_ascii=False, indent=2))
    else:
        for at, check in enumerate(checks):
            if at:
                print()
            _show_check(check, lang)
    if not all(check["is_sound"] for check in checks):
        sys.stdout.flush()
        raise SystemExit(1)


def _folder(name: str, given: Sequence[str] | None, lang: str) -> str:
    """The folder of a lab: itself, or that of the lab with this name."""
    if os.path.isfile(os.path.join(name, "rubric.toml")):
        return name
    known = dict(_core.labs(folders(given)))
    folder = known.get(name)
    if folder is not None:
        return os.fspath(folder)
    # A folder without a rubric is one that somebody is about to make a lab.
    if os.path.exists(name) or os.path.basename(name) != name or not name:
        return name
    if name not in known:
        # Says which labs there are.
        Lab(name, given)
    raise UsageError(say(lang, "labs_without_cases", lab=name))


def _show_case(checks: list[dict], name: str, format: str, lang: str) -> None:  # type: ignore[type-arg]
    """The report that one case gets."""
    cases = {case["name"]: case for check in checks for case in check["cases"]}
    if name not in cases:
        broken = [problem for check in checks if not check["case_names"] for problem in check["problems"]]
        if broken:
            raise UsageError("\n".join(broken))
        names = [one for check in checks for one in check["case_names"]]
        near = difflib.get_close_matches(name, names, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"there is no case {name}{hint}; there are {', '.join(names) or 'none'}")
    report = cases[name]["report"]
    if report is None:
        raise UsageError(f"case {name} cannot be graded: {'; '.join(cases[name]['problems'])}")
    sys.stdout.write(_grade.rendered(Report(report, lang), format, lang))
    sys.stdout.flush()
    for problem in cases[name]["problems"]:
        print(f"cases/{name}: {problem}", file=sys.stderr)
    print("wirelab: " + say(lang, "labs_one_case", case=name), file=sys.stderr)
    if cases[name]["problems"]:
        raise SystemExit(1)


def _show_check(check: dict, lang: str) -> None:  # type: ignore[type-arg]
    cases = check["cases"]
    if cases:
        keys = ("labs_case", "labs_score", "labs_failing", "labs_partly", "labs_not_assessable", "labs_result")
        rows = [[say(lang, key) for key in keys]]
        for case in cases:
            lists = (_ids(case[key]) for key in ("failing", "partial", "not_assessable"))
            rows.append(
                [
                    case["name"],
                    case["score"] or "–",
                    *lists,
                    say(lang, "labs_not_ok" if case["problems"] else "labs_ok"),
                ]
            )
        print("\n".join(_text.columns(rows, [False, True, False, False, False, False])))
        print()
    if check["losses"]:
        rows = [[say(lang, "labs_check"), say(lang, "labs_fails_in")]]
        rows += [[name, " ".join(of) or "–"] for name, of in check["losses"]]
        print("\n".join(_text.columns(rows, [False, False])))
        print()
    for note in check["notes"]:
        print(say(lang, "labs_note", note=note))
    problems = [
        *check["problems"],
        *(f"cases/{case['name']}: {problem}" for case in cases for problem in case["problems"]),
    ]
    for problem in problems:
        print(problem)
    if problems:
        print(say(lang, "labs_problems", lab=check["lab"], count=len(problems)))
    else:
        print(say(lang, "labs_sound", lab=check["lab"], cases=len(cases), checks=len(check["losses"])))


def _ids(names: Sequence[str]) -> str:
    return " ".join(names)


def run_new(given: argparse.Namespace) -> None:
    lang = given.lang or default_lang()
    folder = _core.new_lab(given.name, given.into)
    print(say(lang, "labs_new", folder=os.fspath(folder)))


def run_schema(_given: argparse.Namespace) -> None:
    sys.stdout.write(_core.report_schema())
