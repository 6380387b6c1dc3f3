//! What all renderings say, in one language.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;

use super::wrap::printable;
use crate::grade::report::{
    Counted, Evidence, Item, Measured, OPTIONAL_INPUT, Reason, Report, SubmissionFinding, is_time, points_text,
    time_text,
};
use crate::grade::rubric::{Op, Outcome, Visibility, bound_names};
use crate::grade::units::{Unit, exact, pair, readable};
use crate::sql::Value;
use crate::words::{Lang, say};

#[derive(Serialize)]
pub(super) struct View {
    pub lang: &'static str,
    pub title: String,
    pub summary: String,
    pub lab: String,
    pub submission: String,
    pub score: String,
    /// Share of the points, in percent; none where there is no total.
    pub percent: Option<f64>,
    pub status: String,
    pub status_name: &'static str,
    pub needs_review: bool,
    pub review: Vec<String>,
    pub params: Vec<(String, String)>,
    pub files: Vec<FileLine>,
    pub findings: Vec<FindingLine>,
    pub quality: Vec<FindingLine>,
    /// How many of these are notes; empty for none.
    pub notes: String,
    /// Whether there was a capture to judge.
    pub has_captures: bool,
    pub groups: Vec<GroupView>,
    pub tool: String,
    pub rubric_sha256: String,
}

#[derive(Serialize)]
pub(super) struct FileLine {
    pub name: String,
    pub input: String,
    pub kind: String,
    pub size: String,
    pub sha256: String,
}

#[derive(Serialize)]
pub(super) struct FindingLine {
    pub severity: String,
    pub word: String,
    pub place: String,
    pub message: String,
}

#[derive(Serialize)]
pub(super) struct GroupView {
    /// Empty where the lab has no groups.
    pub title: String,
    pub points: String,
    pub items: Vec<ItemView>,
}

