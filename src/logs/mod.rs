//! The text and JSON that lab tools print, as tables beside the capture's: tolerant, since real logs are often broken.
//!
//! One file or folder per tool; each says what it is sure of, and leaves null what the tool did not say. Nothing here knows
//! packets. Reading starts at [`detect`] and [`read()`]; a [`Log`] is a set of named tables and findings.

mod dcb;
mod decode;
mod ethtool;
mod hping3;
mod iperf3;
mod json;
mod nic_names;
mod nstat;
mod perftest;
mod ping;
mod reading;
mod ss;
mod units;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::capture::Severity;
use crate::error::Error;
use crate::observe::Observer;
use crate::open::TableData;
use crate::tables::{TableDef, markdown_of};
use crate::words::{self, Lang};

use decode::decode;
use reading::{LogQualityRow, Reading, Stop};

/// Most bytes of a log that are read; the rest is left out, with a finding.
pub const MAX_LOG_BYTES: usize = 64 << 20;

/// The observer is asked this often.
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// Most bytes that [`detect`] looks at.
const DETECT_BYTES: usize = 256 << 10;

/// A tool whose output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LogKind {
    Iperf3,
    Ping,
    Perftest,
    Ss,
    Nstat,
    Ethtool,
    /// `dcb` and `mlnx_qos`.
    Dcb,
    Hping3,
}

/// Every kind, the ones with the plainest marks first.
pub const LOG_KINDS: [LogKind; 8] = [
    LogKind::Iperf3,
    LogKind::Perftest,
    LogKind::Hping3,
    LogKind::Ping,
    LogKind::Dcb,
    LogKind::Ethtool,
    LogKind::Nstat,
    LogKind::Ss,
];

impl LogKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Ping => "ping",
            Self::Perftest => "perftest",
            Self::Ss => "ss",
            Self::Nstat => "nstat",
            Self::Ethtool => "ethtool",
            Self::Dcb => "dcb",
            Self::Hping3 => "hping3",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        LOG_KINDS.into_iter().find(|kind| kind.name() == name)
    }

    /// The tables that a log of this kind has, without `log_quality`, which every log has.
    pub fn tables(self) -> Vec<&'static TableDef> {
        match self {
            Self::Iperf3 => iperf3::tables(),
            Self::Ping => ping::tables(),
            Self::Perftest => perftest::tables(),
            Self::Ss => ss::tables(),
            Self::Nstat => nstat::tables(),
            Self::Ethtool => ethtool::tables(),
            Self::Dcb => dcb::tables(),
            Self::Hping3 => hping3::tables(),
        }
    }

    fn is_in(self, text: &str) -> bool {
        match self {
            Self::Iperf3 => iperf3::is_in(text),
            Self::Ping => ping::is_in(text),
            Self::Perftest => perftest::is_in(text),
            Self::Ss => ss::is_in(text),
            Self::Nstat => nstat::is_in(text),
            Self::Ethtool => ethtool::is_in(text),
            Self::Dcb => dcb::is_in(text),
            Self::Hping3 => hping3::is_in(text),
        }
    }
}

impl fmt::Display for LogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is to be said of a log, before any figure is read from it.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFinding {
    /// Stable name; the sentences are `log.<code>` in `src/words/`.
    pub code: &'static str,
    pub severity: Severity,
    /// The figure: how many, or how much.
    pub value: Option<i64>,
    /// Line of the log concerned, from 1.
    pub line: Option<u64>,
    /// Text of the log that the sentence quotes.
    pub text: String,
}

impl LogFinding {
    /// The sentence, in the language asked for.
    pub fn message(&self, lang: Lang) -> String {
        let value = self.value.map_or(String::new(), |value| value.to_string());
        let line = self.line.map_or(String::new(), |line| line.to_string());
        words::say(lang, &format!("log.{}", self.code), &[("value", &value), ("line", &line), ("text", &self.text)])
    }
}

