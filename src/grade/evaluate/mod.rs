//! A submission against a lab's rubric.

mod ask;
mod check;
mod compare;
mod evidence;
mod inputs;
mod reasons;
mod tables;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rust_decimal::Decimal;

use super::lab::Lab;
use super::params;
use super::report::{
    Both, Counted, Group, Item, Reason, Report, RubricFacts, SCHEMA, Status, SubmissionFacts, View, status_of,
};
use super::rubric::Outcome;
use super::submission::{self, Submission, SubmissionLimits};
use crate::error::Error;
use crate::observe::Observer;
use crate::options::Options;
use crate::words::{Lang, say};
use ask::Asker;
use check::Bench;

/// How to grade.
#[derive(Clone, Debug, Default)]
pub struct GradeOptions {
    /// Values of the lab's parameters, by name; the others have their defaults.
    pub params: BTreeMap<String, String>,
    /// How captures are read.
    pub capture: Options,
}

/// Grades a submission. Whatever is wrong with it is in the report; an error means that the call is at fault (a parameter
/// that the lab does not have) or that the observer stopped it.
pub fn grade(
    lab: &Lab,
    submission: &Submission,
    options: &GradeOptions,
    observer: &mut dyn Observer,
) -> Result<Report, Error> {
    assess(lab, submission, options, observer).map(|assessed| assessed.report)
}

/// Several files as one submission, or what one path holds.
pub fn read_submission(
    paths: &[PathBuf],
    limits: &SubmissionLimits,
    observer: &mut dyn Observer,
) -> Result<Submission, Error> {
    if let [path] = paths {
        return submission::read(path, limits, observer);
    }
    let mut parts = Vec::with_capacity(paths.len());
    for path in paths {
        parts.push(submission::read(path, limits, observer)?);
    }
    let mut parts = parts.into_iter();
    let Some(mut whole) = parts.next() else {
        return Err(Error::Usage("a submission is a folder, an archive or at least one file".to_owned()));
    };
    for part in parts {
        for mut file in part.files {
            // Two files of one name from two folders.
            let name = file.name.clone();
            let mut number = 2;
            while whole.files.iter().any(|other| other.name == file.name) {
                file.name = format!("{number}/{name}");
                number += 1;
            }
            whole.files.push(file);
        }
        whole.findings.extend(part.findings);
    }
    whole.files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(whole)
}

/// A report, and what the lab's author should know of it.
pub(super) struct Assessed {
    pub report: Report,
    /// What is wrong with checks themselves: check and message.
    pub faults: Vec<(String, String)>,
    /// Places of words that nothing filled: check and place.
    pub unfilled: BTreeSet<(String, String)>,
    /// Words of the lab that were used: check and name.
    pub said: BTreeSet<(String, String)>,
}

pub(super) fn assess(
    lab: &Lab,
    submission: &Submission,
    options: &GradeOptions,
    observer: &mut dyn Observer,
) -> Result<Assessed, Error> {
    let params = params::values(&lab.rubric.params, &options.params)?;
    let opened = inputs::open(lab, submission, options, observer)?;
    let asker = Asker::new(opened.sources, params.clone());
    let mut bench = Bench {
        lab,
        params: &params,
        inputs: &opened.inputs,
        quality: &opened.quality,
        asker: &asker,
        done: BTreeMap::new(),
        left_out: BTreeSet::new(),
        lost: BTreeMap::new(),
        titles: BTreeMap::new(),
        faults: Vec::new(),
        unfilled: BTreeSet::new(),
        said: BTreeSet::new(),
    };
    let mut items = Vec::with_capacity(lab.rubric.checks.len());
    for check in &lab.rubric.checks {
        items.push(bench.assess(check, observer)?);
    }
    let (faults, unfilled, said) = (bench.faults, bench.unfilled, bench.said);
    let counted = || items.iter().filter(|item| item.counted != Counted::Excluded);
    let review = review(&items);
    let has_input = opened.inputs.iter().any(|input| matches!(input.presence, inputs::Presence::Present));
    let report = Report {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION"),
        view: View::Full,
        lab: lab.rubric.id.clone(),
        title: lab.title(),
        summary: Both::new(|lang| lab.words(lang).summary.clone()),
        rubric: RubricFacts {
            id: lab.rubric.id.clone(),
            version: lab.rubric.version.clone(),
            sha256: lab.rubric.sha256.clone(),
        },
        submission: SubmissionFacts { id: submission.id.clone(), files: opened.files, findings: opened.findings },
        score: Some(counted().map(|item| item.points).sum()),
        max_score: Some(counted().map(|item| item.max_points).sum()),
        status: if has_input { status_of(&items) } else { Status::Error },
        needs_review: !review.is_empty(),
        review,
        capture_quality: opened.quality.clone(),
        groups: groups(lab, &items),
        items,
        params,
    };
    Ok(Assessed { report, faults, unfilled, said })
}

/// Why a person should look at it: a reason for each check that says so.
fn review(items: &[Item]) -> Vec<Reason> {
    let reason = |item: &Item| {
        let (code, message) = match &item.reason {
            // What the lab says of it tells more than that a value is missing.
            Some(reason) if reason.is_unanswered() => (reason.code.clone(), item.message.clone()),
            Some(reason) => (reason.code.clone(), reason.message.clone()),
            None => {
                let message =
                    Both::new(|lang| say(lang, "grade.reason.failed_check", &[("title", &item.title.get(lang))]));
                return Reason { code: "failed_check".to_owned(), check: Some(item.id.clone()), message };
            }
        };
        let message = Both::new(|lang| {
            let values: &[(&str, &dyn std::fmt::Display)] =
                &[("id", &item.title.get(lang)), ("message", &message.get(lang))];
            say(lang, "grade.check_list", values)
        });
        Reason { code, check: Some(item.id.clone()), message }
    };
    items.iter().filter(|item| item.needs_review).map(reason).collect()
}

fn groups(lab: &Lab, items: &[Item]) -> Vec<Group> {
    let title = |id: &str, lang: Lang| lab.words(lang).groups.get(id).cloned().unwrap_or_else(|| id.to_owned());
    let group = |id: &String| {
        let counted =
            || items.iter().filter(|item| item.group.as_ref() == Some(id) && item.counted != Counted::Excluded);
        Group {
            id: id.clone(),
            title: Both::new(|lang| title(id, lang)),
            points: Some(counted().map(|item| item.points).sum::<Decimal>()),
            max_points: Some(counted().map(|item| item.max_points).sum::<Decimal>()),
        }
    };
    lab.rubric.groups.iter().map(group).collect()
}

/// The ids of the checks with this outcome, in order.
pub(super) fn ids_of(report: &Report, outcome: Outcome) -> Vec<String> {
    report.items.iter().filter(|item| item.status == outcome).map(|item| item.id.clone()).collect()
}
