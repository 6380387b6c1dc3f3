//! The inputs of a lab, opened: each a schema of SQL, beside one that tells of the submission itself.

use std::path::PathBuf;
use std::sync::Arc;

use super::tables::{lines_source, submission_source};
use super::{GradeOptions, ask::Asker};
use crate::RoceEndpoint;
use crate::capture::Input;
use crate::error::Error;
use crate::grade::SUBMISSION_SCHEMA;
use crate::grade::lab::Lab;
use crate::grade::report::{Both, FileFacts, QualityFinding, SubmissionFinding};
use crate::grade::rubric::{Check, Rubric};
use crate::grade::submission::{
    Assigned, Content, InputAssignment, InputKind, InputSpec, Submission, SubmittedFile, Unusable, assign, unusable,
};
use crate::logs::{self, Log, LogError, LogKind};
use crate::observe::Observer;
use crate::open::Capture;
use crate::options::{Checksums, Options};
use crate::sql::{Source, Value};
use crate::tables::{TABLES, TableId};

/// Captures up to this size are read once, with all tables that the rubric names; of larger ones each query takes the
/// columns it needs.
const READ_AT_ONCE_BYTES: u64 = 64 << 20;
/// Bytes that a compressed capture may always grow to, and how many times its size beyond: what it holds ends up in memory.
const DECOMPRESSED_BYTES: u64 = 128 << 20;
const DECOMPRESSED_RATIO: u64 = 10;
/// Compressed captures up to this size are read once.
const READ_AT_ONCE_COMPRESSED_BYTES: u64 = 8 << 20;
/// Time for the queries that list findings.
const LISTING_TIME_S: u64 = 60;
/// Findings of one input that a report lists.
const MOST_FINDINGS: usize = 100;

/// One input, as far as it is there.
#[derive(Debug)]
pub(super) struct InputState {
    pub name: String,
    pub kind: InputKind,
    pub required: bool,
    /// Time of the first frame, of a capture.
    pub start_ns: Option<i64>,
    /// Names of its files in the submission.
    pub files: Vec<String>,
    pub presence: Presence,
}

#[derive(Clone, Debug)]
pub(super) enum Presence {
    Present,
    Missing,
    /// Something was handed in for it that cannot be used.
    Unusable(Unusable),
    /// Several files could be it.
    Ambiguous,
    Unreadable {
        file: String,
        why: Both,
    },
}

pub(super) struct Opened {
    pub inputs: Vec<InputState>,
    pub sources: Vec<(String, Arc<dyn Source>)>,
    pub quality: Vec<QualityFinding>,
    pub files: Vec<FileFacts>,
    pub findings: Vec<SubmissionFinding>,
}

pub(super) fn open(
    lab: &Lab,
    submission: &Submission,
    options: &GradeOptions,
    observer: &mut dyn Observer,
) -> Result<Opened, Error> {
    let specs: Vec<_> = lab.rubric.inputs.iter().filter_map(spec).collect();
    let assignment = assign(&specs, submission);
    let mut run = options.capture.clone();
    run.roce_endpoints.extend(endpoints(&specs, &assignment.inputs, submission));
    let mut inputs = Vec::new();
    let mut sources: Vec<(String, Arc<dyn Source>)> = Vec::new();
    let mut quality = Vec::new();
    for (spec, assigned) in specs.iter().zip(&assignment.inputs) {
        let name = |at: &usize| submission.files.get(*at).map(|file| file.name.clone());
        let mut state = InputState {
            name: spec.name.clone(),
            kind: spec.kind,
            required: spec.required,
            start_ns: None,
            files: Vec::new(),
            presence: Presence::Missing,
        };
        match &assigned.outcome {
            Assigned::Missing { near } => {
                if let Some(why) = unusable(spec, near, submission) {
                    state.presence = Presence::Unusable(why);
                }
            }
            Assigned::Ambiguous { candidates } => {
                state.files = candidates.iter().filter_map(name).collect();
                state.presence = Presence::Ambiguous;
            }
            Assigned::File(at) => {
                let Some(file) = submission.files.get(*at) else { continue };
                state.files = vec![file.name.clone()];
                match read(spec, file, &lab.rubric, &run, observer) {
                    Ok(Readout { source, findings, start_ns }) => {
                        sources.push((spec.name.clone(), source));
                        quality.extend(findings);
                        state.start_ns = start_ns;
                        state.presence = Presence::Present;
                    }
                    Err(Unread::Ended(error)) => return Err(error),
                    Err(Unread::Because(why)) => {
                        state.presence = Presence::Unreadable { file: file.name.clone(), why };
                    }
                }
            }
        }
        // Views may read what need not be there.
        if !spec.required && !matches!(state.presence, Presence::Present) {
            sources.push((spec.name.clone(), without_rows(spec.kind)?));
        }
        inputs.push(state);
    }
    let files = files(submission, &inputs);
    let findings: Vec<_> = submission
        .findings
        .iter()
        .chain(&assignment.findings)
        .map(|finding| SubmissionFinding {
            code: finding.code.to_owned(),
            severity: finding.severity.name().to_owned(),
            file: Some(finding.file.clone()).filter(|file| !file.is_empty()),
            message: Both::new(|lang| finding.message(lang)),
        })
        .collect();
    sources.push((SUBMISSION_SCHEMA.to_owned(), submission_source(&files, &findings)?));
    Ok(Opened { inputs, sources, quality, files, findings })
}

