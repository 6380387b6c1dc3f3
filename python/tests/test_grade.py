from __future__ import annotations

import csv
import hashlib
import html
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import LAB, LABS, PING, SOON_S, TCP, Run

import wirelab as wl
from wirelab import _core

CASES = sorted(path for path in (LAB / "cases").iterdir() if path.is_dir())


def test_points_are_a_bare_float_and_the_report_shows_itself(full: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = wl.grade(LAB, full, lang="zh")
    assert type(report.points) is float and (report.points, report.max_points) == (7.75, 7.75)
    assert (report.status, report.needs_review, report.submission) == ("graded", False, "full")
    assert "得分" in str(report) and "Score" in report.to_text(lang="en")
    assert report._repr_html_().startswith("<style>") and report.to_html().startswith("<!DOCTYPE html>")
    assert repr(report) == "<wirelab.Report full: 7.75 of 7.75, graded>"
    assert [item["status"] for item in report.items] == ["pass"] * 6
    assert capfd.readouterr() == ("", "")


def test_a_submission_may_be_a_zip_a_file_several_files_or_bytes(full: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "handed-in"), "zip", full)
    zipped = wl.grade(LAB, archive)
    assert zipped.points == 7.75 and zipped.submission == "handed-in"
    assert wl.grade(LAB, Path(archive).read_bytes()).points == 7.75
    assert wl.grade(LAB, [full / "ping.pcap", full / "tcp.pcap", full / "answers.txt"]).points == 7.75
    assert wl.grade(LAB, full / "ping.pcap").points == 4.5
    for wrong in (5, [], None):
        with pytest.raises(wl.UsageError):
            wl.grade(LAB, wrong)
    with pytest.raises(FileNotFoundError):
        wl.grade(LAB, tmp_path / "nothing")


def test_parameters_are_checked_and_change_what_is_asked(full: Path) -> None:
    report = wl.grade(LAB, full, params={"count": 24})
    assert report.points == 5.25 and report.to_dict()["params"]["count"] == 24
    for params, says in (
        ({"cuont": 1}, "did you mean count?"),
        ({"count": "many"}, "must be of type integer"),
        ({"count": 0}, "must be from 1 to 1000"),
    ):
        with pytest.raises(wl.UsageError, match=re.escape(says)):
            wl.grade(LAB, full, params=params)


