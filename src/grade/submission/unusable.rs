//! What was handed in for an input and cannot be it: to be told from what was never handed in.

use super::assign::{InputKind, InputSpec, input_key, kind_key};
use super::finding::SubmissionFinding;
use super::names::is_capture_name;
use super::{Submission, SubmittedFile};
use crate::capture::Severity;
use crate::words::{self, Lang};

/// Reasons that are told of one input.
const MOST_REASONS: usize = 3;

/// Findings on files that are left out for what they are.
const UNREAD: [&str; 8] = [
    "climbing_path",
    "damaged_file",
    "encrypted",
    "file_too_large",
    "link",
    "packing_method",
    "special_file",
    "unreadable",
];
/// Findings on archives of which not all was read.
const UNOPENED: [&str; 11] = [
    "bzip2",
    "damaged_archive",
    "damaged_file",
    "empty_archive",
    "encrypted",
    "nested_too_deep",
    "rar",
    "seven_zip",
    "tar",
    "too_much",
    "zip_bomb",
];
/// Findings that say what a file is, where a capture was meant.
const NO_CAPTURE: [&str; 3] = ["no_capture", "tcpdump_text", "renamed_capture"];
/// Findings on the name of a file, and not on what is in it.
const OF_NAMES: [&str; 3] = ["absolute_path", "device_name", "duplicate_name"];

/// What was handed in for an input that has no file, and why it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Names of the files; none where an archive could not be opened that may hold the input.
    pub files: Vec<String>,
    pub en: String,
    pub zh: String,
}

/// Why an input is missing although something was handed in for it; none where nothing was. `near` are files whose name
/// fits.
pub fn unusable(input: &InputSpec, near: &[usize], submission: &Submission) -> Option<Unusable> {
    let near: Vec<&SubmittedFile> = near.iter().filter_map(|at| submission.files.get(*at)).collect();
    let why = |file: &SubmittedFile, lang: Lang| {
        let is_why = |finding: &&SubmissionFinding| {
            finding.file == file.name
                && finding.severity != Severity::Info
                && !OF_NAMES.contains(&finding.code)
                && (input.kind == InputKind::Capture || !NO_CAPTURE.contains(&finding.code))
        };
        match submission.findings.iter().find(is_why) {
            Some(finding) => finding.message(lang),
            None => {
                let (kind, wanted) =
                    (words::say(lang, kind_key(file.kind), &[]), words::say(lang, input_key(input.kind), &[]));
                words::say(lang, "submission.other_kind", &[("file", &file.name), ("kind", &kind), ("wanted", &wanted)])
            }
        }
    };
    let unread = if input.patterns.is_empty() { Vec::new() } else { unread(input, submission) };
    let mut files: Vec<String> = near.iter().map(|file| file.name.clone()).collect();
    files.extend(unread.iter().map(|finding| finding.file.clone()));
    files.dedup();
    let is_unopened = |finding: &&SubmissionFinding| UNOPENED.contains(&finding.code);
    // Of what need not be handed in nobody can say that it is in there.
    let is_told = files.is_empty() && input.required;
    let unopened: Vec<_> = submission.findings.iter().filter(|finding| is_told && is_unopened(finding)).collect();
    let say = |lang: Lang| {
        let of_near = near.iter().map(|file| why(file, lang));
        let of_others = unread.iter().chain(&unopened).map(|finding| finding.message(lang));
        let sentences: Vec<_> = of_near.chain(of_others).take(MOST_REASONS).collect();
        sentences.join(if lang == Lang::Zh { "" } else { " " })
    };
    let (en, zh) = (say(Lang::En), say(Lang::Zh));
    (!en.is_empty()).then_some(Unusable { files, en, zh })
}

/// What was handed in for an input and is not among the submission's files, since it could not be read. A name like a
/// capture's tells which of two inputs of one name it was meant for.
fn unread<'s>(input: &InputSpec, submission: &'s Submission) -> Vec<&'s SubmissionFinding> {
    let names = input.names();
    let is_of = |finding: &&SubmissionFinding| {
        let base_name = finding.file.rsplit('/').next().unwrap_or_default();
        UNREAD.contains(&finding.code)
            && names.fit(base_name, base_name)
            && (is_capture_name(base_name) == (input.kind == InputKind::Capture) || !base_name.contains('.'))
            && submission.files.iter().all(|file| file.name != finding.file)
    };
    submission.findings.iter().filter(is_of).collect()
}
