"""Grades into the tables of Canvas and Moodle, and into what Gradescope reads."""

from __future__ import annotations

import csv
import io
import json
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import LAB, Run

import wirelab as wl

CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Lab 1 (555),Lab 2 (556),Current Score\r\n"
    "    Points Possible,,,,,{possible},5.00,(read only)\r\n"
    '"Doe, Jane",101,s101,jane@x.edu,S1,,4,90\r\n'
    '"Zhang, San",102,s102,zs@x.edu,S1,3,5,80\r\n'
    '"Wang, Wu",104,wangwu,ww@x.edu,S1,,,\r\n'
    '"Student, Test",999,,,S1,,,\r\n'
)
MOODLE = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (grade),Feedback comments\r\n"
    'Participant 101,Jane Doe,jane@x.edu,Submitted,,"{possible}",-,\r\n'
    'Participant 1010,Li Si,li@x.edu,Submitted,,"{possible}",-,\r\n'
    "Participant 103,Wang Wu,ww@x.edu,No submission,,,-,\r\n"
)


@pytest.fixture
def room(full: Path, tmp_path: Path) -> Path:
    """A class as the sites hand it out."""
    return handed_in(full, tmp_path / "class", "doejane_101_9001_lab1", "wangwu")


def handed_in(full: Path, room: Path, *names: str) -> Path:
    for name in names:
        shutil.copytree(full, room / name)
    return room


def total(full: Path) -> tuple[str, str]:
    report = wl.grade(LAB, full).to_dict()
    return report["score"], report["max_score"]


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))


def test_canvas_gets_the_one_column_of_those_who_have_points(
    full: Path, room: Path, tmp_path: Path, wirelab: Run
) -> None:
    score, most = total(full)
    (room / "zhangsan_LATE_102_9002_lab1").mkdir()
    shutil.copytree(full, room / "somebody")
    book = tmp_path / "gradebook.csv"
    book.write_bytes(CANVAS.format(possible=most).encode())
    call = ("grade", LAB, room, "--each", "-o", tmp_path / "out", "--canvas", book, "--lang", "en")
    unclear = wirelab(*call)
    assert unclear.returncode == 2 and b"name one with --column, of Lab 1 (555), Lab 2 (556)" in unclear.stderr
    assert not (tmp_path / "out").exists(), "told before anything is graded"
    done = wirelab(*call, "--column", "Lab 1")
    assert done.returncode == 0
    data = (tmp_path / "out" / "canvas.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfStudent,ID,SIS User ID,SIS Login ID,Section,Lab 1 (555)\r\n")
    told = {row["Student"].strip(): row["Lab 1 (555)"] for row in rows(tmp_path / "out" / "canvas.csv")}
    assert told["Points Possible"] == most and told["Doe, Jane"] == score and told["Wang, Wu"] == score
    assert "Zhang, San" not in told and "without a grade, so nothing was entered: zhangsan" in done.stderr.decode()
    assert "Student, Test" not in told, "whoever handed in nothing keeps what the gradebook says"
    assert "fit nobody in the table, so nothing was entered: somebody" in done.stderr.decode()
    assert b"the same capture was handed in more than once: doejane_101_9001_lab1/" in done.stdout
    assert b"canvas.csv: points of" in done.stdout
    # By the assignment's number, and by the whole heading.
    for column in ("555", "Lab 1 (555)"):
        again = wirelab(*call, "--column", column)
        assert again.returncode == 0 and (tmp_path / "out" / "canvas.csv").read_bytes() == data


def test_other_totals_are_converted_only_when_asked_for(full: Path, room: Path, tmp_path: Path, wirelab: Run) -> None:
    score, most = total(full)
    book = tmp_path / "gradebook.csv"
    book.write_text(CANVAS.format(possible="100"), encoding="utf-8")
    call = ("grade", LAB, room, "--each", "-o", tmp_path / "out", "--canvas", book, "--column", "Lab 1", "--lang", "en")
    refused = wirelab(*call)
    assert refused.returncode == 2 and b"Lab 1 (555) counts to 100, and " in refused.stderr
    assert not (tmp_path / "out" / "canvas.csv").exists() and (tmp_path / "out" / "scores.csv").exists()
    assert wirelab(*call, "--scale").returncode == 0
    told = {row["Student"]: row["Lab 1 (555)"] for row in rows(tmp_path / "out" / "canvas.csv")}
    exact = Decimal(score) * 100 / Decimal(most)
    assert abs(Decimal(told["Doe, Jane"]) - exact) <= Decimal("0.005")