def test_every_report_fits_the_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(_core.report_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    garbage = tmp_path / "garbage"
    garbage.mkdir()
    (garbage / "ping.pcap").write_bytes(b"\x00\xff" * 999)
    (garbage / "tcp.pcap").write_text("12:00:00.000000 IP 10.0.0.1 > 10.0.0.2: ICMP echo request\n" * 9)
    (garbage / "a.rar").write_bytes(b"Rar!\x1a\x07\x01\x00" + bytes(99))
    seen: set[tuple[str, str]] = set()
    for lab in (LAB, LABS / "faulty"):
        for given in (*CASES, garbage, PING):
            report = wl.grade(lab, given)
            for shown in (report, report.for_student()):
                validator.validate(shown.to_dict())
            seen |= {(item["status"], item["counted"]) for item in report.items}
    for check in (_core.check_lab(os.fspath(LAB), wl._arguments.options(None, None, None, None, "auto"), None),):
        for case in check["cases"]:
            validator.validate(json.loads(case["report"].json()))
            seen |= {(item["status"], item["counted"]) for item in json.loads(case["report"].json())["items"]}
    assert seen == {
        ("pass", "full"),
        ("partial", "full"),
        ("fail", "full"),
        ("not_assessable", "zero"),
        ("not_assessable", "excluded"),
    }


def test_a_wrong_lab_is_told_with_file_and_line(tmp_path: Path, full: Path) -> None:
    lab = tmp_path / "every-outcome"
    shutil.copytree(LAB, lab)
    rubric = lab / "rubric.toml"
    rubric.write_text(rubric.read_text(encoding="utf-8").replace('op = "approx"', 'op = "aprox"'), encoding="utf-8")
    line = 1 + rubric.read_text(encoding="utf-8").split('op = "aprox"')[0].count("\n")
    with pytest.raises(wl.UsageError, match=rf"rubric.toml:{line}: op cannot be aprox \(did you mean approx\?\)"):
        wl.grade(lab, full)
    with pytest.raises(wl.UsageError, match=r"there is no lab every-outcom \(did you mean every-outcome\?\)"):
        wl.grade("every-outcom", full, labs=LABS)
    assert wl.grade("every-outcome", full, labs=[LABS]).points == 7.75


def test_one_bad_submission_never_stops_the_rest(wirelab: Run, full: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"PK\x03\x04 this is no archive")
    done = wirelab("grade", LAB, tmp_path / "none", bad, full, "--lang", "en")
    text = done.stdout.decode()
    assert done.returncode == 0 and "1 of 3 submissions graded, 1 unreadable, 1 failed" in text
    assert done.stderr.decode().splitlines() == [f"wirelab: {tmp_path / 'none'}: there is no such file"]
    summary = text[text.rindex("submission ") :].splitlines()
    assert [line.split()[0] for line in summary[1:4]] == ["none", "bad.zip", "full"]
    assert "7.75 / 7.75" in summary[3] and "unreadable" in summary[2]
    assert wirelab("grade", LAB, tmp_path / "none").returncode == 1
    assert wirelab("grade", LAB, full, "--param", "prt=1").returncode == 2
    assert wirelab("grade", "no-lab", full).returncode == 2


def test_a_low_grade_is_no_error(wirelab: Run) -> None:
    done = wirelab("grade", LAB, TCP)
    assert (done.returncode, done.stderr) == (0, b"") and b"Score" in done.stdout


def test_reports_go_into_a_folder_one_for_each_submission(wirelab: Run, full: Path, tmp_path: Path) -> None:
    classroom, reports = tmp_path / "class", tmp_path / "reports"
    for name in ("张三", "li si", "CON", "a;b"):
        shutil.copytree(full, classroom / name)
    shutil.make_archive(str(classroom / "li si"), "zip", full)
    done = wirelab("grade", LAB, classroom, "--each", "-o", reports, "--format", "json", "--jobs", 2)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in reports.iterdir())
    changed = [
        f"{safe}-{hashlib.sha256(name).hexdigest()[:8]}.json" for safe, name in (("_CON", b"CON"), ("a_b", b"a;b"))
    ]
    assert names == sorted(["张三.json", "li si.json", "li si.zip.json", *changed, "scores.csv"])
    with (reports / "scores.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["name"] for row in rows) == sorted(["张三", "li si", "li si.zip", "CON", "a;b"])
    assert {(row["points"], row["of"], row["needs_review"], row["error"]) for row in rows} == {
        ("7.75", "7.75", "false", "")
    }
    checks = [check["id"] for check in wl.Lab(LAB).facts()["checks"]]
    assert list(rows[0])[7:] == checks and sum(float(rows[0][check]) for check in checks) == 7.75
    again = tmp_path / "again"
    wirelab("grade", LAB, classroom, "--each", "-o", again, "--format", "json", "--jobs", 1)
    for name in names:
        if name == "scores.csv":
            continue
        text = (reports / name).read_text(encoding="utf-8")
        assert text == (again / name).read_text(encoding="utf-8")
        assert json.loads(text)["score"] == "7.75"
    # Several at once on standard output are one list.
    both = json.loads(wirelab("grade", LAB, full, PING, "--format", "json").stdout)
    assert [one["score"] for one in both] == ["7.75", "4.5"]
    assert json.loads(wirelab("grade", LAB, full, "--format", "json").stdout)["score"] == "7.75"


def test_a_report_never_lands_on_what_was_handed_in(wirelab: Run, full: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in full.iterdir()}
    for folder in (full, full / "reports"):
        done = wirelab("grade", LAB, full, "-o", folder)
        assert done.returncode == 2 and b"inside the submission" in done.stderr
    page = tmp_path / "page.html"
    page.write_text("<p>mine</p>")
    assert wirelab("grade", LAB, page, "-o", tmp_path, "--format", "html").returncode == 2
    assert page.read_text() == "<p>mine</p>" and {path: path.read_bytes() for path in full.iterdir()} == before
    assert wirelab("grade", LAB, full, PING, "--format", "html").returncode == 2


def test_students_see_no_hidden_check(wirelab: Run, full: Path) -> None:
    shown = json.loads(wirelab("grade", LAB, full, "--student", "--format", "json").stdout)
    assert shown["view"] == "student" and shown["score"] is None and len(shown["items"]) == 5
    report = wl.grade(LAB, full, student=True)
    assert report.points is None and report.max_points is None and "no_copies" not in report.to_json()
    for text in (report.to_html(), str(report), report.to_json()):
        assert "handed in twice" not in text


def test_labs_are_listed_shown_checked_and_begun(wirelab: Run, tmp_path: Path) -> None:
    listed = json.loads(wirelab("labs", "list", "--labs", LABS, "--json").stdout)
    assert {"every-outcome", "faulty"} <= {lab["id"] for lab in listed}
    shown = wirelab("labs", "show", LAB, "--lang", "en").stdout.decode()
    assert "12 probes were sent" in shown and "hidden" in shown
    sound = wirelab("labs", "check", LAB)
    assert (sound.returncode, sound.stderr) == (0, b"") and b"is sound: 10 cases, 6 checks" in sound.stdout
    assert wirelab("labs", "check", LABS / "faulty").returncode == 1
    assert b"8,960" in wirelab("labs", "check", LAB, "--case", "server-mss").stdout
    assert b"did you mean server-mss?" in wirelab("labs", "check", LAB, "--case", "server-ms").stderr
    assert wirelab("labs", "new", "mine", "--into", tmp_path).returncode == 0
    begun = wirelab("labs", "check", tmp_path / "mine", "--lang", "en")
    # All of it works, and the words are still to be written: that is not sound.
    assert begun.returncode == 1 and b"is sound" not in begun.stdout and b"has 6 problems" in begun.stdout
    assert wirelab("labs", "new", "mine", "--into", tmp_path).returncode == 2
    assert json.loads(wirelab("labs", "schema").stdout)["title"] == "wirelab-result/1"


def test_the_command_of_a_report_runs_in_a_shell(full: Path, wirelab: Run) -> None:
    page = wl.grade(LAB, full, params={"port": 5201}).to_html("en")
    commands = re.findall(r"<pre>(wirelab sql .*?)</pre>", page, re.DOTALL)
    assert len(commands) == 4
    for command in commands:
        arguments = shlex.split(html.unescape(command))
        done = wirelab(*arguments[1:], cwd=full)
        assert done.returncode == 0 and done.stdout, (arguments, done.stderr)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_a_query_without_an_end(tmp_path: Path) -> None:
    lab = tmp_path / "faulty"
    shutil.copytree(LABS / "faulty", lab)
    rubric = lab / "rubric.toml"
    rubric.write_text(rubric.read_text(encoding="utf-8").replace("time_limit_s = 1", "time_limit_s = 600"))
    command = [sys.executable, "-m", "wirelab", "grade", os.fspath(lab), os.fspath(PING)]
    for several in ([], [os.fspath(TCP)]):
        run = subprocess.Popen([*command, *several], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(2)
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=20)
        assert (run.returncode, errors) == (130, b"")


def test_the_page_renders_in_a_browser(full: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium: the page was not rendered")
    for lang, word in (("en", "Wireshark filter"), ("zh", "Wireshark 显示过滤器")):
        page = tmp_path / f"page.{lang}.html"
        case = LAB / "cases" / "server-mss" / "tcp.pcap"
        page.write_text(wl.grade(LAB, [PING, case], lang=lang, params={"port": 6000}).to_html(), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
        options += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
        done = subprocess.run([browser, *options], capture_output=True, timeout=120)
        dom = done.stdout.decode()
        assert word in dom and dom.count('<section class="item') == 6
        assert b"CONSOLE" not in done.stderr, done.stderr.decode()


def test_reports_do_not_share_what_a_caller_changes(full: Path) -> None:
    report = wl.grade(LAB, full)
    first: dict[str, Any] = report.to_dict()
    first["items"].clear()
    assert len(report.items) == 6


def test_what_is_no_lab_and_no_submission_is_told(full: Path, wirelab: Run) -> None:
    for call, says in (
        (lambda: wl.grade(None), "a lab is its name or its folder, not NoneType"),
        (lambda: wl.grade(""), "the name of the lab is empty"),
        (lambda: wl.grade(LAB), "what is handed in is missing"),
        (lambda: wl.grade(LAB, ""), "the path of the submission is empty"),
    ):
        with pytest.raises(wl.UsageError, match=says):
            call()
    for arguments, says in (
        (("", full), "the name of the lab is empty"),
        ((LAB, ""), "the path of a submission is empty"),
        ((LAB, full, "--each"), "is one submission: its files are inputs of the lab"),
    ):
        done = wirelab("grade", *arguments, "--lang", "en")
        assert done.returncode == 2 and says in done.stderr.decode(), done


def test_options_may_stand_anywhere(full: Path, wirelab: Run) -> None:
    before = wirelab("grade", "--param", "count=24", "--format", "json", LAB, full, PING)
    among = wirelab("grade", LAB, full, "--param", "count=24", PING, "--format=json")
    assert before.returncode == among.returncode == 0 and before.stdout == among.stdout
    assert [one["score"] for one in json.loads(among.stdout)][0] == "5.25"


def test_a_folder_of_a_class_graded_as_one_gets_a_hint(full: Path, tmp_path: Path, wirelab: Run) -> None:
    for name in ("a", "b"):
        shutil.copytree(full, tmp_path / "class" / name)
    done = wirelab("grade", LAB, tmp_path / "class", "--lang", "en")
    assert done.returncode == 0 and done.stderr.decode().endswith("--each\n")
    assert wirelab("grade", LAB, full).stderr == b""


def test_labs_check_takes_the_name_of_a_lab(wirelab: Run, tmp_path: Path) -> None:
    named = wirelab("labs", "check", "every-outcome", "--labs", LABS)
    assert (named.returncode, named.stderr) == (0, b"") and named.stdout == wirelab("labs", "check", LAB).stdout
    for lang, words in (("en", "without its cases"), ("zh", "没有它的用例")):
        built_in = wirelab("labs", "check", "mtu-jumbo", "--lang", lang, cwd=tmp_path)
        told = built_in.stderr.decode()
        assert built_in.returncode == 2 and words in told and "wirelab labs check graders/mtu-jumbo" in told
    unknown = wirelab("labs", "check", "mtu-jumb", cwd=tmp_path).stderr.decode()
    assert "there is no lab mtu-jumb" in unknown and "did you mean mtu-jumbo?" in unknown
    assert b"there is no such file" in wirelab("labs", "check", tmp_path / "none").stderr
    # A folder that is no lab yet is told what it lacks, whatever it is called.
    (tmp_path / "mtu-jumbo").mkdir()
    begun = wirelab("labs", "check", "mtu-jumbo", cwd=tmp_path)
    assert begun.returncode == 1 and b"rubric.toml" in begun.stdout


JUMBO = Path(__file__).parents[2] / "graders" / "mtu-jumbo"


def of_case(name: str, wirelab: Run, lang: str = "en", format: str = "text") -> str:
    """The report of a case, in one line."""
    done = wirelab("labs", "check", JUMBO, "--case", name, "--lang", lang, "--format", format)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    return text if format == "json" else " ".join(text.split())


def test_frames_are_of_a_capture_and_what_has_no_value_is_not_expected(wirelab: Run) -> None:
    for name in ("log-cut", "log-of-another-run", "clock-changed"):
        for item in json.loads(of_case(name, wirelab, format="json"))["items"]:
            for one in item["evidence"]:
                assert not one["frames"] or one["input"] in ("standard", "jumbo"), (name, one)
    text = of_case("log-cut", wirelab)
    assert "not whole" in text and "none to none" not in text and "does not tell the value" not in text
    assert "capture_bytes" not in text
    assert "1 day" in of_case("clock-changed", wirelab) and "1 天" in of_case("clock-changed", wirelab, "zh")


def test_what_waits_for_an_open_check_is_told_so_and_has_no_hint(wirelab: Run) -> None:
    text, zh = of_case("full-marks-offload", wirelab), of_case("full-marks-offload", wirelab, "zh").replace(" ", "")
    assert "which could not be assessed" in text and "which was not passed" not in text
    assert "First see to" not in text and "而它无法评定" in zh and "check jumbo_path" not in text
    # Optional files that were not handed in are told of once.
    assert "need not be" in text and "Hand in the missing file" not in text


def test_a_mark_is_final_where_checks_only_wait_for_one_that_was_lost(wirelab: Run) -> None:
    report = json.loads(of_case("files-exchanged", wirelab, format="json"))
    assert (report["status"], report["needs_review"]) == ("graded", False)
    # What waits for lost ones is told to see to the first of them.
    hints = {item["id"]: item["hint"]["en"] for item in report["items"] if item["hint"]}
    titles = {item["id"]: item["title"]["en"] for item in report["items"]}
    assert titles["jumbo_mss"] in hints["jumbo_path"] and titles["standard_mss"] in hints["fewer_packets"]
    text = of_case("files-exchanged", wirelab)
    assert "look exchanged" in text and "never took effect" not in text
    assert json.loads(of_case("full-marks-offload", wirelab, format="json"))["status"] == "partial"


def test_one_case_is_graded_alone_and_that_is_said(wirelab: Run) -> None:
    done = wirelab("labs", "check", JUMBO, "--case", "too-short", "--lang", "en")
    assert b"Only case too-short was graded" in done.stderr
    text = " ".join(done.stdout.decode().split())
    assert "4.95 s are accepted" in text and "duration_ns" not in text
    wrong = wirelab("labs", "check", JUMBO, "--case", "to-short", "--lang", "en")
    assert wrong.returncode == 2 and b"did you mean too-short?" in wrong.stderr


def test_a_wrong_lab_and_the_kinds_of_inputs_are_told_in_chinese(wirelab: Run) -> None:
    wrong = wirelab("grade", "mtu-jumbi", "x", "--lang", "zh")
    assert wrong.returncode == 2 and "没有名为 mtu-jumbi 的实验（是不是 mtu-jumbo？）" in wrong.stderr.decode()
    shown = wirelab("labs", "show", "mtu-jumbo", "--lang", "zh").stdout.decode()
    assert "(整数)" in shown and "(数值)" in shown and "; 抓包 mtu1500" in shown
    assert "(integer)" not in shown and "(number)" not in shown
    assert "(optional)" in wirelab("labs", "show", "mtu-jumbo", "--lang", "en").stdout.decode()


LOGS = Path(__file__).parents[2] / "tests" / "data" / "logs"


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("kind", ["text", "json", "zip", "file"])
def test_ctrl_c_ends_unpacking_and_reading_of_logs_soon(kind: str, tmp_path: Path) -> None:
    lab = Path(__file__).parents[2] / "graders" / "mtu-jumbo"
    handed_in = tmp_path / "handed-in"
    handed_in.mkdir()
    if kind == "text":
        text = (LOGS / "iperf3_tcp_text.client.txt").read_bytes()
        line = next(line for line in text.splitlines(keepends=True) if b"bits/sec" in line)
        (handed_in / "mtu9000.txt").write_bytes(text + line * (60_000_000 // len(line)))
    elif kind == "json":
        whole = (LOGS / "iperf3_tcp_json.client.txt").read_bytes()
        (handed_in / "mtu9000.json").write_bytes(whole + b'{"start": {"a": [1,2,3' * 2_500_000)
    else:
        block = os.urandom(1 << 20)
        with zipfile.ZipFile(tmp_path / "large.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for number in range(2):
                with archive.open(f"{number}.bin", "w") as file:
                    for _ in range(400):
                        file.write(block)
        if kind == "zip":
            shutil.move(tmp_path / "large.zip", handed_in / "large.zip")
        else:
            (handed_in / "plain.bin").write_bytes(b"")
            with (handed_in / "plain.bin").open("wb") as plain:
                for _ in range(1500):
                    plain.write(block)
    for several in ([], [os.fspath(PING)]):
        command = [sys.executable, "-m", "wirelab", "grade", os.fspath(lab), os.fspath(handed_in), *several]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1.2)
        assert run.poll() is None, run.communicate()
        sent = time.monotonic()
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        took = time.monotonic() - sent
        assert (run.returncode, errors) == (130, b"")
        assert took < SOON_S, took


def test_what_was_handed_in_and_cannot_be_used_is_never_called_missing(wirelab: Run, tmp_path: Path) -> None:
    text, zh = of_case("no-captures", wirelab), of_case("no-captures", wirelab, "zh")
    report = json.loads(of_case("no-captures", wirelab, format="json"))
    item = {one["id"]: one for one in report["items"]}["standard_traffic"]
    assert item["reason"]["code"] == "unusable_input" and item["needs_review"]
    assert "mtu1500.pcap is no capture: it is a text file." in item["message"]["en"]
    assert "mtu1500.pcap 不是抓包文件：它是文本文件。" in item["message"]["zh"]
    assert "name that matches" not in item["hint"]["en"] and item["searched"] == "mtu1500.pcap"
    # The optional log of the same name was indeed not handed in; that is no fault of the capture's file.
    assert "Not handed in: capture" not in text and "没有提交“标准 MTU 那次的抓包”" not in zh
    assert "Input iperf3_standard: the name" not in " ".join(text.split())
    # A finding names its file once.
    assert "mtu1500.pcap: mtu1500.pcap" not in text
    wirelab("grade", "mtu-jumbo", JUMBO / "cases" / "no-captures", "-o", tmp_path / "reports")
    with open(tmp_path / "reports" / "scores.csv", encoding="utf-8-sig", newline="") as scores:
        (row,) = csv.DictReader(scores)
    assert "Not handed in" not in row["review_reason"] and "is no capture" in row["review_reason"]


def test_speed_is_compared_only_where_both_runs_are_what_the_words_say(wirelab: Run) -> None:
    for case, lost in (
        ("jumbo-never-took-effect", "jumbo_mss"),
        ("other-server", "same_hosts"),
        ("trial-run-all-jumbo", "standard_mss"),
    ):
        report = json.loads(of_case(case, wirelab, format="json"))
        items = {one["id"]: one for one in report["items"]}
        (title,) = (items[lost]["title"]["en"],)
        assert items["not_slower"]["points"] == "0" and title in items["not_slower"]["message"]["en"]
        assert "Goodput with the standard MTU" not in json.dumps(report)


def test_one_length_of_a_run_stands_in_all_places_and_says_what_is_tolerated(wirelab: Run) -> None:
    report = json.loads(of_case("too-short", wirelab, format="json"))
    item = {one["id"]: one for one in report["items"]}["long_enough"]
    rows = [row for evidence in item["evidence"] for row in evidence["rows"]]
    assert {row["lasts_ns"] for row in rows} == {one["value"] for one in item["measured"]}
    text = " ".join(of_case("too-short", wirelab).split())
    assert "length of the jumbo run (1% short is accepted) at least 4.95 s" in text
    page = of_case("too-short", wirelab, format="html")
    assert "<th>lasts</th>" in page and "lasts_ns" not in page.split("<th>lasts</th>")[1].split("</table>")[0]


def test_an_unknown_lab_is_answered_with_the_labs_there_are(wirelab: Run, full: Path) -> None:
    for name, near in (("LAB", ""), ("MTU-Jumbo", "did you mean mtu-jumbo?"), ("mtu-jumb", "did you mean mtu-jumbo?")):
        done = wirelab("grade", name, full)
        told = done.stderr.decode()
        assert (
            done.returncode == 2
            and f"there is no lab {name}" in told
            and "the labs are mtu-jumbo" in told
            and near in told
        )