/// Why nothing could be read from a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogError {
    /// No byte, or nothing but white space.
    Empty,
    /// Nothing in it is what the tool prints; `looks_like` is the tool that it does look like.
    NotThisKind { kind: LogKind, looks_like: Option<LogKind> },
    /// It is output of iperf 2, which is another program than iperf3.
    Iperf2,
    /// Arrow refused to build a table.
    Tables(String),
    /// The observer asked to stop.
    Cancelled,
}

impl LogError {
    /// The message for a person, in the language asked for.
    pub fn message(&self, lang: Lang) -> String {
        match self {
            Self::Empty => words::say(lang, "log.empty", &[]),
            Self::NotThisKind { kind, looks_like: Some(other) } => {
                words::say(lang, "log.other_kind", &[("kind", kind), ("other", other)])
            }
            Self::NotThisKind { kind, looks_like: None } => words::say(lang, "log.not_this_kind", &[("kind", kind)]),
            Self::Iperf2 => words::say(lang, "log.iperf2", &[]),
            Self::Tables(reason) => reason.clone(),
            Self::Cancelled => words::say(lang, "error.cancelled", &[]),
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(Lang::En))
    }
}

impl std::error::Error for LogError {}

/// A log that was read: tables by name, and what is to be said of it.
#[derive(Clone, Debug)]
pub struct Log {
    pub kind: LogKind,
    /// The tables of the kind, empty ones too, and `log_quality`.
    pub tables: Vec<(&'static str, Arc<TableData>)>,
    pub findings: Vec<LogFinding>,
}

impl Log {
    pub fn table(&self, name: &str) -> Option<&Arc<TableData>> {
        self.tables.iter().find(|(known, _)| *known == name).map(|(_, table)| table)
    }
}

#[cfg(feature = "sql")]
impl crate::sql::Source for Log {
    fn table_names(&self) -> Vec<&str> {
        self.tables.iter().map(|(name, _)| *name).collect()
    }

    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, crate::Error>> {
        Log::table(self, name).map(|table| Ok(table.clone()))
    }
}

/// The tool whose output this is, by content; the first of [`LOG_KINDS`] whose marks are in it.
pub fn detect(bytes: &[u8]) -> Option<LogKind> {
    kinds(bytes).into_iter().next()
}

/// Every tool whose marks are in it: a saved terminal session may hold the output of several.
pub fn kinds(bytes: &[u8]) -> Vec<LogKind> {
    let head = bytes.get(..DETECT_BYTES).unwrap_or(bytes);
    let text = decode(head, &mut Reading::default());
    LOG_KINDS.into_iter().filter(|kind| kind.is_in(&text)).collect()
}

/// Reads a log of a known kind. What is broken in it is left out and said in the findings; an error means that nothing in
/// it is of this kind.
pub fn read(kind: LogKind, bytes: &[u8]) -> Result<Log, LogError> {
    let mut reading = Reading::default();
    let text = decode(bytes, &mut reading);
    if text.trim().is_empty() {
        return Err(LogError::Empty);
    }
    let tables = match kind {
        LogKind::Iperf3 => iperf3::read(&text, &mut reading),
        LogKind::Ping => ping::read(&text, &mut reading),
        LogKind::Perftest => perftest::read(&text, &mut reading),
        LogKind::Ss => ss::read(&text, &mut reading),
        LogKind::Nstat => nstat::read(&text, &mut reading),
        LogKind::Ethtool => ethtool::read(&text, &mut reading),
        LogKind::Dcb => dcb::read(&text, &mut reading),
        LogKind::Hping3 => hping3::read(&text, &mut reading),
    };
    let Some(tables) = tables.map_err(|error| LogError::Tables(error.to_string()))? else {
        if kind == LogKind::Iperf3 && iperf3::is_version_2(&text) {
            return Err(LogError::Iperf2);
        }
        let looks_like = detect(bytes).filter(|other| *other != kind);
        return Err(LogError::NotThisKind { kind, looks_like });
    };
    let findings = reading.into_findings();
    let quality = reading::quality_table(&findings).map_err(|error| LogError::Tables(error.to_string()))?;
    let mut tables: Vec<_> = tables.into_iter().map(|(name, table)| (name, Arc::new(table))).collect();
    tables.push((LogQualityRow::table().name, Arc::new(quality)));
    Ok(Log { kind, tables, findings })
}

/// The same, with an observer that is asked meanwhile whether to go on: the log is read on a thread of its own.
pub fn read_observed(kind: LogKind, bytes: &[u8], observer: &mut dyn Observer) -> Result<Log, LogError> {
    watched(bytes.len() as u64, observer, || read(kind, bytes)).unwrap_or(Err(LogError::Cancelled))
}

/// [`kinds`] with an observer; nothing where it asked to stop.
pub fn kinds_observed(bytes: &[u8], observer: &mut dyn Observer) -> Option<Vec<LogKind>> {
    watched(bytes.len() as u64, observer, || kinds(bytes))
}

/// Does work on a thread of its own, and asks the observer meanwhile; nothing where that asked to stop.
fn watched<T: Send>(bytes: u64, observer: &mut dyn Observer, work: impl Fn() -> T + Sync) -> Option<T> {
    let stop = Stop::default();
    let (is_done, waits) = channel();
    std::thread::scope(|scope| {
        let on_thread = || {
            stop.watch();
            let done = work();
            // Whoever waits sees the end of the thread as well.
            is_done.send(()).ok();
            done
        };
        // Where there can be no thread, the work is done without asking.
        let Ok(thread) = std::thread::Builder::new().spawn_scoped(scope, on_thread) else { return Some(work()) };
        while waits.recv_timeout(ASKED_EVERY) == Err(RecvTimeoutError::Timeout) && !thread.is_finished() {
            if observer.on_progress(0, Some(bytes)).is_break() {
                stop.set();
                break;
            }
        }
        let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (!stop.is_set()).then_some(done)
    })
}

/// The bytes of a log on disk: one more than are read, at most, so that [`read()`] can say that there is more.
pub fn bytes_of(path: &Path) -> Result<Vec<u8>, Error> {
    let file = std::fs::File::open(path).map_err(|error| Error::io(path, error))?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| Error::io(path, error))?;
    Ok(bytes)
}

