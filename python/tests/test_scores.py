"""The class list beside the reports, and the line that closes a run."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest
from conftest import LAB, Run

from wirelab.cli._grade import _summary
from wirelab.cli._scores import harmless


def scores(reports: Path) -> list[dict[str, str]]:
    with (reports / "scores.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def classroom_of(full: Path, folder: Path, *names: str) -> list[Path]:
    for name in names:
        shutil.copytree(full, folder / name)
    return [folder / name for name in names]


def test_rows_of_submissions_that_are_not_graded_again_stay(full: Path, tmp_path: Path, wirelab: Run) -> None:
    room, reports = tmp_path / "class", tmp_path / "reports"
    evil, a, _b, d = classroom_of(full, room, "=1+1", "a", "b", "d")
    first = wirelab("grade", LAB, room, "--each", "-o", reports, "--lang", "en")
    assert (first.returncode, first.stderr) == (0, b"")
    before = scores(reports)
    assert [row["name"] for row in before] == ["'=1+1", "a", "b", "d"]
    (a / "tcp.pcap").unlink()
    (c,) = classroom_of(full, room, "c")
    # Given in another order; one is new, one lost points, one has a name that is written otherwise.
    again = wirelab("grade", LAB, c, a, evil, "-o", reports, "--lang", "en")
    assert again.returncode == 0
    assert again.stderr.decode() == f"wirelab: {reports / 'scores.csv'}: 2 rows of earlier runs were kept\n"
    after = scores(reports)
    assert [row["name"] for row in after] == ["'=1+1", "a", "b", "c", "d"]
    assert [row for row in after if row["name"] in ("'=1+1", "b", "d")] == [before[0], before[2], before[3]]
    assert (before[1]["points"], after[1]["points"]) == ("7.75", "4.75")
    assert (reports / "scores.csv").read_bytes().startswith(b"\xef\xbb\xbfname,")
    assert not list(reports.glob("scores.before*"))
    # What cannot be read any more was not graded.
    shutil.rmtree(d)
    gone = wirelab("grade", LAB, d, a, "-o", reports, "--lang", "zh")
    assert gone.returncode == 0 and scores(reports) == after
    assert "scores.csv：保留了以前评分的 4 行" in gone.stderr.decode()
    # All of them: nothing is kept, and the order is the one given.
    assert wirelab("grade", LAB, a, c, room / "b", evil, "-o", tmp_path / "other").stderr == b""
    assert [row["name"] for row in scores(tmp_path / "other")] == ["a", "c", "b", "'=1+1"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"name,points\r\na,1\r\n", "has other columns"),
        ("姓名;得分\r\n张三;1\r\n".encode("gbk"), "cannot be read as CSV in UTF-8"),
        (None, "cannot be read as CSV in UTF-8"),
    ],
    ids=["columns", "encoding", "cells"],
)
def test_a_class_list_that_cannot_be_taken_over_is_kept(
    text: bytes | None, why: str, full: Path, tmp_path: Path, wirelab: Run
) -> None:
    reports = tmp_path / "reports"
    list_ = reports / "scores.csv"
    for number, kept in enumerate(("scores.before.csv", "scores.before-2.csv"), 1):
        wirelab("grade", LAB, full, "-o", reports)
        found = list_.read_bytes() + b'"b,1\r\n' if text is None else text + b"\r\n" * number
        list_.write_bytes(found)
        done = wirelab("grade", LAB, full, "-o", reports, "--lang", "en")
        assert done.returncode == 0 and why in done.stderr.decode() and kept in done.stderr.decode(), done.stderr
        assert (reports / kept).read_bytes() == found
        assert [row["name"] for row in scores(reports)] == ["full"]
    wirelab("grade", LAB, full, "-o", reports, "--student")
    assert "no_copies" in (reports / "scores.before-3.csv").read_text(encoding="utf-8-sig")
    assert "no_copies" not in list_.read_text(encoding="utf-8-sig")


def test_of_two_with_one_name_none_is_lost(full: Path, tmp_path: Path, wirelab: Run) -> None:
    (one,), (other,) = (classroom_of(full, tmp_path / room, "a") for room in ("monday", "tuesday"))
    (other / "tcp.pcap").unlink()
    reports = tmp_path / "reports"
    wirelab("grade", LAB, one, other, "-o", reports)
    both = scores(reports)
    assert [(row["name"], row["points"]) for row in both] == [("a", "7.75"), ("a", "4.75")]
    done = wirelab("grade", LAB, one, "-o", reports, "--lang", "en")
    assert scores(reports) == both and "several rows with a name of this run (a)" in done.stderr.decode()
    assert (reports / "scores.before.csv").is_file()
    # Both again: it is clear which rows go.
    assert wirelab("grade", LAB, one, other, "-o", reports).stderr == b"" and scores(reports) == both


def test_a_row_of_the_class_list_is_no_formula_and_tells_what_could_not_be_read(
    full: Path, tmp_path: Path, wirelab: Run
) -> None:
    evil = tmp_path / "=1+1"
    shutil.copytree(full, evil)
    done = wirelab("grade", LAB, evil, tmp_path / "none", "-o", tmp_path / "out", "--student", "--lang", "en")
    assert done.returncode == 0
    with (tmp_path / "out" / "scores.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    # Not all checks are shown, so there is no total.
    assert (rows[0]["name"], rows[0]["points"], rows[0]["of"]) == ("'=1+1", "", "") and "no_copies" not in rows[0]
    assert (rows[0]["status"], rows[0]["review_reason"]) == ("graded", "")
    assert rows[1]["name"] == "none" and "no such file" in rows[1]["error"] and rows[1]["needs_review"] == "true"
    assert rows[1]["status"] == "error" and rows[1]["review_reason"] == rows[1]["error"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(1)", " =1", "\t=1", "|x", "＝1"])
def test_no_name_is_a_formula_in_a_spreadsheet(name: str) -> None:
    told = harmless(name)
    assert told[0] in ("'", "\\") and not told.startswith(("=", "+", "-", "@")), told
    assert harmless("a=1-2") == "a=1-2" and harmless(told) == told


def test_the_closing_line_counts_those_that_have_a_grade(full: Path, tmp_path: Path, wirelab: Run) -> None:
    a, b = classroom_of(full, tmp_path, "a", "b")
    (b / "ping.pcap").unlink()
    unreadable = tmp_path / "noise.bin"
    unreadable.write_bytes(b"\x00\xff" * 99)
    given = ("grade", LAB, a, b, unreadable, tmp_path / "none")
    for options in ((), ("-o", tmp_path / "out")):
        english = wirelab(*given, *options, "--lang", "en").stdout.decode().splitlines()[-1]
        assert english == "2 of 4 submissions graded (1 in part), 1 unreadable, 1 failed"
        chinese = wirelab(*given, *options, "--lang", "zh").stdout.decode().splitlines()[-1]
        assert chinese == "共 4 份提交，已评 2 份（其中 1 份为部分评分），1 份无法读取，1 份出错"
    counts = Counter(graded=6, error=4, not_assessable=2)
    assert _summary(counts, "en") == "6 of 12 submissions graded, 2 not assessable, 4 unreadable"
    assert _summary(counts, "zh") == "共 12 份提交，已评 6 份，2 份无法评分，4 份无法读取"