def test_nobody_gets_the_points_of_another(full: Path, tmp_path: Path, wirelab: Run) -> None:
    _, most = total(full)
    room = tmp_path / "class"
    for name in (
        # What the person called the file looks like another's.
        "Jane Doe_101_assignsubmission_file_x_103_assignsubmission_file_",
        # The number of one, and the name of another.
        "Wang Wu_1010_assignsubmission_file",
        "LI SI",
    ):
        shutil.copytree(full, room / name)
    (room / "Wang Wu_103_assignsubmission_onlinetext").mkdir()
    book = tmp_path / "worksheet.csv"
    book.write_text(MOODLE.format(possible=most), encoding="utf-8")
    done = wirelab("grade", LAB, room, "--each", "-o", tmp_path / "out", "--moodle", book, "--lang", "en")
    assert done.returncode == 0
    assert [row["Identifier"] for row in rows(tmp_path / "out" / "moodle.csv")] == [
        "Participant 101",
        "Participant 1010",
    ]
    notes = done.stderr.decode()
    assert "fit nobody in the table, so nothing was entered: Wang Wu_1010" in notes
    assert "without a grade, so nothing was entered: Wang Wu_103" in notes
    # By an exact login, whatever number the name seems to hold; a name of two people is nobody's.
    canvas = tmp_path / "gradebook.csv"
    canvas.write_text(
        CANVAS.format(possible=most) + "Li Si,2023,a1,x,S1,,,\r\nLi Wu,106,a2,li_2023_01_x,S1,,,\r\n"
        "Ma Li,107,a3,y,S1,,,\r\nMa Li,108,a4,z,S1,,,\r\n",
        encoding="utf-8",
    )
    room = handed_in(full, tmp_path / "other", "li_2023_01_x", "ma li")
    call = ("grade", LAB, room, "--each", "-o", tmp_path / "out", "--canvas", canvas, "--column", "555", "--lang", "en")
    done = wirelab(*call)
    assert done.returncode == 0 and b"fit several people of the table, so nothing was entered: ma li" in done.stderr
    assert [row["ID"] for row in rows(tmp_path / "out" / "canvas.csv")] == ["", "106"]


def test_totals_of_each_row_and_what_stays(full: Path, tmp_path: Path, wirelab: Run) -> None:
    score, most = total(full)
    room = handed_in(full, tmp_path / "class", "Jane Doe", "li si")
    book = tmp_path / "worksheet.csv"
    text = MOODLE.format(possible=most).replace(
        f'Li Si,li@x.edu,Submitted,,"{most}",-,', 'Li Si,li@x.edu,Submitted,,"1,200.00",-,<p>Well.</p>'
    )
    book.write_text(text, encoding="utf-8")
    call = ("grade", LAB, room, "--each", "-o", tmp_path / "out", "--moodle", book, "--lang", "en")
    refused = wirelab(*call)
    assert (
        refused.returncode == 2
        and b"Grade counts to 1200, and " in refused.stderr
        and b"had by li si" in refused.stderr
    )
    assert wirelab(*call, "--scale").returncode == 0
    jane, li = rows(tmp_path / "out" / "moodle.csv")
    assert jane["Grade"] == score
    assert abs(Decimal(li["Grade"]) - Decimal(score) * 1200 / Decimal(most)) <= Decimal("0.005")
    assert li["Feedback comments"].startswith("<p>Well.</p><p>")
    # What an earlier run wrote is not left for this one's.
    assert wirelab(*call).returncode == 2 and not (tmp_path / "out" / "moodle.csv").exists()
    names = wirelab(*call, "--column", "Full name")
    assert names.returncode == 2 and b"has no place for points in Full name" in names.stderr


