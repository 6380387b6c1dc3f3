//! What every reader of logs has at hand: findings, rows with a limit, and tables from rows.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::LogFinding;
use crate::capture::Severity;
use crate::error::Error;
use crate::open::TableData;
use crate::tables::{Projection, Symbol, TableBuilder, TableDef, table};
use crate::words::Lang;

/// Most rows of one table of a log.
const MAX_ROWS: usize = 1_000_000;
/// Longest line that is looked at.
const MAX_LINE_BYTES: usize = 16 << 10;
/// Longest text of a log that a finding quotes, in characters.
const QUOTED_CHARS: usize = 120;

thread_local! {
    /// Whether whoever waits for this thread's log has given up; none where nobody can.
    static GIVEN_UP: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Asked in every loop over a log: hostile ones take long.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// That of the thread, for loops.
    pub fn of_thread() -> Self {
        GIVEN_UP.with_borrow(|stop| stop.clone().unwrap_or_default())
    }

    /// From now on the loops of this thread ask here.
    pub fn watch(&self) {
        GIVEN_UP.set(Some(self.clone()));
    }

    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Tables by name, or nothing where the text holds none of the tool's output.
pub(super) type Tables = Result<Option<Vec<(&'static str, TableData)>>, Error>;

/// Collects findings: one per code, with the first line concerned and a count.
#[derive(Debug, Default)]
pub(super) struct Reading {
    findings: BTreeMap<&'static str, LogFinding>,
    order: Vec<&'static str>,
}

impl Reading {
    /// One more of a kind of finding whose figure is their number.
    pub fn counts(&mut self, code: &'static str, severity: Severity, line: Option<u64>, text: &str) {
        let finding = self.entry(code, severity, line, text);
        finding.value = Some(finding.value.unwrap_or(0).saturating_add(1));
    }

    /// A finding with a figure of its own; said once.
    pub fn says(&mut self, code: &'static str, severity: Severity, value: Option<u64>, line: Option<u64>, text: &str) {
        let value = value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        self.entry(code, severity, line, text).value = value;
    }

    fn entry(&mut self, code: &'static str, severity: Severity, line: Option<u64>, text: &str) -> &mut LogFinding {
        self.findings.entry(code).or_insert_with(|| {
            self.order.push(code);
            let text: String = text.trim().chars().filter(|c| !c.is_control()).take(QUOTED_CHARS).collect();
            LogFinding { code, severity, value: None, line, text }
        })
    }

    /// The gravest first, then in the order they were met.
    pub fn into_findings(mut self) -> Vec<LogFinding> {
        let mut findings: Vec<_> = self.order.iter().filter_map(|code| self.findings.remove(code)).collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings
    }
}

/// Rows of a table, up to a limit.
pub(super) struct Rows<R> {
    rows: Vec<R>,
    dropped: u64,
}

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Self { rows: Vec::new(), dropped: 0 }
    }
}

impl<R> Rows<R> {
    pub fn push(&mut self, row: R) {
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.dropped += 1;
        }
    }

    pub fn as_slice(&self) -> &[R] {
        &self.rows
    }

    pub fn last_mut(&mut self) -> Option<&mut R> {
        self.rows.last_mut()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The table of these rows; rows over the limit become a finding.
    pub fn finish<B: TableBuilder<R>>(
        self,
        definition: &'static TableDef,
        reading: &mut Reading,
    ) -> Result<(&'static str, TableData), Error> {
        if self.dropped > 0 {
            reading.says("row_limit", Severity::Error, Some(self.dropped), None, definition.name);
        }
        Ok((definition.name, build::<R, B>(definition, &self.rows)?))
    }
}

fn build<R, B: TableBuilder<R>>(definition: &'static TableDef, rows: &[R]) -> Result<TableData, Error> {
    let projection = Projection::all(definition.columns.len());
    let mut builder = B::new(&projection, rows.len());
    builder.append(rows);
    let schema = definition.schema();
    let batch = projection.batch(&schema, builder.rows(), builder.finish())?;
    Ok(TableData { schema, batches: vec![batch] })
}

/// Line of the text, from 1, that holds a byte.
pub(super) fn line_at(text: &str, byte: usize) -> u64 {
    let before = text.as_bytes().get(..byte).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

/// Lines of a text. Of a line that no tool prints, only the beginning is looked at.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let stop = Stop::of_thread();
    text.lines().take_while(move |_| !stop.is_set()).map(|line| {
        let cut = (0..4).map(|back| MAX_LINE_BYTES - back).find(|at| line.is_char_boundary(*at));
        cut.and_then(|at| line.get(..at)).unwrap_or(line)
    })
}

/// Lines of a text with their numbers, from 1.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (u64, &str)> {
    lines(text).enumerate().map(|(at, line)| (at as u64 + 1, line))
}

table! {
    /// One row per finding about the log itself: what was mended, left out, or is missing. Every log has this table.
    table "log_quality" => LogQualityRow / LogQualityBuilder {
        /// Stable name of the finding.
        code: Symbol,
        /// `info`, `warning` or `error`.
        severity: Symbol,
        /// The figure: how many, or how much.
        value: Option<i64>,
        /// First line of the log concerned, from 1.
        line: Option<u64>,
        /// Text of the log that it is about.
        text: Option<String>,
        /// What it is, in English.
        message_en: Option<String>,
        /// What it is, in Chinese.
        message_zh: Option<String>,
    }
}

pub(super) fn quality_table(findings: &[LogFinding]) -> Result<TableData, Error> {
    let rows: Vec<_> = findings
        .iter()
        .map(|finding| LogQualityRow {
            code: Symbol(finding.code),
            severity: Symbol(finding.severity.name()),
            value: finding.value,
            line: finding.line,
            text: (!finding.text.is_empty()).then(|| finding.text.clone()),
            message_en: Some(finding.message(Lang::En)),
            message_zh: Some(finding.message(Lang::Zh)),
        })
        .collect();
    build::<_, LogQualityBuilder>(LogQualityRow::table(), &rows)
}
