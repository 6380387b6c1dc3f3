//! The frames and rows that show why.

use std::collections::BTreeMap;

use super::inputs::InputState;
use crate::grade::report::{Evidence, QualityFinding};
use crate::grade::submission::InputKind;
use crate::sql::{self, Value};

/// Frames that are named of one check; a report is read by people.
const MOST_FRAMES: usize = 20;
/// Rows asked for: one more than is shown, to know whether there are more.
pub(super) const ASKED_ROWS: usize = MOST_FRAMES + 1;

/// Columns that are no part of a row shown.
const PLACE_COLUMNS: [&str; 4] = ["frame_no", "file_no", "input", "time"];

/// Rows of an evidence query, by input and file. `input` is the one that the query reads; frames are named of captures alone.
pub(super) fn of_answer(answer: &sql::Rows, input: Option<&str>, inputs: &[InputState]) -> Vec<Evidence> {
    let has_more = answer.rows.len() > MOST_FRAMES;
    let mut found: Vec<(Option<String>, i64, Evidence)> = Vec::new();
    for row in answer.rows.iter().take(MOST_FRAMES) {
        let get = |name: &str| answer.columns.iter().position(|column| column == name).and_then(|at| row.get(at));
        let input = match get("input") {
            Some(Value::Text(name)) => Some(name.clone()),
            _ => input.map(str::to_owned),
        };
        let file_no = match get("file_no") {
            Some(Value::Integer(number)) => *number,
            _ => 1,
        };
        let at = match found.iter().position(|(known, file, _)| *known == input && *file == file_no) {
            Some(at) => at,
            None => {
                let file = input.as_deref().and_then(|name| file_of(inputs, name, file_no));
                let state = inputs.iter().find(|state| Some(&state.name) == input.as_ref());
                let start_ns = state.and_then(|state| state.start_ns);
                found.push((input.clone(), file_no, Evidence { start_ns, ..empty(input, file) }));
                found.len() - 1
            }
        };
        let Some((_, _, evidence)) = found.get_mut(at) else { continue };
        if evidence.input.as_deref().is_some_and(|name| is_capture(inputs, name))
            && let Some(Value::Integer(frame)) = get("frame_no")
            && let Ok(frame) = u64::try_from(*frame)
            && !evidence.frames.contains(&frame)
        {
            evidence.frames.push(frame);
        }
        if evidence.first_time_ns.is_none()
            && let Some(Value::Integer(ns)) = get("time")
        {
            evidence.first_time_ns = Some(*ns);
        }
        let shown = answer.columns.iter().zip(row).filter(|(column, _)| !PLACE_COLUMNS.contains(&column.as_str()));
        let shown: BTreeMap<_, _> = shown.map(|(column, value)| (column.clone(), value.clone())).collect();
        if !shown.is_empty() {
            let places = answer.columns.iter().zip(row).filter(|(column, _)| PLACE_COLUMNS.contains(&column.as_str()));
            let mut whole: BTreeMap<_, _> = places.map(|(column, value)| (column.clone(), value.clone())).collect();
            whole.extend(shown);
            evidence.columns.clone_from(&answer.columns);
            evidence.rows.push(whole);
        }
    }
    let mut found: Vec<_> = found.into_iter().map(|(_, _, evidence)| evidence).collect();
    if let Some(last) = found.last_mut() {
        last.has_more = has_more;
    }
    found
}

/// Whether an input of this name is a capture: what has frames, and what a display filter is for.
pub(super) fn is_capture(inputs: &[InputState], name: &str) -> bool {
    inputs.iter().any(|input| input.name == name && input.kind == InputKind::Capture)
}

/// The frames of a finding on a capture's quality.
pub(super) fn of_finding(finding: &QualityFinding) -> Evidence {
    let mut evidence = empty(Some(finding.input.clone()), finding.file.clone());
    evidence.frames = finding.frames.iter().copied().take(MOST_FRAMES).collect();
    let named = evidence.frames.len() as u64;
    evidence.has_more = named > 0 && u64::try_from(finding.count).is_ok_and(|count| count > named);
    evidence.filter = frames_filter(&evidence.frames);
    evidence
}

/// A display filter alone, where there are no frames to name.
pub(super) fn of_filter(input: Option<&str>, inputs: &[InputState], filter: String) -> Evidence {
    let file = input.and_then(|name| file_of(inputs, name, 1));
    Evidence { filter: Some(filter), ..empty(input.map(str::to_owned), file) }
}

/// What shows these frames in Wireshark.
pub(super) fn frames_filter(frames: &[u64]) -> Option<String> {
    let numbers: Vec<_> = frames.iter().map(u64::to_string).collect();
    (!numbers.is_empty()).then(|| format!("frame.number in {{{}}}", numbers.join(", ")))
}

fn empty(input: Option<String>, file: Option<String>) -> Evidence {
    Evidence {
        input,
        file,
        frames: Vec::new(),
        has_more: false,
        first_time_ns: None,
        start_ns: None,
        filter: None,
        columns: Vec::new(),
        rows: Vec::new(),
    }
}

fn file_of(inputs: &[InputState], name: &str, file_no: i64) -> Option<String> {
    let input = inputs.iter().find(|input| input.name == name)?;
    let at = usize::try_from(file_no - 1).ok()?;
    input.files.get(at).cloned()
}