def test_moodle_gets_its_own_rows_with_points_and_words(full: Path, tmp_path: Path, wirelab: Run) -> None:
    score, most = total(full)
    room = handed_in(full, tmp_path / "class", "Jane Doe_101_assignsubmission_file", "li si")
    book = tmp_path / "worksheet.csv"
    book.write_text(MOODLE.format(possible=most.replace(".", ",")), encoding="utf-8")
    call = ("grade", LAB, room, "--each", "-o", tmp_path / "out", "--moodle", book, "--lang", "zh")
    assert wirelab(*call).returncode == 0
    told = rows(tmp_path / "out" / "moodle.csv")
    assert [(row["Identifier"], row["Grade"]) for row in told] == [
        ("Participant 101", score.replace(".", ",")),
        ("Participant 1010", score.replace(".", ",")),
    ]
    assert all(row["Feedback comments"].startswith("<p>") and row["Status"] == "Submitted" for row in told)
    # The table that was downloaded is not written over.
    shutil.copy(book, tmp_path / "out" / "moodle.csv")
    own = wirelab(*call[:-3], tmp_path / "out" / "moodle.csv", "--lang", "en")
    assert own.returncode == 2 and b"keep that elsewhere" in own.stderr


@pytest.mark.parametrize(
    ("content", "option", "why"),
    [
        (b"", "--canvas", b"is empty"),
        (b"name,points\n", "--canvas", b"is no gradebook of Canvas"),
        (b"name,points\n", "--moodle", b"has no column Identifier"),
        ("Identifier,成绩单\n".encode("gbk"), "--moodle", b"is not UTF-8"),
        (b"Identifier,Full name\n", "--moodle", b"has no column Grade"),
    ],
)
def test_tables_that_are_none_are_told_before_grading(
    content: bytes, option: str, why: bytes, full: Path, tmp_path: Path, wirelab: Run
) -> None:
    book = tmp_path / "book.csv"
    book.write_bytes(content)
    told = wirelab("grade", LAB, full, "-o", tmp_path / "out", option, book)
    assert told.returncode == 2 and why in told.stderr and b"Traceback" not in told.stderr
    assert not (tmp_path / "out").exists()


def test_options_of_tables_need_a_table_and_a_folder(full: Path, tmp_path: Path, wirelab: Run) -> None:
    book = tmp_path / "book.csv"
    book.write_text(CANVAS.format(possible=1), encoding="utf-8")
    for options in (
        ["--scale"],
        ["--column", "x"],
        ["--canvas", book],
        ["--canvas", tmp_path / "none", "-o", tmp_path],
    ):
        told = wirelab("grade", LAB, full, *options)
        assert told.returncode == 2 and b"Traceback" not in told.stderr, options


def test_gradescope_reads_points_words_and_what_is_hidden(full: Path, tmp_path: Path, wirelab: Run) -> None:
    printed = wirelab("grade", LAB, full, "--format", "gradescope", "--lang", "en")
    results = json.loads(printed.stdout)
    report = wl.grade(LAB, full, lang="en")
    assert results == report.to_gradescope() and results != report.to_gradescope("zh")
    items = report.items
    assert results["score"] == report.points
    assert [test["name"] for test in results["tests"]] == [item["title"]["en"] for item in items]
    for test, item in zip(results["tests"], items, strict=True):
        assert ("score" in test) == (item["counted"] != "excluded")
        assert test.get("status", "failed") in ("passed", "failed")
        assert test["visibility"] == ("visible" if item["visibility"] == "visible" else "hidden")
    assert sum(test.get("score", 0) for test in results["tests"]) == pytest.approx(results["score"])
    hidden = [item["title"]["en"] for item in items if item["visibility"] != "visible"]
    assert hidden and not any(title in results["output"] for title in hidden)
    # Nothing that could be read is no grade, and says so.
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = wl.grade(LAB, empty, lang="en").to_gradescope()
    assert nothing["extra_data"]["status"] in ("not_assessable", "error")
    assert nothing["score"] == 0 and nothing["output"].startswith("This is no grade")


def test_what_is_no_submission_of_a_class_is_told(full: Path, room: Path, tmp_path: Path, wirelab: Run) -> None:
    (room / "roster.csv").write_text("id\n")
    (room / "linked").symlink_to(full)
    told = wirelab("grade", LAB, room, "--each", "-o", tmp_path / "out", "--lang", "en")
    assert told.returncode == 0 and "lists, reports or notes: linked, roster.csv;" in told.stderr.decode()
    assert "linked" not in (tmp_path / "out" / "scores.csv").read_text(encoding="utf-8-sig")
