//! What keeps a query in its bounds: it only reads, ends in time, and holds no more memory than allowed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use crate::observe::Observer;

/// Virtual machine instructions between two looks at whether the query shall stop: about a microsecond, and not much longer
/// than a few of the slowest function calls that [`VALUE_BYTES`] allows.
const LOOK_INSTRUCTIONS: i32 = 100;
/// The observer is asked this often, the clock as well.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// Longest text, or other single value, that a query may make.
const VALUE_BYTES: u64 = 8 << 20;
/// What a value may have however little the result may: SQLite's own texts, such as the columns of a table, count too.
const LEAST_VALUE_BYTES: u64 = 1 << 20;
/// Longest query.
const SQL_BYTES: i32 = 1_000_000;
/// Functions that load code or talk to the outside.
const REFUSED_FUNCTIONS: [&str; 4] = ["load_extension", "fts3_tokenizer", "sqlite_log", "rtreecheck"];

/// What a query may take at most. Reading the capture is not counted: that has limits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Time that the query itself runs.
    pub time: Duration,
    /// Rows of the result.
    pub rows: u64,
    /// Bytes of the result, together with what `median`, `quantile` and the like gather.
    pub bytes: u64,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), rows: 10_000_000, bytes: 1 << 30 }
    }
}

/// Why a query was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Cancelled,
    Time,
    Memory,
}

/// Shared by the one who waits for a query and all that works on it.
pub(super) struct Guard {
    stop: AtomicU8,
    bytes_left: AtomicU64,
}

impl Guard {
    pub fn new(limits: &QueryLimits) -> Self {
        Self { stop: AtomicU8::new(0), bytes_left: AtomicU64::new(limits.bytes) }
    }

    /// An atomic read: SQLite's own interrupt can be lost when it comes between two statements.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    pub fn stopped(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Relaxed) {
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::Time),
            3 => Some(Stop::Memory),
            _ => None,
        }
    }

    /// The first reason stays.
    pub fn stop(&self, why: Stop) {
        let code = match why {
            Stop::Cancelled => 1,
            Stop::Time => 2,
            Stop::Memory => 3,
        };
        let _ = self.stop.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Takes from the memory allowed; stops the query where too little is left.
    pub fn take(&self, bytes: u64) -> bool {
        let taken = self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if taken.is_err() {
            self.stop(Stop::Memory);
        }
        taken.is_ok()
    }

    pub fn give_back(&self, bytes: u64) {
        self.bytes_left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Tables with the columns of them that a query reads, as the authorizer is told.
#[derive(Default)]
pub(super) struct Reads(Mutex<BTreeSet<(String, String, String)>>);

impl Reads {
    /// Schema, table and column of each; the schema is empty where the query names none, the column where it reads none.
    pub fn all(&self) -> Vec<(String, String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn note(&self, schema: &str, table: &str, column: &str) {
        let read = (schema.to_owned(), table.to_owned(), column.to_owned());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(read);
    }
}

/// The longest single value.
pub(super) fn value_bytes(limits: &QueryLimits) -> u64 {
    VALUE_BYTES.min(limits.bytes).max(LEAST_VALUE_BYTES)
}

/// Bounds for the size and shape of what a query may say, and of each value it makes.
pub(super) fn set_limits(connection: &Connection, limits: &QueryLimits) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(value_bytes(limits)).unwrap_or(i32::MAX))?;
    connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, 500)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000)?;
    connection.set_limit(Limit::SQLITE_LIMIT_WORKER_THREADS, 0)?;
    // A text in double quotes is a mistaken column name, and not a text that makes the comparison false.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    Ok(())
}

/// From here on the connection only reads, and stops when the guard says so.
pub(super) fn watch(connection: &mut Connection, guard: &Arc<Guard>, reads: &Arc<Reads>) -> rusqlite::Result<()> {
    let reads = Arc::clone(reads);
    connection.authorizer(Some(move |context: AuthContext<'_>| authorize(&context, &reads)))?;
    let guard = Arc::clone(guard);
    connection.progress_handler(LOOK_INSTRUCTIONS, Some(move || guard.is_stopped()))
}

fn authorize(context: &AuthContext<'_>, reads: &Reads) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Read { table_name, column_name } => {
            // What these show is the engine's, not the capture's.
            if table_name.starts_with("pragma_") || table_name.starts_with("dbstat") {
                return Authorization::Deny;
            }
            reads.note(context.database_name.unwrap_or(""), table_name, column_name);
            Authorization::Allow
        }
        AuthAction::Function { function_name } => {
            let is_refused = REFUSED_FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(function_name));
            if is_refused { Authorization::Deny } else { Authorization::Allow }
        }
        _ => Authorization::Deny,
    }
}

/// An observer that is told again what it was told last: a query has no bytes to count.
pub(super) struct Relay<'a> {
    inner: &'a mut dyn Observer,
    last: (u64, Option<u64>),
}

impl<'a> Relay<'a> {
    pub fn new(inner: &'a mut dyn Observer) -> Self {
        Self { inner, last: (0, None) }
    }

    fn again(&mut self) -> ControlFlow<()> {
        self.inner.on_progress(self.last.0, self.last.1)
    }
}

impl Observer for Relay<'_> {
    fn on_progress(&mut self, done_bytes: u64, total_bytes: Option<u64>) -> ControlFlow<()> {
        self.last = (done_bytes, total_bytes);
        self.inner.on_progress(done_bytes, total_bytes)
    }
}

/// Answers what the query asks for until it ends. Between, the observer is asked and the clock is looked at; the time that
/// answering takes is not the query's.
pub(super) fn wait<M>(
    asks: &Receiver<M>,
    time: Duration,
    guard: &Guard,
    observer: &mut Relay<'_>,
    mut answer: impl FnMut(M, &mut Relay<'_>),
) {
    let mut start = Instant::now();
    loop {
        match asks.recv_timeout(ASK_EVERY) {
            Ok(ask) => {
                let asked = Instant::now();
                answer(ask, observer);
                start += asked.elapsed();
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if observer.again().is_break() {
                    guard.stop(Stop::Cancelled);
                }
                if start.elapsed() > time {
                    guard.stop(Stop::Time);
                }
            }
        }
    }
}