/// Queue pairs that the submission's perftest logs name: they pair those of its captures.
fn endpoints(specs: &[InputSpec], assigned: &[InputAssignment], submission: &Submission) -> Vec<RoceEndpoint> {
    let logs = specs.iter().zip(assigned).filter(|(spec, _)| spec.kind == InputKind::Log(LogKind::Perftest));
    let files = logs.filter_map(|(_, assigned)| match assigned.outcome {
        Assigned::File(at) => submission.files.get(at),
        _ => None,
    });
    // What is wrong with a log is said where it is opened.
    files.filter_map(|file| logs::roce_endpoints(&file.bytes().ok()?).ok()).flatten().collect()
}

/// What the submission must have for an input; none for a kind that no file can have, which no valid rubric names.
pub(in crate::grade) fn spec(input: &crate::grade::rubric::Input) -> Option<InputSpec> {
    Some(InputSpec {
        name: input.name.clone(),
        kind: InputKind::from_name(&input.kind)?,
        patterns: input.patterns.clone(),
        required: input.required,
    })
}

enum Unread {
    /// Not the file's fault: stopped, or no room for temporary files.
    Ended(Error),
    Because(Both),
}

struct Readout {
    source: Arc<dyn Source>,
    findings: Vec<QualityFinding>,
    start_ns: Option<i64>,
}

/// All tables that an input of this kind has, and no row.
fn without_rows(kind: InputKind) -> Result<Arc<dyn Source>, Error> {
    /// The head of a pcap file of Ethernet frames.
    const EMPTY_PCAP: [u8; 24] = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    Ok(match kind {
        InputKind::Capture => {
            Arc::new(crate::open::open([Input::Bytes(Arc::from(EMPTY_PCAP.as_slice()))], &Options::default())?)
        }
        InputKind::Log(kind) => Arc::new(logs::empty(kind)),
        InputKind::Text => lines_source(&[])?,
    })
}

