//! The one error type of a run. A bad *frame* is data (`decode_stop`, `capture_quality`); only a bad *run* is an error.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::capture::LooksLike;
use crate::words::{self, Lang};

/// Why a run could not go on, or could not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Reading failed. `path` is what was read, or `-` for standard input and bytes.
    Io { path: PathBuf, source: std::io::Error },
    /// Writing `path` failed.
    Write { path: PathBuf, source: std::io::Error },
    /// Tables outgrew the memory they may take, and the folder for temporary files cannot hold them.
    NoRoom { folder: PathBuf, source: std::io::Error },
    /// The input holds no capture that wirelab reads; `looks_like` says what it seems to be instead.
    NotACapture { path: PathBuf, looks_like: LooksLike },
    /// A file is not what it was when the capture was opened: what was computed of it and what would be do not fit together.
    Changed { path: PathBuf },
    /// Frames were to be written over a file of their own capture.
    OwnFile { path: PathBuf },
    /// A stated limit was exceeded and nothing useful could be kept.
    Limit { path: PathBuf, limit: &'static str, value: u64 },
    /// The call is at fault: an unknown table or column, no input, a filter that does not parse.
    Usage(String),
    /// There is no table of this name. `near` is one that is much like it; `known` are those that there are.
    NoTable { name: String, near: Option<&'static str>, known: Vec<&'static str> },
    /// The table has no column of this name. `near` is one that is much like it.
    NoColumn { table: &'static str, name: String, near: Option<&'static str> },
    /// There is no lab of this name. `near` is one that is much like it; `known` are those that there are.
    NoLab { name: String, near: Option<String>, known: Vec<String> },
    /// Arrow refused to build or write a batch.
    Arrow(arrow_schema::ArrowError),
    /// A query is at fault, or reached a limit. `message` is what SQLite says, `offset` the byte of the query that it speaks
    /// of, `excerpt` the line there with a mark below it; the last two may be missing.
    #[cfg(feature = "sql")]
    Sql { fault: crate::sql::Fault, message: String, offset: Option<usize>, excerpt: String },
    /// The observer asked to stop.
    Cancelled,
}

impl Error {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn write(path: &Path, source: std::io::Error) -> Self {
        Self::Write { path: path.to_path_buf(), source }
    }

    /// The message for a person, in the language asked for.
    pub fn message(&self, lang: Lang) -> String {
        match self {
            Self::Io { path, source } => {
                let key = match source.kind() {
                    std::io::ErrorKind::NotFound => "error.not_found",
                    std::io::ErrorKind::PermissionDenied => "error.permission",
                    std::io::ErrorKind::IsADirectory => "error.directory",
                    _ => "error.io",
                };
                words::say(lang, key, &[("path", &path.display()), ("reason", source)])
            }
            Self::Write { path, source } => {
                words::say(lang, "error.write", &[("path", &path.display()), ("reason", source)])
            }
            Self::NoRoom { folder, source } => {
                words::say(lang, "error.no_room", &[("path", &folder.display()), ("reason", source)])
            }
            Self::NotACapture { path, looks_like } => {
                let what = words::say(lang, looks_like.key(), &[]);
                let advice = words::say(lang, looks_like.advice_key(), &[("path", &path.display())]);
                words::say(
                    lang,
                    "error.not_a_capture",
                    &[("path", &path.display()), ("what", &what), ("advice", &advice)],
                )
            }
            Self::Changed { path } => words::say(lang, "error.changed", &[("path", &path.display())]),
            Self::OwnFile { path } => words::say(lang, "error.own_file", &[("path", &path.display())]),
            Self::Limit { path, limit, value } => {
                words::say(lang, "error.limit", &[("path", &path.display()), ("limit", limit), ("value", value)])
            }
            Self::Usage(message) => message.clone(),
            Self::NoTable { name, near, known } => {
                let near = near.map(|near| words::say(lang, "error.no_table_near", &[("near", &near)]));
                let known = known.join(&words::say(lang, "error.and", &[]));
                words::say(
                    lang,
                    "error.no_table",
                    &[("name", name), ("near", &near.unwrap_or_default()), ("known", &known)],
                )
            }
            Self::NoColumn { table, name, near } => {
                let near = near.map(|near| words::say(lang, "error.no_column_near", &[("near", &near)]));
                words::say(
                    lang,
                    "error.no_column",
                    &[("table", table), ("name", name), ("near", &near.unwrap_or_default())],
                )
            }
            Self::NoLab { name, near, known } => {
                let near = near.as_ref().map(|near| words::say(lang, "error.no_lab_near", &[("near", near)]));
                let key = if known.is_empty() { "error.no_lab_known_none" } else { "error.no_lab_known" };
                let known = words::say(lang, key, &[("known", &known.join(&words::say(lang, "error.and", &[])))]);
                words::say(
                    lang,
                    "error.no_lab",
                    &[("name", name), ("near", &near.unwrap_or_default()), ("known", &known)],
                )
            }
            Self::Arrow(error) => error.to_string(),
            #[cfg(feature = "sql")]
            Self::Sql { fault, message, excerpt, .. } => {
                let sentence = fault.say(lang, message);
                if excerpt.is_empty() { sentence } else { format!("{sentence}\n{excerpt}") }
            }
            Self::Cancelled => words::say(lang, "error.cancelled", &[]),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(Lang::En))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::Write { source, .. } | Self::NoRoom { source, .. } => Some(source),
            Self::Arrow(error) => Some(error),
            _ => None,
        }
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Arrow(error)
    }
}
