//! A lab checked by its cases: submissions whose results are known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rust_decimal::Decimal;

use super::document::{Document, Problem, Section};
use super::evaluate::{Assessed, GradeOptions, assess, ids_of};
use super::lab::{FEEDBACK_FILES, Lab, README_FILE, README_FILE_ZH};
use super::report::{Report, points_text};
use super::rubric::{Outcome, Rubric};
use super::submission::{self, Submission, SubmissionLimits};
use crate::error::Error;
use crate::observe::Observer;

pub const CASES_FOLDER: &str = "cases";
pub const CASE_FILE: &str = "case.toml";
pub const CASE_KEYS: [&str; 9] =
    ["score", "max_score", "needs_review", "failing", "partial", "not_assessable", "params", "submission", "files"];

/// What checking a lab showed.
#[derive(Debug, Default)]
pub struct LabCheck {
    pub lab: String,
    /// All cases that there are, graded or not.
    pub case_names: Vec<String>,
    pub problems: Vec<Problem>,
    /// What is worth a look, and no fault.
    pub notes: Vec<Problem>,
    pub cases: Vec<CaseResult>,
    /// Checks with the cases in which they lose points.
    pub losses: Vec<(String, Vec<String>)>,
}

impl LabCheck {
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.cases.iter().all(|case| case.problems.is_empty() && case.faults.is_empty())
    }
}

/// One case: what it got, and how that differs from what it must get.
#[derive(Debug)]
pub struct CaseResult {
    pub name: String,
    /// "7 / 10"; empty where it could not be graded.
    pub score: String,
    pub failing: Vec<String>,
    pub partial: Vec<String>,
    pub not_assessable: Vec<String>,
    pub problems: Vec<String>,
    pub report: Option<Arc<Report>>,
    /// Words that were used: check and name.
    said: BTreeSet<(String, String)>,
    /// What is wrong with checks themselves: check and message.
    faults: Vec<(String, String)>,
}

/// What a case must get.
#[derive(Debug, Default)]
struct Expected {
    score: Option<Decimal>,
    max_score: Option<Decimal>,
    needs_review: Option<bool>,
    failing: Vec<String>,
    partial: Vec<String>,
    not_assessable: Vec<String>,
    params: BTreeMap<String, String>,
    /// Instead of the files beside `case.toml`.
    submission: Option<PathBuf>,
    /// Files by their name in the submission: captures that cases share.
    files: Vec<(String, PathBuf)>,
}

/// Reads a lab's folder and grades all of its cases, or the one that is named: then what only all of them together can show
/// is not looked at.
pub fn check_lab(
    folder: &Path,
    only: Option<&str>,
    options: &GradeOptions,
    observer: &mut dyn Observer,
) -> Result<LabCheck, Error> {
    let name = name_of(&folder.canonicalize().map_err(|error| Error::io(folder, error))?);
    let mut check = LabCheck { lab: name.clone(), ..LabCheck::default() };
    let lab = match Lab::read(folder) {
        Ok(lab) => lab,
        Err(problems) => {
            check.problems = problems;
            return Ok(check);
        }
    };
    let rubric_file = folder.join(super::lab::RUBRIC_FILE).display().to_string();
    let mut complain = |message: String| check.problems.push(Problem::of_file(&rubric_file, message));
    if lab.id() != name {
        complain(format!("the lab's id is {}, but its folder is called {name}: they must be the same", lab.id()));
    }
    if lab.readme.trim().is_empty() {
        complain(format!("{README_FILE} is missing or empty: what to capture and how"));
    }
    let folders = case_folders(&folder.join(CASES_FOLDER))?;
    check.case_names = folders.iter().map(|folder| name_of(folder)).collect();
    for case in folders.iter().filter(|folder| only.is_none_or(|only| name_of(folder) == only)) {
        check.cases.push(run(&lab, case, options, observer)?);
    }
    if only.is_some() {
        complain_of_faults(&lab, &mut check, &rubric_file);
        return Ok(check);
    }
    let is_full = |case: &CaseResult| {
        case.report.as_ref().is_some_and(|report| report.items.iter().all(|item| item.status == Outcome::Pass))
    };
    if !check.cases.iter().any(is_full) {
        complain("no case in cases/ passes every check: add a submission with full marks".to_owned());
    }
    for of_lab in &lab.rubric.checks {
        let loses = |case: &&CaseResult| case.failing.contains(&of_lab.id) || case.partial.contains(&of_lab.id);
        let cases: Vec<_> = check.cases.iter().filter(loses).map(|case| case.name.clone()).collect();
        if cases.is_empty() {
            let message = format!("no case makes check {} fail: add one for the mistake that it finds", of_lab.id);
            check.problems.push(Problem { file: rubric_file.clone(), line: of_lab.line, message });
        }
        check.losses.push((of_lab.id.clone(), cases));
    }
    complain_of_faults(&lab, &mut check, &rubric_file);
    complain_of_template(&lab, &mut check, folder);
    complain_of_unsaid(&lab, &mut check, folder);
    Ok(check)
}

