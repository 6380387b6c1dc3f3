//! perftest (`ib_write_bw`, `ib_send_lat`, ...): text and `--out_json`.

mod tables;
mod text;

use serde_json::Value;

use super::json::{each_object, next_object};
use super::reading::{Reading, Rows, Tables};
use crate::RoceEndpoint;
use crate::capture::Severity;
use crate::tables::{Symbol, TableDef};
use tables::{PerftestBuilder, PerftestRow, QpBuilder, QpRow, ResultBuilder, ResultRow};

/// Queue pairs of a log that are looked for in a capture.
const MOST_QPS: usize = 65_536;
/// Bytes in what perftest calls MB: its megabytes are powers of two, whatever the label says.
const MEBIBYTE: f64 = 1_048_576.0;

/// What is read from a log, run after run.
#[derive(Default)]
struct Runs {
    runs: Rows<PerftestRow>,
    qps: Rows<QpRow>,
    results: Rows<ResultRow>,
}

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![PerftestRow::table(), QpRow::table(), ResultRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    text::is_in(text) || next_object(text, 0).is_some_and(|found| is_document(&found.value))
}

/// `--out_json`: newer versions have both sections, some modes only one.
fn is_document(value: &Value) -> bool {
    let has_result = |results: &Value| results.get("MsgSize").is_some() || results.get("BW_average").is_some();
    value.get("test_info").is_some_and(Value::is_object)
        || value.get("results").is_some_and(|results| match results {
            Value::Array(rows) => rows.iter().any(has_result),
            one => has_result(one),
        })
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    let mut runs = Runs::default();
    from_json(text, &mut runs, reading);
    if runs.runs.is_empty() {
        text::read(text, &mut runs, reading);
    }
    if runs.runs.is_empty() {
        return Ok(None);
    }
    for run in runs.runs.as_slice() {
        if !run.is_complete {
            reading.counts("perftest_no_result", Severity::Warning, Some(run.line), run.error.as_deref().unwrap_or(""));
        }
    }
    Ok(Some(vec![
        runs.runs.finish::<PerftestBuilder>(PerftestRow::table(), reading)?,
        runs.qps.finish::<QpBuilder>(QpRow::table(), reading)?,
        runs.results.finish::<ResultBuilder>(ResultRow::table(), reading)?,
    ]))
}

/// The queue pairs that the log names; none where it is not perftest's.
pub(super) fn endpoints(text: &str) -> Vec<RoceEndpoint> {
    let mut runs = Runs::default();
    text::read(text, &mut runs, &mut Reading::default());
    runs.qps.as_slice().iter().take(MOST_QPS).flat_map(QpRow::endpoints).collect()
}

fn from_json(text: &str, runs: &mut Runs, reading: &mut Reading) {
    each_object(text, reading, is_document, |found, line, reading| {
        let mut run = PerftestRow::new(runs.runs.len() as u32 + 1, line);
        let info = found.value.get("test_info").unwrap_or(&Value::Null);
        for (name, value) in info.as_object().into_iter().flatten() {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            run.setting(&name.replace('_', " "), &shown);
        }
        let unit =
            match found.value.pointer("/results/report_format").or(info.get("report_fmt")).and_then(Value::as_str) {
                Some(unit) if unit.to_ascii_lowercase().starts_with("gb") => Some(Symbol("Gb/s")),
                Some(_) => Some(Symbol("MiB/s")),
                None => None,
            };
        let results = found.value.get("results").unwrap_or(&Value::Null);
        let rows = results.as_array().map_or_else(|| std::slice::from_ref(results), Vec::as_slice);
        for result in rows.iter().filter(|result| result.is_object()) {
            let row = ResultRow::from_json(run.run_no, line, result, unit, reading);
            run.is_complete = true;
            runs.results.push(row);
        }
        runs.runs.push(run);
    });
}
