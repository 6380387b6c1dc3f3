//! Submissions graded: a lab for tests in which every way that a check can end comes up, and labs with faults.

mod invariants;
mod labs;
mod outcomes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wirelab::grade::{GradeOptions, Lab, Report, grade, read_submission, submission::SubmissionLimits};
use wirelab::{Checksums, Options, Unobserved};

use crate::support::crate_root;

fn lab_folder(name: &str) -> PathBuf {
    crate_root().join("tests/data/labs").join(name)
}

fn lab(name: &str) -> Lab {
    Lab::read(&lab_folder(name)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn sample(name: &str) -> PathBuf {
    crate_root().join("sample-captures").join(name)
}

fn graded(lab: &Lab, paths: &[PathBuf], params: &[(&str, &str)]) -> Report {
    let submission = read_submission(paths, &SubmissionLimits::default(), &mut Unobserved).unwrap();
    let params: BTreeMap<_, _> = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = GradeOptions { params, capture: Options { checksums: Checksums::Off, ..Options::default() } };
    grade(lab, &submission, &options, &mut Unobserved).unwrap()
}

/// A folder with these files, by name.
fn folder_of(at: &Path, files: &[(&str, &Path)]) -> PathBuf {
    let folder = at.join("submission");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, from) in files {
        std::fs::copy(from, folder.join(name)).unwrap();
    }
    folder
}

fn json(report: &Report) -> serde_json::Value {
    serde_json::from_str(&report.to_json()).unwrap()
}