/// A check that fails to run does so in every case that comes to it: told once, with the place in the rubric.
fn complain_of_faults(lab: &Lab, check: &mut LabCheck, rubric_file: &str) {
    let mut told: Vec<(&(String, String), Vec<&str>)> = Vec::new();
    for case in &check.cases {
        for fault in &case.faults {
            match told.iter_mut().find(|(known, _)| *known == fault) {
                Some((_, cases)) if cases.last() == Some(&case.name.as_str()) => {}
                Some((_, cases)) => cases.push(&case.name),
                None => told.push((fault, vec![&case.name])),
            }
        }
    }
    let problem = |((id, message), cases): (&(String, String), Vec<&str>)| {
        let of_lab = lab.rubric.check(id);
        let line = of_lab.map_or(0, |of_lab| of_lab.sql_line);
        let where_ = match cases.as_slice() {
            [one] => format!("case {one}"),
            [first, rest @ ..] => format!("case {first} and {} more", rest.len()),
            [] => String::new(),
        };
        Problem { file: rubric_file.to_owned(), line, message: format!("check {id}: {message} ({where_})") }
    };
    let problems: Vec<_> = told.into_iter().map(problem).collect();
    check.problems.extend(problems);
}

/// What `labs new` wrote for its author to replace.
fn complain_of_template(lab: &Lab, check: &mut LabCheck, folder: &Path) {
    for (file, what, text) in [
        (FEEDBACK_FILES[0], "title", &lab.en.title),
        (FEEDBACK_FILES[0], "summary", &lab.en.summary),
        (FEEDBACK_FILES[1], "title", &lab.zh.title),
        (FEEDBACK_FILES[1], "summary", &lab.zh.summary),
        (README_FILE, "the text", &lab.readme),
        (README_FILE_ZH, "the text", &lab.readme_zh),
    ] {
        if super::skeleton::is_template(text, lab.id()) {
            let message = format!("{what} is still that of the template: write your own");
            check.problems.push(Problem::of_file(folder.join(file).display().to_string(), message));
        }
    }
}

/// Words of partial results and of expectations that no case brings up.
fn complain_of_unsaid(lab: &Lab, check: &mut LabCheck, folder: &Path) {
    let said: BTreeSet<_> = check.cases.iter().flat_map(|case| &case.said).collect();
    for of_lab in &lab.rubric.checks {
        for say in super::feedback::says(of_lab) {
            if !said.contains(&(of_lab.id.clone(), say.to_owned())) {
                let line = lab.en.checks.get(&of_lab.id).map_or(0, |words| words.line);
                let file = folder.join(FEEDBACK_FILES[0]).display().to_string();
                let message = format!("no case brings up the words {say} of check {}", of_lab.id);
                check.notes.push(Problem { file, line, message });
            }
        }
    }
}

fn case_folders(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io(folder, error))?;
    let mut folders: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir() && path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.')))
        .collect();
    folders.sort();
    Ok(folders)
}

fn name_of(folder: &Path) -> String {
    folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn run(lab: &Lab, folder: &Path, options: &GradeOptions, observer: &mut dyn Observer) -> Result<CaseResult, Error> {
    let mut result = CaseResult {
        name: name_of(folder),
        score: String::new(),
        failing: Vec::new(),
        partial: Vec::new(),
        not_assessable: Vec::new(),
        problems: Vec::new(),
        report: None,
        said: BTreeSet::new(),
        faults: Vec::new(),
    };
    if !result.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        result.problems.push("a case's folder is named with letters, digits, - and _".to_owned());
    }
    let (expected, problems) = match std::fs::read_to_string(folder.join(CASE_FILE)) {
        Ok(text) => read_expected(&folder.join(CASE_FILE), &text, &lab.rubric),
        Err(error) => {
            result.problems.push(format!("{CASE_FILE}: {error}"));
            return Ok(result);
        }
    };
    result.problems.extend(problems.iter().map(Problem::to_string));
    let submission = match read_submission(folder, &expected, observer) {
        Ok(submission) => submission,
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        Err(error) => {
            result.problems.push(error.to_string());
            return Ok(result);
        }
    };
    let mut options = options.clone();
    options.params.extend(expected.params.clone());
    let Assessed { report, faults, unfilled, said } = match assess(lab, &submission, &options, observer) {
        Ok(assessed) => assessed,
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        Err(error) => {
            result.problems.push(error.to_string());
            return Ok(result);
        }
    };
    result.failing = ids_of(&report, Outcome::Fail);
    result.partial = ids_of(&report, Outcome::Partial);
    result.not_assessable = ids_of(&report, Outcome::NotAssessable);
    let at_fault: BTreeSet<&str> = faults.iter().map(|(check, _)| check.as_str()).collect();
    compare(&report, &expected, &at_fault, &mut result);
    for (check, place) in unfilled {
        result.problems.push(format!("nothing fills {{{place}}} in the words of check {check}"));
    }
    result.faults = faults;
    result.report = Some(Arc::new(report));
    result.said = said;
    Ok(result)
}