fn read(
    spec: &InputSpec,
    file: &SubmittedFile,
    rubric: &Rubric,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Readout, Unread> {
    let because = |error: Error| unread(error, file);
    match spec.kind {
        InputKind::Capture => capture(spec, file, rubric, options, observer),
        InputKind::Log(kind) => {
            let bytes = file.bytes().map_err(because)?;
            let log = logs::read_observed(kind, &bytes, observer).map_err(|error| match error {
                LogError::Cancelled => Unread::Ended(Error::Cancelled),
                error => Unread::Because(Both::new(|lang| error.message(lang))),
            })?;
            let findings = of_log(&log, spec, file);
            Ok(Readout { source: Arc::new(log), findings, start_ns: None })
        }
        InputKind::Text => {
            let bytes = file.bytes().map_err(because)?;
            Ok(Readout { source: lines_source(&bytes).map_err(because)?, findings: Vec::new(), start_ns: None })
        }
    }
}

fn capture(
    spec: &InputSpec,
    file: &SubmittedFile,
    rubric: &Rubric,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Readout, Unread> {
    let mut options = options.clone();
    if options.checksums == Checksums::Auto {
        options.checksums = Checksums::On;
    }
    options.limits.decompress_free_bytes = options.limits.decompress_free_bytes.min(DECOMPRESSED_BYTES);
    options.limits.decompress_ratio = options.limits.decompress_ratio.min(DECOMPRESSED_RATIO);
    let because = |error: Error| unread(error, file);
    let capture = crate::open::open([file.input()], &options).map_err(because)?;
    let named = tables_of(rubric, &spec.name);
    let mut tables = vec![TableId::CaptureQuality];
    let most = if file.is_compressed { READ_AT_ONCE_COMPRESSED_BYTES } else { READ_AT_ONCE_BYTES };
    if file.size < most {
        tables.extend(&named);
    }
    capture.load(&tables, observer).map_err(because)?;
    let findings = of_capture(&capture, spec, file, observer).map_err(because)?;
    let start_ns = start(&capture, &named, observer).map_err(because)?;
    Ok(Readout { source: Arc::new(capture), findings, start_ns })
}

/// Time of a capture's first frame, from a table that is needed anyway.
fn start(capture: &Capture, named: &[TableId], observer: &mut dyn Observer) -> Result<Option<i64>, Error> {
    let has = |table: &TableId, name: &str| table.definition().columns.iter().any(|column| column.name == name);
    let Some(table) = named.iter().find(|table| has(table, "time") && has(table, "time_rel_ns")) else {
        return Ok(None);
    };
    let asker =
        Asker::new(vec![("capture".to_owned(), Arc::new(capture.clone()) as Arc<dyn Source>)], Default::default());
    let sql = format!("SELECT time - time_rel_ns FROM {} WHERE time - time_rel_ns IS NOT NULL", table.name());
    match asker.ask(&sql, 1, LISTING_TIME_S, observer) {
        Ok(answer) => Ok(match answer.rows.first().and_then(|row| row.first()) {
            Some(Value::Integer(ns)) => Some(*ns),
            _ => None,
        }),
        Err(super::ask::Unanswered::Ended(error)) => Err(error),
        // Without it, times are shown as they are.
        Err(_) => Ok(None),
    }
}

fn unread(error: Error, file: &SubmittedFile) -> Unread {
    match error {
        Error::Cancelled | Error::NoRoom { .. } => Unread::Ended(error),
        error => Unread::Because(Both::new(|lang| without_path(&error.message(lang), file))),
    }
}

/// The tables of captures that the checks on an input name.
fn tables_of(rubric: &Rubric, input: &str) -> Vec<TableId> {
    let checks = rubric.checks.iter().filter(|check| check.inputs.iter().any(|name| name == input));
    let texts: Vec<&str> = checks
        .clone()
        .flat_map(|check| [Some(&check.sql), check.evidence.as_ref()])
        .flatten()
        .map(String::as_str)
        .collect();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let needs_flows = checks.into_iter().any(|check: &Check| check.needs.iter().any(|(name, _)| name == input));
    let names = |table: TableId| texts.iter().any(|text| text.split(|c| !is_word(c)).any(|word| word == table.name()));
    TABLES
        .into_iter()
        .filter(|table| *table != TableId::CaptureQuality)
        .filter(|table| names(*table) || (needs_flows && *table == TableId::TcpFlows))
        .collect()
}

fn of_capture(
    capture: &Capture,
    spec: &InputSpec,
    file: &SubmittedFile,
    observer: &mut dyn Observer,
) -> Result<Vec<QualityFinding>, Error> {
    let asker =
        Asker::new(vec![("capture".to_owned(), Arc::new(capture.clone()) as Arc<dyn Source>)], Default::default());
    let sql = "SELECT code, severity, value, unit, count, frames, message_en, message_zh FROM capture_quality";
    let answer = asker.ask(sql, MOST_FINDINGS, LISTING_TIME_S, observer).map_err(super::ask::Unanswered::into_error)?;
    let finding = |row: &Vec<Value>| {
        let text = |at: usize| match row.get(at) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let number = |at: usize| match row.get(at) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        };
        let frames = text(5).and_then(|list| serde_json::from_str(&list).ok()).unwrap_or_default();
        let message = |at: usize| without_path(&text(at).unwrap_or_default(), file);
        QualityFinding {
            input: spec.name.clone(),
            file: Some(file.name.clone()),
            code: text(0).unwrap_or_default(),
            severity: text(1).unwrap_or_default(),
            value: number(2),
            unit: text(3),
            count: number(4).unwrap_or(0),
            frames,
            message: Both { en: message(6), zh: message(7) },
        }
    };
    Ok(answer.rows.iter().map(finding).collect())
}

fn of_log(log: &Log, spec: &InputSpec, file: &SubmittedFile) -> Vec<QualityFinding> {
    let finding = |finding: &logs::LogFinding| QualityFinding {
        input: spec.name.clone(),
        file: Some(file.name.clone()),
        code: finding.code.to_owned(),
        severity: finding.severity.name().to_owned(),
        value: finding.value,
        unit: None,
        count: 1,
        frames: Vec::new(),
        message: Both::new(|lang| finding.message(lang)),
    };
    log.findings.iter().take(MOST_FINDINGS).map(finding).collect()
}

fn files(submission: &Submission, inputs: &[InputState]) -> Vec<FileFacts> {
    let input_of = |name: &str| {
        let is_of = |input: &&InputState| {
            !matches!(input.presence, Presence::Ambiguous) && input.files.iter().any(|file| file == name)
        };
        inputs.iter().find(is_of).map(|input| input.name.clone())
    };
    let facts = |file: &SubmittedFile| FileFacts {
        name: file.name.clone(),
        sha256: file.sha256.clone(),
        bytes: file.size,
        kind: file.kind.name().to_owned(),
        input: input_of(&file.name),
    };
    submission.files.iter().map(facts).collect()
}

/// The sentence with the file's name in the submission in place of where it lies on this machine: a report is the same
/// wherever it is made.
fn without_path(message: &str, file: &SubmittedFile) -> String {
    match &file.content {
        Content::Path(path) => {
            let shown = |path: &PathBuf| path.display().to_string();
            message.replace(&shown(path), &file.name)
        }
        Content::Bytes(_) => message.to_owned(),
    }
}
