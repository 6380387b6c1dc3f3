//! What is wrong with a query, in words: which name was probably meant, and where in the text it stands.

use std::time::Duration;

use rusqlite::ffi;

use crate::error::Error;
use crate::tables::nearest;
use crate::words::{self, Lang};

/// Characters of a query that are shown around its fault.
const EXCERPT: usize = 72;

/// Why a query was refused or ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is no SQL, or SQLite refuses it for a reason that its message says.
    Refused,
    UnknownTable {
        name: String,
        nearest: Option<String>,
    },
    UnknownColumn {
        name: String,
        nearest: Option<String>,
    },
    UnknownFunction {
        name: String,
        nearest: Option<String>,
    },
    /// A text in double quotes, which are for names.
    DoubleQuoted {
        name: String,
    },
    /// It would change something, or read what is not the capture's.
    NotReadOnly,
    /// It holds a NUL character, at which SQLite would end it.
    Nul,
    Empty,
    SeveralStatements,
    /// The query names a parameter that was not given.
    MissingParameter {
        name: String,
        nearest: Option<String>,
    },
    /// `?` or `?1`: only names are bound.
    UnnamedParameter,
    /// It began to run and failed, as SQLite's message says.
    Failed,
    TimeLimit {
        limit: Duration,
    },
    RowLimit {
        limit: u64,
    },
    MemoryLimit {
        limit_bytes: u64,
    },
    TooManySchemas {
        limit: usize,
    },
    SchemaName {
        name: String,
    },
}

impl Fault {
    /// Which limit was reached, if one was.
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::TimeLimit { .. } => Some("query_time"),
            Self::RowLimit { .. } => Some("query_rows"),
            Self::MemoryLimit { .. } => Some("query_bytes"),
            _ => None,
        }
    }

    /// The sentence; `message` is what SQLite says.
    pub(crate) fn say(&self, lang: Lang, message: &str) -> String {
        let say = |key: &str, values: &[(&str, &dyn std::fmt::Display)]| words::say(lang, key, values);
        let named = |key: &str, name: &String, nearest: &Option<String>| {
            let hint = nearest.as_ref().map_or(String::new(), |near| say("sql.nearest", &[("near", near)]));
            say(key, &[("name", name), ("hint", &hint)])
        };
        match self {
            Self::Refused => say("sql.refused", &[("message", &message)]),
            Self::UnknownTable { name, nearest } => named("sql.unknown_table", name, nearest),
            Self::UnknownColumn { name, nearest } => named("sql.unknown_column", name, nearest),
            Self::UnknownFunction { name, nearest } => named("sql.unknown_function", name, nearest),
            Self::DoubleQuoted { name } => say("sql.double_quoted", &[("name", name)]),
            Self::NotReadOnly => say("sql.not_read_only", &[]),
            Self::Nul => say("sql.nul", &[]),
            Self::Empty => say("sql.empty", &[]),
            Self::SeveralStatements => say("sql.several", &[]),
            Self::MissingParameter { name, nearest } => named("sql.missing_parameter", name, nearest),
            Self::UnnamedParameter => say("sql.unnamed_parameter", &[]),
            Self::Failed => say("sql.failed", &[("message", &message)]),
            Self::TimeLimit { limit } => say("sql.time_limit", &[("limit", &limit.as_secs_f64())]),
            Self::RowLimit { limit } => say("sql.row_limit", &[("limit", limit)]),
            Self::MemoryLimit { limit_bytes } => say("sql.memory_limit", &[("limit", limit_bytes)]),
            Self::TooManySchemas { limit } => say("sql.too_many_schemas", &[("limit", limit)]),
            Self::SchemaName { name } => say("sql.schema_name", &[("name", name)]),
        }
    }
}

/// The names that a query could have meant.
pub(super) struct Known {
    pub tables: Vec<String>,
    /// With their schemas.
    pub qualified: Vec<String>,
    /// Columns of the tables that the query names.
    pub columns: Vec<String>,
}

/// An error without a place in the query.
pub(super) fn error(fault: Fault) -> Error {
    Error::Sql { fault, message: String::new(), offset: None, excerpt: String::new() }
}

/// An error at a place in the query.
pub(super) fn error_at(fault: Fault, message: String, sql: &str, offset: Option<usize>) -> Error {
    let excerpt = offset.map_or(String::new(), |offset| excerpt(sql, offset));
    Error::Sql { fault, message, offset, excerpt }
}