/// `at_fault` are checks whose own faults are told anyway.
fn compare(report: &Report, expected: &Expected, at_fault: &BTreeSet<&str>, result: &mut CaseResult) {
    let (score, max) = (report.score.unwrap_or_default(), report.max_score.unwrap_or_default());
    result.score = format!("{} / {}", points_text(score), points_text(max));
    let points = [("score", expected.score, score), ("max_score", expected.max_score, max)];
    for (key, wanted, got) in points {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != got) {
            let (wanted, got) = (points_text(wanted), points_text(got));
            result.problems.push(format!("{key}: {CASE_FILE} says {wanted}; the lab gives {got}"));
        }
    }
    if let Some(wanted) = expected.needs_review.filter(|wanted| *wanted != report.needs_review) {
        let reasons: Vec<_> = report.review.iter().map(|reason| reason.message.en.as_str()).collect();
        let because = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        result.problems.push(format!("needs_review: {CASE_FILE} says {wanted}; the lab gives {}{because}", !wanted));
    }
    let lists = [
        ("failing", &expected.failing, &result.failing),
        ("partial", &expected.partial, &result.partial),
        ("not_assessable", &expected.not_assessable, &result.not_assessable),
    ];
    let mut problems = Vec::new();
    for (key, wanted, got) in lists {
        let wanted_set: BTreeSet<_> = wanted.iter().collect();
        let got_set: BTreeSet<_> = got.iter().collect();
        for id in got_set.difference(&wanted_set).filter(|id| !at_fault.contains(id.as_str())) {
            let item = report.items.iter().find(|item| item.id == **id);
            let message = item.map_or("", |item| item.message.en.as_str());
            problems.push(format!("check {id} is {key}, which {CASE_FILE} does not say: {message}"));
        }
        for id in wanted_set.difference(&got_set) {
            let status = report.items.iter().find(|item| item.id == **id).map_or("", |item| item.status.name());
            problems.push(format!("check {id}: {CASE_FILE} says {key}; the lab gives {status}"));
        }
    }
    result.problems.extend(problems);
}

fn read_expected(path: &Path, text: &str, rubric: &Rubric) -> (Expected, Vec<Problem>) {
    let name = path.display().to_string();
    let document = Document::new(&name, text);
    let table = document.parse();
    let top = Section::top(&document, &table);
    top.expect_keys(&CASE_KEYS);
    if !top.has("score") {
        top.problem("the file lacks the key score: what the submission must get, such as \"7.5\"");
    }
    let ids = |key: &str| {
        let ids = top.texts(key);
        for id in ids.iter().filter(|id| rubric.check(id).is_none()) {
            let hint = super::document::did_you_mean(id, rubric.checks.iter().map(|check| check.id.as_str()));
            top.problem_at(key, format!("the rubric has no check {id}{hint}"));
        }
        ids
    };
    let mut expected = Expected {
        score: top.points("score"),
        max_score: top.points("max_score"),
        needs_review: top.boolean("needs_review"),
        failing: ids("failing"),
        partial: ids("partial"),
        not_assessable: ids("not_assessable"),
        submission: top.text("submission").map(PathBuf::from),
        ..Expected::default()
    };
    if let Some(params) = top.section("params", "params") {
        for (name, _) in params.entries() {
            if let Some(value) = params.scalar(name) {
                expected.params.insert(name.to_owned(), param_text(value));
            }
        }
    }
    if let Some(files) = top.section("files", "files") {
        for (name, entry) in files.entries() {
            match entry.text() {
                Some(path) => expected.files.push((name.to_owned(), PathBuf::from(path))),
                None => entry.problem("files name a path each, in quotes"),
            }
        }
    }
    drop(table);
    (expected, document.into_problems())
}

fn param_text(value: crate::sql::Value) -> String {
    use crate::sql::Value;
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Null => String::new(),
    }
}

/// What the case names, else the files beside `case.toml`.
fn read_submission(folder: &Path, expected: &Expected, observer: &mut dyn Observer) -> Result<Submission, Error> {
    let limits = SubmissionLimits::default();
    let mut whole = match &expected.submission {
        Some(path) => submission::read(&folder.join(path), &limits, observer)?,
        None => {
            let mut found = submission::read(folder, &limits, observer)?;
            found.files.retain(|file| file.name != CASE_FILE && file.name != README_FILE);
            found.findings.retain(|finding| ![CASE_FILE, README_FILE].contains(&finding.file.as_str()));
            found
        }
    };
    for (name, path) in &expected.files {
        let part = submission::read(&folder.join(path), &limits, observer)?;
        for mut file in part.files {
            file.name.clone_from(name);
            whole.files.push(file);
        }
    }
    if !whole.files.is_empty() {
        whole.findings.retain(|finding| finding.code != "no_files");
    }
    whole.files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(whole)
}
