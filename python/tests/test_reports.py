"""The folder of ``grade -o``: whose report is which file, and what is kept of a run that does not come to its end."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import LAB, LABS, PING, SOON_S, Run, submission

from wirelab._grade import Lab
from wirelab.cli import _grade, main
from wirelab.cli._grade import _names

posix = pytest.mark.skipif(os.name != "posix", reason="signals and devices as on POSIX")
full_disk = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")


def classroom(folder: Path, *names: str) -> Path:
    for name in names:
        submission(folder / name, ping=PING)
    return folder


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rows(folder: Path) -> dict[str, str]:
    with (folder / "scores.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["name"]: row["points"] for row in csv.DictReader(file)}


def test_a_rerun_finds_its_own_report_and_no_other(wirelab: Run, tmp_path: Path) -> None:
    room, out = classroom(tmp_path / "class", "x", "x.tar", "a;b", "a_b", "CON"), tmp_path / "out"
    shutil.make_archive(str(room / "x"), "zip", room / "x")
    assert wirelab("grade", LAB, room, "--each", "-o", out).returncode == 0
    assert {"x.txt", "x.zip.txt", "x.tar.txt", "a_b.txt", "scores.csv"} < set(files(out)) and len(files(out)) == 7
    for one in list(room.iterdir()):
        before = {path: path.read_bytes() for path in out.glob("*.txt")}
        for path in before:
            path.write_text("kept")
        assert wirelab("grade", LAB, one, "-o", out).returncode == 0
        changed = [path for path in out.glob("*.txt") if path.read_text(encoding="utf-8") != "kept"]
        assert len(changed) == 1 and set(out.glob("*.txt")) == set(before), (one, changed)
        assert changed[0].read_bytes() == before[changed[0]]
        for path, data in before.items():
            path.write_bytes(data)


def test_names_of_reports_follow_from_names_of_submissions(tmp_path: Path) -> None:
    given = [
        "li si",
        "x",
        "x.zip",
        "a;b",
        "a:b",
        "a_b",
        " a",
        "a ",
        "a.",
        "a",
        ".a",
        "CON",
        "con",
        "_CON",
        "X",
        "张" * 83,
    ]
    given += [
        "张" * 82 + "三",
        "张" * 82 + "三.zip",
        "x" * 255,
        "x" * 254 + "y",
        ";",
        ":",
        os.fsdecode(b"\xff"),
        "a\nb",
    ]
    paths = [os.path.join("class", name) for name in given]
    names = _names(paths, os.fspath(tmp_path), "txt", False)
    assert len(set(names)) == len(names) and names[:3] == ["li si.txt", "x.txt", "x.zip.txt"]
    assert [_names([path], os.fspath(tmp_path), "txt", False)[0] for path in paths] == names
    for name in names:
        # A part of a file has a longer name.
        assert len(name.encode()) < 200 and not set(name) & set(";:\n\\/\udcff")
        (tmp_path / name).touch()
    # Where capitals make no difference, none is lost either.
    blind = _names(paths, os.fspath(tmp_path / "none"), "txt", True)
    assert len({name.casefold() for name in blind}) == len(names)


def test_a_long_chinese_name_has_a_report(wirelab: Run, tmp_path: Path) -> None:
    name = "张" * 83
    done = wirelab("grade", LAB, classroom(tmp_path / "class", name) / name, "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, b"") and len(files(tmp_path / "out")) == 2


def test_namesakes_of_one_run_keep_their_reports_in_later_ones(wirelab: Run, tmp_path: Path) -> None:
    one, other = (classroom(tmp_path / day, "a") / "a" for day in ("monday", "tuesday"))
    (other / "ping.pcap").write_bytes(b"nothing")
    out = tmp_path / "out"
    wirelab("grade", LAB, one, other, "-o", out)
    reports = {path: path.read_bytes() for path in out.glob("a-*.txt")}
    assert len(reports) == 2
    wirelab("grade", LAB, other, "-o", out)
    assert {path: path.read_bytes() for path in out.glob("*.txt")} == reports
    for path in (one, other):
        wirelab("grade", LAB, path, "-o", out, "--format", "json")
    assert {path.stem for path in out.glob("*.json")} == {path.stem for path in reports}


@full_disk
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_report_that_cannot_be_written_costs_no_other(lang: str, wirelab: Run, tmp_path: Path) -> None:
    room, out = classroom(tmp_path / "class", "a", "b", "c", "d"), tmp_path / "out"
    (out / "a.txt").mkdir(parents=True)
    (out / "c.txt").symlink_to("/dev/full")
    done = wirelab("grade", LAB, room, "--each", "-o", out, "--lang", lang)
    told = done.stderr.decode().splitlines()
    assert done.returncode == 1 and len(told) == 2, done
    assert any(str(out / "a.txt") in line and "Is a directory" in line for line in told)
    assert any(str(out / "c.txt") in line and "No space left" in line for line in told)
    assert files(out) == ["a.txt", "b.txt", "c.txt", "d.txt", "scores.csv"] and len(rows(out)) == 4
    assert ("4 of 4 submissions graded" if lang == "en" else "共 4 份提交，已评 4 份") in done.stdout.decode()


def test_a_class_list_that_cannot_be_written_costs_no_report_and_no_earlier_list(
    full: Path, wirelab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    (out / "scores.csv").mkdir(parents=True)
    done = wirelab("grade", LAB, full, "-o", out, "--lang", "en")
    assert done.returncode == 1 and f"{out / 'scores.csv'} could not be written" in done.stderr.decode()
    assert files(out) == ["full.txt", "scores.csv"] and b"1 of 1 submission graded" in done.stdout
    (out / "scores.csv").rmdir()
    (out / "scores.csv").write_text("of another kind\n")

    def fails(path: str) -> object:
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr("wirelab.cli._scores.WholeFile", fails)
    assert main(["grade", str(LAB), str(full), "-o", str(out)]) == 1
    assert (out / "scores.csv").read_text() == "of another kind\n" and not list(out.glob("scores.before*"))


@full_disk
@pytest.mark.parametrize("format", ["table", "csv", "json", "jsonl", "parquet", "arrow"])
def test_a_full_disk_is_told_with_the_path(format: str, wirelab: Run) -> None:
    for call in (["table", "packets", PING], ["sql", "SELECT * FROM packets", PING], ["match", PING, PING]):
        done = wirelab(*call, "--format", format, "-o", "/dev/full")
        assert done.returncode == 1 and b"wirelab: /dev/full: No space left on device" in done.stderr, done


def test_an_output_without_a_name_is_refused_and_makes_nothing(full: Path, wirelab: Run, tmp_path: Path) -> None:
    here = tmp_path / "parent" / "here"
    here.mkdir(parents=True)
    for call in (["table", "packets", PING], ["sql", "SELECT 1", PING], ["match", PING, PING], ["grade", LAB, full]):
        done = wirelab(*call, "-o", "", cwd=here)
        assert done.returncode == 2 and b"-o names no f" in done.stderr, done
    assert files(here) == [] and files(here.parent) == ["here"]


def test_a_folder_that_takes_no_file_is_told_before_anything_is_graded(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def graded(*_: object, **__: object) -> None:
        raise AssertionError("graded")

    def refused(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Lab, "grade", graded)
    # Permissions do not hold root back, who may run the tests.
    monkeypatch.setattr(_grade.tempfile, "NamedTemporaryFile", refused)
    assert main(["grade", str(LAB), str(full), "-o", str(tmp_path / "out")]) == 2
    assert f"no file can be written into {tmp_path / 'out'}: Permission denied" in capsys.readouterr().err


def test_reports_never_go_into_the_folder_of_the_class(wirelab: Run, tmp_path: Path) -> None:
    room = classroom(tmp_path / "class", "a", "b")
    (tmp_path / "link").symlink_to(room)
    before = sorted(room.rglob("*"))
    inside = (room, room / "reports", room / "a" / "out", room / "new" / "deep", tmp_path / "link" / "out")
    for out in (*inside, room / ".." / "class" / "x"):
        for _ in range(2):
            done = wirelab("grade", LAB, room, "--each", "-o", out)
            assert done.returncode == 2 and b"name a folder outside" in done.stderr, done
    assert sorted(room.rglob("*")) == before
    for _ in range(2):
        assert wirelab("grade", LAB, "class", "--each", "-o", "class-reports", cwd=tmp_path).returncode == 0
    assert files(tmp_path / "class-reports") == ["a.txt", "b.txt", "scores.csv"]


def test_what_was_graded_before_ctrl_c_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    room, out = classroom(tmp_path / "class", "a", "b", "c", "d"), tmp_path / "out"
    call = ["grade", str(LAB), str(room), "--each", "-o", str(out), "--jobs", "1", "--lang"]
    as_ever = Lab.grade
    seen: list[str] = []

    def stopped(lab: Lab, path: str, **options: object) -> object:
        seen.append(os.path.basename(path))
        if seen[-1] == "c":
            # Both are there by now, not only at the end.
            assert {"a.txt", "b.txt"} <= set(files(out))
            raise KeyboardInterrupt
        return as_ever(lab, path, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Lab, "grade", stopped)
        assert main([*call, "en"]) == 130
    assert capsys.readouterr().err == f"wirelab: stopped: 2 of 4 submissions graded and kept in {out}\n"
    assert files(out) == ["a.txt", "b.txt", "scores.csv"] and list(rows(out)) == ["a", "b"]
    assert main([*call, "en"]) == 0 and list(rows(out)) == ["a", "b", "c", "d"]
    # A later run that is stopped leaves the rows of those that it did not come to.
    (room / "a" / "ping.pcap").write_bytes(b"nothing")
    before = rows(out)
    (out / "a.txt").unlink()
    (out / "b.txt").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Lab, "grade", stopped)
        assert main([*call, "zh"]) == 130
    after = rows(out)
    assert list(after) == list(before) and after["a"] != before["a"] and after["d"] == before["d"]
    assert f"已中断：共 4 份提交，已评 2 份，结果已保存在 {out}" in capsys.readouterr().err


@posix
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_finished_reports_and_ends_soon(jobs: int, tmp_path: Path) -> None:
    lab = tmp_path / "faulty"
    shutil.copytree(LABS / "faulty", lab)
    rubric = lab / "rubric.toml"
    rubric.write_text(rubric.read_text(encoding="utf-8").replace("time_limit_s = 1", "time_limit_s = 600"))
    room, out = classroom(tmp_path / "class", "z"), tmp_path / "out"
    for name in ("a", "b"):
        # Nothing to assess, so these are done at once; the query over z has no end.
        (room / name).mkdir()
        (room / name / "notes.txt").write_text("nothing\n")
    command = [sys.executable, "-m", "wirelab", "grade", lab, room, "--each", "-o", out, "--jobs", str(jobs)]
    run = subprocess.Popen([*command, "--lang", "en"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not (out / "b.txt").exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)
    assert run.poll() is None and files(out) == ["a.txt", "b.txt"]
    sent = time.monotonic()
    run.send_signal(signal.SIGINT)
    shown, errors = run.communicate(timeout=30)
    assert time.monotonic() - sent < SOON_S * 2
    assert (run.returncode, shown) == (130, b"")
    assert errors.decode() == f"wirelab: stopped: 2 of 3 submissions graded and kept in {out}\n"
    assert files(out) == ["a.txt", "b.txt", "scores.csv"] and list(rows(out)) == ["a", "b"]


def test_what_ends_while_a_run_is_stopped_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room, out = classroom(tmp_path / "class", "a", "b"), tmp_path / "out"
    as_ever = Lab.grade
    begun = threading.Barrier(3)

    def slow(lab: Lab, path: str, **options: object) -> object:
        begun.wait(30)
        time.sleep(0.3)
        return as_ever(lab, path, **{**options, "progress": None})  # type: ignore[arg-type]

    def interrupted(*_: object, **__: object) -> None:
        begun.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(Lab, "grade", slow)
    monkeypatch.setattr(_grade, "wait", interrupted)
    assert main(["grade", str(LAB), str(room), "--each", "-o", str(out), "--jobs", "2"]) == 130
    assert files(out) == ["a.txt", "b.txt", "scores.csv"] and list(rows(out)) == ["a", "b"]