/// An empty log of a kind: all of its tables, and no row.
pub fn empty(kind: LogKind) -> Log {
    let definitions = kind.tables().into_iter().chain([LogQualityRow::table()]);
    let table = |definition: &'static TableDef| {
        (definition.name, Arc::new(TableData { schema: definition.schema(), batches: Vec::new() }))
    };
    Log { kind, tables: definitions.map(table).collect(), findings: Vec::new() }
}

/// The queue pairs that a log of perftest names, for [`Options::roce_endpoints`](crate::Options::roce_endpoints): with them, queue
/// pairs of a capture are paired for certain. A log without addresses of RoCE (InfiniBand, JSON) gives none.
pub fn roce_endpoints(bytes: &[u8]) -> Result<Vec<crate::RoceEndpoint>, LogError> {
    let text = decode(bytes, &mut Reading::default());
    if text.trim().is_empty() {
        return Err(LogError::Empty);
    }
    if !perftest::is_in(&text) {
        return Err(LogError::NotThisKind { kind: LogKind::Perftest, looks_like: detect(bytes) });
    }
    Ok(perftest::endpoints(&text))
}

/// The section of `docs/tables.md` on logs, from the declarations.
pub fn markdown() -> String {
    let mut text = String::from(
        "\n## Tables of logs\n\nA log that comes with a capture (iperf3, ping, ...) has tables of its own, in the SQL schema of its \
         input. What the tool did not say is null.\n",
    );
    let mut told: Vec<&str> = Vec::new();
    for kind in LOG_KINDS {
        for table in kind.tables() {
            // Two kinds may have a table in common.
            if told.contains(&table.name) {
                continue;
            }
            told.push(table.name);
            text.push_str(&markdown_of(table, "###"));
        }
    }
    text.push_str(&markdown_of(LogQualityRow::table(), "###"));
    text
}
