//! iperf3: `-J`, `--json-stream` and text, of client and server, TCP and UDP.

mod from_json;
mod from_text;
mod tables;

use super::json;
use super::reading::{Reading, Rows, Tables};
use crate::capture::Severity;
use crate::tables::{Symbol, TableDef};
use tables::{IntervalBuilder, IntervalRow, Iperf3Builder, Iperf3Row, StreamBuilder, StreamRow};

const FORWARD: Symbol = Symbol("forward");
const REVERSE: Symbol = Symbol("reverse");
const BOTH: Symbol = Symbol("both");
const CLIENT: Symbol = Symbol("client");
const SERVER: Symbol = Symbol("server");

/// What is read from a log, test after test.
#[derive(Default)]
struct Tests {
    tests: Rows<Iperf3Row>,
    streams: Rows<StreamRow>,
    intervals: Rows<IntervalRow>,
}

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![Iperf3Row::table(), StreamRow::table(), IntervalRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    from_text::is_in(text) || json::next_object(text, 0).is_some_and(|found| from_json::is_document(&found.value))
}

/// Whether it is output of iperf 2.
pub(super) fn is_version_2(text: &str) -> bool {
    from_text::is_version_2(text)
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    let mut tests = Tests::default();
    from_json::read(text, &mut tests, reading);
    if tests.tests.is_empty() {
        from_text::read(text, &mut tests, reading);
    }
    if tests.tests.is_empty() {
        return Ok(None);
    }
    for test in tests.tests.as_slice() {
        if let Some(error) = &test.error {
            reading.says("iperf3_error", Severity::Error, None, None, error);
        } else if !test.is_complete {
            reading.counts("iperf3_no_summary", Severity::Warning, None, "");
        }
    }
    let tests_found = tests.tests.len() as u64;
    if tests_found > 1 {
        reading.says("iperf3_tests", Severity::Info, Some(tests_found), None, "");
    }
    Ok(Some(vec![
        tests.tests.finish::<Iperf3Builder>(Iperf3Row::table(), reading)?,
        tests.streams.finish::<StreamBuilder>(StreamRow::table(), reading)?,
        tests.intervals.finish::<IntervalBuilder>(IntervalRow::table(), reading)?,
    ]))
}

/// The direction of a stream, by which side printed the log and whether that side sent.
fn direction(role: Option<Symbol>, is_sender: bool) -> Symbol {
    if (role == Some(SERVER)) == is_sender { REVERSE } else { FORWARD }
}
