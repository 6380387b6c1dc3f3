//! Grading: a rubric, a submission, a report. Labs are data: this folder knows none of them.

mod cases;
mod document;
mod evaluate;
mod feedback;
mod fill;
mod lab;
mod needs;
mod params;
mod render;
mod report;
mod rubric;
mod skeleton;
pub mod submission;
mod units;

pub use cases::{CaseResult, LabCheck, check_lab};
pub use document::Problem;
pub use evaluate::{GradeOptions, grade, read_submission};
pub use feedback::Feedback;
pub use lab::{Lab, Library, Listed};
pub use params::{Param, ParamKind};
pub use render::{TextOptions, page, part, text};
pub use report::{JSON_SCHEMA, Report};
pub use rubric::{Check, Input, Outcome, Rubric, Visibility};
pub use skeleton::new_lab;

pub use report::points_text;
pub use units::readable;

/// The schema that tells of the submission itself.
const SUBMISSION_SCHEMA: &str = "submission";
/// SQLite attaches ten schemas; one of them is the submission's.
const MAX_INPUTS: usize = 9;

/// Every key that the files of a lab can have, by table: `docs/grading.md` must tell of all.
pub fn documented_keys() -> Vec<(&'static str, &'static [&'static str])> {
    let mut keys = rubric::KEYS.to_vec();
    keys.extend([
        ("feedback", feedback::KEYS.as_slice()),
        ("words of a check", feedback::CHECK_KEYS.as_slice()),
        ("case", cases::CASE_KEYS.as_slice()),
    ]);
    keys
}

/// What an input of a lab can be.
fn input_kinds() -> Vec<&'static str> {
    let logs = crate::logs::LOG_KINDS.into_iter().map(crate::logs::LogKind::name);
    ["capture"].into_iter().chain(logs).chain(["text"]).collect()
}