/// What SQLite complains about, as an error of ours.
pub(super) fn from_sqlite(
    failure: rusqlite::Error,
    sql: &str,
    is_running: bool,
    known: impl FnOnce() -> Known,
) -> Error {
    let (code, message, offset) = match failure {
        rusqlite::Error::SqlInputError { error, msg, offset, .. } => {
            (error.extended_code, msg, usize::try_from(offset).ok())
        }
        rusqlite::Error::SqliteFailure(error, message) => {
            (error.extended_code, message.unwrap_or_else(|| error.to_string()), None)
        }
        rusqlite::Error::MultipleStatement => return error(Fault::SeveralStatements),
        rusqlite::Error::Empty => return error(Fault::Empty),
        rusqlite::Error::NulError(_) => return error(Fault::Nul),
        rusqlite::Error::UserFunctionError(inner) => (ffi::SQLITE_ERROR, inner.to_string(), None),
        other => (ffi::SQLITE_ERROR, other.to_string(), None),
    };
    let offset = offset.filter(|offset| sql.is_char_boundary(*offset));
    let is_refused = ["prohibited", "not authorized", "may not be modified", "may not be dropped"];
    if code & 0xff == ffi::SQLITE_AUTH || is_refused.iter().any(|words| message.contains(words)) {
        return error_at(Fault::NotReadOnly, message, sql, None);
    }
    if let Some(name) = message.strip_prefix("no such table: ") {
        let known = known();
        let nearest = match name.rsplit_once('.') {
            Some((_, table)) => near(name, &known.qualified).or_else(|| near(table, &known.tables)),
            None => near(name, &known.tables),
        };
        let fault = Fault::UnknownTable { name: name.to_owned(), nearest };
        let offset = offset.or_else(|| place_of(sql, name));
        return error_at(fault, message, sql, offset);
    }
    if let Some(rest) = message.strip_prefix("no such column: ") {
        let fault = match rest.split_once(" - should this be") {
            Some((name, _)) => Fault::DoubleQuoted { name: name.trim_matches('"').to_owned() },
            None => {
                let nearest = near(rest.rsplit('.').next().unwrap_or(rest), &known().columns);
                Fault::UnknownColumn { name: rest.to_owned(), nearest }
            }
        };
        return error_at(fault, message, sql, offset);
    }
    if let Some(name) = message.strip_prefix("no such function: ") {
        let functions: Vec<_> = FUNCTIONS.iter().map(|name| (*name).to_owned()).collect();
        let fault = Fault::UnknownFunction { name: name.to_owned(), nearest: near(name, &functions) };
        return error_at(fault, message, sql, offset);
    }
    let fault = if is_running { Fault::Failed } else { Fault::Refused };
    error_at(fault, message, sql, offset)
}

/// Functions that a misspelt one may be meant for.
const FUNCTIONS: [&str; 30] = [
    "abs",
    "avg",
    "coalesce",
    "count",
    "group_concat",
    "hex",
    "ifnull",
    "instr",
    "ip_in",
    "json_array_length",
    "json_extract",
    "lag",
    "lead",
    "length",
    "log",
    "lower",
    "max",
    "median",
    "min",
    "pow",
    "quantile",
    "ratio",
    "regexp",
    "replace",
    "round",
    "sqrt",
    "stddev",
    "substr",
    "sum",
    "upper",
];

pub(super) fn near(name: &str, known: &[String]) -> Option<String> {
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    nearest(&name.to_lowercase(), &known).map(str::to_owned)
}

/// Where a name stands as a word.
fn place_of(sql: &str, name: &str) -> Option<usize> {
    words_of(sql).find(|(_, word)| word.eq_ignore_ascii_case(name.rsplit('.').next().unwrap_or(name))).map(|(at, _)| at)
}

/// The words of a query with their places.
pub(super) fn words_of(sql: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = sql.get(at..)?;
        let start = at + rest.find(is_word)?;
        let word = sql.get(start..)?;
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        at = start + end;
        Some((start, word.get(..end)?))
    })
}

/// The line of the query that holds the place, with a mark below it.
fn excerpt(sql: &str, offset: usize) -> String {
    let (before, after) = (sql.get(..offset).unwrap_or(sql), sql.get(offset..).unwrap_or(""));
    let before = before.rsplit('\n').next().unwrap_or(before);
    let after = after.split('\n').next().unwrap_or(after);
    // Tabs and other controls would move the mark.
    let plain = |text: &str| -> String { text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect() };
    let before = plain(before);
    let cut = before.chars().count().saturating_sub(EXCERPT);
    let before: String = before.chars().skip(cut).collect();
    let after: String = plain(after).chars().take(EXCERPT).collect();
    let places: usize = before.chars().map(|c| if c < '\u{1100}' { 1 } else { 2 }).sum();
    format!("  {before}{after}\n  {}^", " ".repeat(places))
}