#[derive(Serialize)]
pub(super) struct ItemView {
    pub id: String,
    pub title: String,
    pub status: &'static str,
    pub word: String,
    pub mark: &'static str,
    pub points: String,
    pub notes: Vec<String>,
    pub message: String,
    pub reason: String,
    pub hint: String,
    pub measured: Vec<MeasuredLine>,
    pub frames: Vec<String>,
    pub filters: Vec<String>,
    pub table: Option<Table>,
    pub searched: String,
    pub sql: String,
    /// What runs the query in a shell; empty where only grading can.
    pub command: String,
    pub tags: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct MeasuredLine {
    pub expected: String,
    pub measured: String,
    pub is_met: Option<bool>,
}

/// Rows of evidence.
#[derive(Serialize)]
pub(super) struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl View {
    pub fn new(report: &Report, lang: Lang) -> Self {
        let word = |key: &str| say(lang, &format!("grade.text.{key}"), &[]);
        let score = match (report.score, report.max_score) {
            (Some(score), Some(max)) => {
                say(lang, "grade.text.of", &[("points", &points_text(score)), ("max", &points_text(max))])
            }
            _ => word("points_hidden"),
        };
        let version =
            say(lang, "grade.text.version", &[("id", &report.rubric.id), ("version", &report.rubric.version)]);
        let file = |file: &crate::grade::report::FileFacts| FileLine {
            name: printable(&file.name),
            input: file.input.clone().unwrap_or_else(|| word("unused")),
            kind: file.kind.clone(),
            size: readable(&Value::Integer(file.bytes as i64), Some(Unit::Bytes), lang),
            sha256: file.sha256.clone(),
        };
        let finding = |severity: &str, place: String, message: &str| FindingLine {
            severity: severity.to_owned(),
            word: word(&format!("severity_{severity}")),
            place: printable(&place),
            message: printable(message),
        };
        Self {
            lang: match lang {
                Lang::En => "en",
                Lang::Zh => "zh-CN",
            },
            title: report.title.get(lang).to_owned(),
            summary: report.summary.get(lang).to_owned(),
            lab: version,
            submission: printable(&report.submission.id),
            score,
            percent: report.score.zip(report.max_score).and_then(percent),
            status: say(lang, &format!("grade.status.{}", report.status.name()), &[]),
            status_name: report.status.name(),
            needs_review: report.needs_review,
            review: report.review.iter().map(|reason| printable(reason.message.get(lang))).collect(),
            params: report
                .params
                .iter()
                .map(|(name, value)| (name.clone(), readable(value, Unit::of_column(name), lang)))
                .collect(),
            files: report.submission.files.iter().map(file).collect(),
            findings: report
                .submission
                .findings
                .iter()
                .map(|one| finding(&one.severity, place(one, lang), one.message.get(lang)))
                .collect(),
            quality: report
                .capture_quality
                .iter()
                .map(|one| finding(&one.severity, one.input.clone(), one.message.get(lang)))
                .collect(),
            notes: match report.capture_quality.iter().filter(|one| one.severity == "info").count() {
                0 => String::new(),
                count => say(lang, "grade.text.notes", &[("count", &count)]),
            },
            has_captures: report.submission.files.iter().any(|file| file.kind == "capture" && file.input.is_some()),
            groups: groups(report, lang),
            tool: say(lang, "grade.text.tool", &[("version", &report.tool_version)]),
            rubric_sha256: report.rubric.sha256.clone(),
        }
    }
}

/// The file that a finding is of, where its sentence does not name it.
fn place(finding: &SubmissionFinding, lang: Lang) -> String {
    let file = finding.file.clone().unwrap_or_default();
    if finding.message.get(lang).contains(&file) { String::new() } else { file }
}

fn percent((score, max): (Decimal, Decimal)) -> Option<f64> {
    if max.is_zero() { None } else { (score * Decimal::ONE_HUNDRED / max).round_dp(1).to_f64() }
}

/// Items by group, in the rubric's order; those of no group come last.
fn groups(report: &Report, lang: Lang) -> Vec<GroupView> {
    let of = |group: Option<&str>| -> Vec<ItemView> {
        report.items.iter().filter(|item| item.group.as_deref() == group).map(|one| item(one, report, lang)).collect()
    };
    let mut groups: Vec<_> = report
        .groups
        .iter()
        .map(|group| GroupView {
            title: group.title.get(lang).to_owned(),
            points: match (group.points, group.max_points) {
                (Some(points), Some(max)) => points_of(points, max, lang),
                _ => String::new(),
            },
            items: of(Some(&group.id)),
        })
        .collect();
    let rest = of(None);
    if !rest.is_empty() {
        let title = if groups.is_empty() { String::new() } else { say(lang, "grade.text.other", &[]) };
        groups.push(GroupView { title, points: String::new(), items: rest });
    }
    groups.retain(|group| !group.items.is_empty());
    groups
}

fn points_of(points: Decimal, max: Decimal, lang: Lang) -> String {
    say(lang, "grade.text.points", &[("points", &points_text(points)), ("max", &points_text(max))])
}

fn item(item: &Item, report: &Report, lang: Lang) -> ItemView {
    let reason = item.reason.as_ref().map_or("", |reason| reason.message.get(lang));
    let message = item.message.get(lang);
    // Where the lab has words of its own, that a value is missing is said by them.
    let is_unanswered = item.reason.as_ref().is_some_and(Reason::is_unanswered);
    let is_code = |code: &str| item.reason.as_ref().is_some_and(|reason| reason.code == code);
    // Nothing was looked for: the reason names the check that this one waits for, or the file that need not be there.
    let is_searched = !is_code("depends_on") && !is_code(OPTIONAL_INPUT);
    ItemView {
        id: item.id.clone(),
        title: printable(item.title.get(lang)),
        status: item.status.name(),
        word: say(lang, &format!("grade.outcome.{}", item.status.name()), &[]),
        mark: match item.status {
            Outcome::Pass => "✓",
            Outcome::Partial => "◐",
            Outcome::Fail => "✗",
            Outcome::NotAssessable => "?",
        },
        points: if item.max_points.is_zero() { String::new() } else { points_of(item.points, item.max_points, lang) },
        notes: notes(item, lang),
        message: printable(message),
        reason: if reason == message || is_unanswered { String::new() } else { printable(reason) },
        hint: item.hint.as_ref().map_or(String::new(), |hint| printable(hint.get(lang))),
        measured: item.measured.iter().filter(|one| is_told(one)).map(|one| measured(one, lang)).collect(),
        frames: item.evidence.iter().filter_map(|one| frames(one, lang)).collect(),
        filters: item.evidence.iter().filter_map(|one| one.filter.as_deref().map(printable)).collect(),
        table: table(&item.evidence, lang),
        searched: item.searched.as_deref().filter(|_| is_searched).map(printable).unwrap_or_default(),
        sql: item.sql.trim().to_owned(),
        command: command(item, report).unwrap_or_default(),
        tags: item.tags.clone(),
    }
}

fn notes(item: &Item, lang: Lang) -> Vec<String> {
    let mut notes = Vec::new();
    if item.counted == Counted::Excluded {
        notes.push(say(lang, "grade.text.excluded", &[]));
    }
    if item.visibility == Visibility::Hidden {
        notes.push(say(lang, "grade.text.hidden", &[]));
    }
    notes
}

/// `wirelab sql '…' jumbo=file.pcap --param mtu=9000`, where that can run the query.
fn command(item: &Item, report: &Report) -> Option<String> {
    let files = item.sources.as_ref().filter(|files| !files.is_empty())?;
    let mut parts = vec!["wirelab sql".to_owned(), shell_quoted(item.sql.trim())];
    parts.extend(files.iter().map(|file| shell_quoted(file)));
    for name in bound_names(&item.sql) {
        let value = match report.params.get(name)? {
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            Value::Null => return None,
        };
        parts.push(format!("--param {}", shell_quoted(&format!("{name}={value}"))));
    }
    Some(printable(&parts.join(" ")))
}

/// For a POSIX shell, and PowerShell too where there is no quote inside.
fn shell_quoted(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "=._-/".contains(c));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Whether there is something that was expected: an expression over what is missing has no value.
fn is_told(measured: &Measured) -> bool {
    !measured.expected.is_empty() && !measured.expected.contains(&Value::Null)
}

fn measured(measured: &Measured, lang: Lang) -> MeasuredLine {
    let unit = measured.unit;
    let (value, first) = match measured.expected.first() {
        Some(expected) => pair(&measured.value, expected, unit, lang),
        None => (readable(&measured.value, unit, lang), String::new()),
    };
    let every = || {
        let texts: Vec<_> = measured.expected.iter().map(|value| readable(value, unit, lang)).collect();
        texts.join(&say(lang, "grade.and", &[]))
    };
    let most = measured.expected.get(1).map_or(String::new(), |most| pair(most, &measured.value, unit, lang).0);
    let expected = if measured.op == Op::OneOf { every() } else { first.clone() };
    let tolerance = measured.tolerance.clone().unwrap_or_default();
    MeasuredLine {
        expected: printable(&say(
            lang,
            &format!("grade.op.{}", measured.op.name()),
            &[
                ("column", &measured.label.get(lang)),
                ("expected", &expected),
                ("least", &first),
                ("most", &most),
                ("tolerance", &tolerance),
            ],
        )),
        measured: printable(&value),
        is_met: measured.is_met,
    }
}

/// "1, 5, 9 (file)".
fn frames(evidence: &Evidence, lang: Lang) -> Option<String> {
    if evidence.frames.is_empty() {
        return None;
    }
    let numbers: Vec<_> = evidence.frames.iter().map(u64::to_string).collect();
    let numbers = numbers.join(", ");
    let file = printable(evidence.file.as_deref().or(evidence.input.as_deref()).unwrap_or(""));
    let key = if evidence.has_more { "grade.text.frames_more" } else { "grade.text.frames_of" };
    Some(say(lang, key, &[("frames", &numbers), ("file", &file)]))
}

fn table(evidence: &[Evidence], lang: Lang) -> Option<Table> {
    let head = evidence.iter().find(|one| !one.columns.is_empty())?.columns.clone();
    let cell = |one: &Evidence, column: &String, value: &Value| match (value, one.start_ns) {
        (Value::Integer(ns), Some(start)) if is_time(column) => since(*ns - start),
        (Value::Integer(ns), None) if is_time(column) => time_text(*ns),
        (value, _) => match Unit::of_column(column) {
            Some(unit) if unit.is_time() => printable(&readable(value, Some(unit), lang)),
            unit => printable(&exact(value, unit, lang)),
        },
    };
    let row = |one: &Evidence, row: &std::collections::BTreeMap<String, Value>| -> Vec<String> {
        head.iter().map(|column| row.get(column).map_or(String::new(), |value| cell(one, column, value))).collect()
    };
    let rows = evidence.iter().flat_map(|one| one.rows.iter().map(|values| row(one, values)).collect::<Vec<_>>());
    let rows = rows.collect();
    Some(Table { rows, head: head.iter().map(|column| heading(column).to_owned()).collect() })
}

/// A column's name as a heading: without its unit where the cells have one that suits them, "3.48 s" of `duration_ns`.
fn heading(column: &str) -> &str {
    match (Unit::of_column(column), column.rsplit_once('_')) {
        (Some(unit), Some((name, _))) if unit.is_time() => name,
        _ => column,
    }
}

/// Seconds since the first frame, as Wireshark shows them.
fn since(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1000;
    format!("{sign}{}.{:06} s", us / 1_000_000, us % 1_000_000)
}
