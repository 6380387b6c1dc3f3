//! What holds for every report, whatever was handed in.

use rust_decimal::Decimal;
use serde_json::Value;
use wirelab::grade::submission::SubmissionLimits;
use wirelab::grade::{GradeOptions, TextOptions, grade, page, part, read_submission, text};
use wirelab::{Checksums, Error, Lang, Options, Unobserved};

use super::{graded, json, lab, lab_folder, sample};

fn reports() -> Vec<wirelab::grade::Report> {
    let lab = lab("every-outcome");
    let cases = std::fs::read_dir(lab_folder("every-outcome").join("cases")).unwrap();
    let mut reports: Vec<_> = cases.map(|case| graded(&lab, &[case.unwrap().path()], &[])).collect();
    for capture in ["ping-delay/ping-delay.pcap", "roce-pfc/roce-pfc.pcap", "tcp-loss/README.md"] {
        reports.push(graded(&lab, &[sample(capture)], &[]));
        reports.push(graded(&super::lab("faulty"), &[sample(capture)], &[]));
    }
    assert!(reports.len() > 12);
    reports
}

fn decimal(value: &Value) -> Decimal {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).parse().unwrap()
}

#[test]
fn points_add_up_exactly_and_every_lost_point_says_why() {
    for report in reports() {
        let report = json(&report);
        let items = report["items"].as_array().unwrap();
        let counted: Vec<_> = items.iter().filter(|item| item["counted"] != "excluded").collect();
        let sum = |key: &str| counted.iter().map(|item| decimal(&item[key])).sum::<Decimal>();
        assert_eq!(sum("points"), decimal(&report["score"]));
        assert_eq!(sum("max_points"), decimal(&report["max_score"]));
        for item in items {
            let (points, most) = (decimal(&item["points"]), decimal(&item["max_points"]));
            assert!(Decimal::ZERO <= points && points <= most, "{item}");
            assert!(
                !item["message"]["en"].as_str().unwrap().is_empty()
                    && !item["message"]["zh"].as_str().unwrap().is_empty()
            );
            if item["status"] == "pass" {
                assert_eq!((points, &item["hint"], &item["reason"]), (most, &Value::Null, &Value::Null), "{item}");
                continue;
            }
            assert!(points < most || most.is_zero(), "{item}");
            let has_frames = item["evidence"]
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one["frames"].as_array().is_some_and(|frames| !frames.is_empty()));
            assert!(has_frames || item["searched"].is_string(), "neither frames nor what was searched for: {item}");
            // There is nothing to do about an optional file, nor about what waits for a check that is open itself.
            let has_nothing_to_do = item["reason"]["code"] == "optional_input"
                || item["reason"]["message"]["en"].as_str().is_some_and(|text| text.contains("could not be assessed."));
            let has_hint = |lang: &str| item["hint"][lang].as_str().is_some_and(|hint| !hint.is_empty());
            assert!((has_hint("en") && has_hint("zh")) || has_nothing_to_do, "{item}");
            if item["status"] == "not_assessable" {
                assert!(item["reason"]["code"].is_string() && points.is_zero(), "{item}");
            } else {
                assert!(!item["measured"].as_array().unwrap().is_empty(), "{item}");
            }
        }
        let is_reviewed = items.iter().any(|item| item["needs_review"] == true);
        assert_eq!(report["needs_review"], is_reviewed);
    }
}

#[test]
fn the_same_submission_gives_the_same_bytes_wherever_it_lies_and_on_any_number_of_threads() {
    let lab = lab("every-outcome");
    let at = std::env::temp_dir().join(format!("wirelab-same-{}", std::process::id()));
    let source = lab_folder("every-outcome").join("cases/cut-capture/ping.pcap");
    let here = super::folder_of(&at.join("a"), &[("ping.pcap", &source)]);
    let there = super::folder_of(&at.join("b/c"), &[("ping.pcap", &source)]);
    let first = graded(&lab, &[here], &[]).to_json();
    assert_eq!(first, graded(&lab, &[there], &[]).to_json());
    assert!(!first.contains(&*at.to_string_lossy()), "an absolute path in the report");
    std::fs::remove_dir_all(at).unwrap();
}

