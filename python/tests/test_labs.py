"""The labs of graders/: sound by their own cases, the same bytes each time, and pages that a browser shows."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import wirelab as wl
from wirelab.cli import main as wirelab

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11 or tomllib")

GRADERS = Path(__file__).parents[2] / "graders"
LABS = sorted(path.parent for path in GRADERS.glob("*/rubric.toml"))
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

by_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)


@by_lab
def test_the_lab_is_sound_and_every_case_gets_just_what_it_must(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["labs", "check", str(lab), "--json"])
    (check,) = json.loads(capsys.readouterr().out)
    problems = check["problems"] + [f"{case['name']}: {one}" for case in check["cases"] for one in case["problems"]]
    assert not problems
    assert status == 0
    assert {case["name"] for case in check["cases"]} == {path.parent.name for path in lab.glob("cases/*/case.toml")}
    for case in check["cases"]:
        # Told once more without the checker: what case.toml says is what the case got.
        expected = tomllib.loads((lab / "cases" / case["name"] / "case.toml").read_text())
        assert case["score"].split(" / ")[0] == expected["score"], case["name"]
        for key in ("failing", "partial", "not_assessable"):
            assert sorted(case[key]) == sorted(expected.get(key, [])), (case["name"], key)
    assert all(cases for _, cases in check["losses"])


@by_lab
def test_grading_twice_gives_the_same_bytes_and_whole_sums(lab: Path, tmp_path: Path) -> None:
    for case in cases(lab):
        report, again = grade(lab, case, tmp_path), grade(lab, case, tmp_path)
        assert report.to_json() == again.to_json(), case.name
        assert report.to_html("zh") == again.to_html("zh"), case.name
        counted = [item for item in report.items if item["counted"] != "excluded"]
        assert report.points == pytest.approx(sum(float(item["points"]) for item in counted))
        for item in report.items:
            if item["status"] in ("fail", "partial"):
                assert item["evidence"] or item["searched"], (case.name, item["id"])
                assert item["hint"]["en"] and item["hint"]["zh"], (case.name, item["id"])
        # No place of the words was left open in any language.
        for lang in ("en", "zh"):
            assert not re.search(r"\{[a-z_.]+(:[a-z]+)?\}", report.to_text(lang)), case.name


@by_lab
def test_a_browser_shows_the_page_in_both_languages_without_a_complaint(lab: Path, tmp_path: Path) -> None:
    if BROWSER is None:
        pytest.skip("no Chromium was found: install the package chromium to test the pages")
    # The one with the most that is lost.
    told = {case: tomllib.loads((case / "case.toml").read_text())["score"] for case in cases(lab)}
    report = grade(lab, min(cases(lab), key=lambda case: float(told[case])), tmp_path)
    for lang in ("en", "zh"):
        page = tmp_path / f"{lang}.html"
        page.write_text(report.to_html(lang), encoding="utf-8")
        shown, console = browse(page, tmp_path / lang)
        assert not console, console
        assert shown.count('<section class="item') == len(report.items)
        text = html.unescape(re.sub(r"<[^>]+>", "", shown)).replace("`", "")
        for item in report.items:
            assert item["title"][lang].replace("`", "") in text
            assert item["message"][lang].replace("`", "") in text


def test_a_page_with_a_script_error_would_be_noticed(tmp_path: Path) -> None:
    if BROWSER is None:
        pytest.skip("no Chromium was found: install the package chromium to test the pages")
    page = tmp_path / "broken.html"
    page.write_text("<!DOCTYPE html><meta charset=utf-8><p>shown</p><script>nothing.at.all()</script>")
    shown, console = browse(page, tmp_path / "profile")
    assert "shown" in shown
    assert any("nothing is not defined" in line for line in console)


def browse(page: Path, profile: Path) -> tuple[str, list[str]]:
    """The page as the browser has it after loading, and what its console says."""
    assert BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={profile}"]
    command = [BROWSER, *options, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def cases(lab: Path) -> list[Path]:
    found = [path.parent for path in sorted(lab.glob("cases/*/case.toml"))]
    assert found
    return found


def grade(lab: Path, case: Path, into: Path) -> wl.Report:
    """The case's report. Its files are put together as a student would hand them in: cases share captures."""
    told = tomllib.loads((case / "case.toml").read_text())
    submission = case / told["submission"] if "submission" in told else into / case.name
    if not submission.exists():
        shutil.copytree(case, submission, ignore=shutil.ignore_patterns("case.toml", "README.md"))
        for name, path in told.get("files", {}).items():
            shutil.copyfile(case / path, submission / name)
    return wl.grade(lab, submission, params=told.get("params"))


def run(arguments: list[str]) -> int:
    try:
        return wirelab(arguments)
    except SystemExit as end:
        return int(end.code or 0)