#[test]
fn keys_are_sorted_and_no_number_is_other_than_finite() {
    let text = reports()[0].to_json();
    assert!(text.ends_with("}\n") && !text.contains("NaN") && !text.contains("Infinity"));
    let top: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("  \""))
        .map(|line| line.trim().split('"').nth(1).unwrap())
        .collect();
    let mut sorted = top.clone();
    sorted.sort_unstable();
    assert_eq!(top, sorted);
    assert!(top.len() > 12, "{top:?}");
}

#[test]
fn every_report_reads_in_both_languages_as_text_and_as_html() {
    for report in reports() {
        for lang in [Lang::En, Lang::Zh] {
            for width in [0, 60, 100] {
                let text = text(&report, TextOptions { lang, width, is_painted: false });
                assert!(text.lines().count() > 8 && !text.contains("grade."), "{text}");
                assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.trim_end() == line));
            }
            let html = page(&report, lang);
            assert!(html.starts_with("<!DOCTYPE html>") && html.contains("</article>"), "{html}");
            for outside in ["http://", "https://", "<script", "src=", "url("] {
                assert!(!html.contains(outside), "{outside}");
            }
            assert!(!html.contains("grade.") && !html.contains("{{") && part(&report, lang).starts_with("<style>"));
        }
    }
}

#[test]
fn what_a_submission_brings_along_is_text_and_never_markup_or_control() {
    let at = std::env::temp_dir().join(format!("wirelab-hostile-{}", std::process::id()));
    let ping = sample("ping-delay/ping-delay.pcap");
    let folder = super::folder_of(&at, &[("ping<img onerror=x>.pcap", &ping)]);
    std::fs::write(folder.join("answers.txt"), "rtt <script>alert(1)</script>\u{1b}[2J \u{202e}evil\n").unwrap();
    let report = graded(&lab("every-outcome"), &[folder], &[]);
    let html = page(&report, Lang::En);
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script") && !html.contains("<img"), "{html}");
    let text = text(&report, TextOptions::default());
    assert!(text.contains("<script>") && !text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    std::fs::remove_dir_all(at).unwrap();
}

#[test]
fn a_capture_whose_tables_outgrow_memory_is_graded_alike_and_says_so() {
    let path = sample("ping-delay/ping-delay.pcap");
    let lab = lab("every-outcome");
    let with_budget = |bytes| {
        let submission =
            read_submission(std::slice::from_ref(&path), &SubmissionLimits::default(), &mut Unobserved).unwrap();
        let capture = Options { memory_budget_bytes: Some(bytes), checksums: Checksums::Off, ..Options::default() };
        json(&grade(&lab, &submission, &GradeOptions { capture, ..GradeOptions::default() }, &mut Unobserved).unwrap())
    };
    let (fits, outgrown) = (with_budget(1 << 40), with_budget(1));
    assert_eq!(outgrown["items"], fits["items"]);
    let told = |report: &Value| {
        let all = report["capture_quality"].as_array().unwrap();
        all.iter().filter(|one| one["code"] == "large_tables").count()
    };
    assert_eq!((told(&fits), told(&outgrown)), (0, 1));
}

/// A full disk of whoever grades is no fault of a capture's.
#[cfg(unix)]
#[test]
fn without_room_for_temporary_files_there_is_an_error_and_no_verdict() {
    const VARIABLE: &str = "WIRELAB_NO_ROOM_TEST";
    if std::env::var_os(VARIABLE).is_none() {
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "grade::invariants::without_room_for_temporary_files_there_is_an_error_and_no_verdict",
                "--exact",
                "--nocapture",
            ])
            .envs([(VARIABLE, "1"), ("TMPDIR", "/no/such/folder")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
        return;
    }
    let path = sample("ping-delay/ping-delay.pcap");
    let submission = read_submission(&[path], &SubmissionLimits::default(), &mut Unobserved).unwrap();
    let capture = Options { memory_budget_bytes: Some(1), ..Options::default() };
    let options = GradeOptions { capture, ..GradeOptions::default() };
    let error = grade(&lab("every-outcome"), &submission, &options, &mut Unobserved).unwrap_err();
    assert!(matches!(error, Error::NoRoom { .. }) && error.to_string().contains("TMPDIR"), "{error}");
    let capture = wirelab::open([sample("tcp-loss/tcp-loss.h1.pcap").as_path()], &options.capture).unwrap();
    let error = capture.sql("SELECT count(*) FROM tcp", &[]).unwrap_err();
    assert!(matches!(error, Error::NoRoom { .. }), "a query tells it too: {error}");
}
