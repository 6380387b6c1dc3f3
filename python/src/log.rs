//! What lab tools print, as tables beside a capture's.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use wirelab::TableData;
use wirelab::logs::{self, LOG_KINDS, LogError, LogKind};
use wirelab::sql::Source;

use crate::error;
use crate::observer::{PyObserver, Raised};
use crate::table::Table;

/// The tables of everything that a log holds: a saved session may have the output of several tools.
#[pyclass(frozen, module = "wirelab._core")]
pub struct Log {
    kinds: Vec<LogKind>,
    tables: Arc<Tables>,
    /// Severity, and message in both languages.
    findings: Vec<(String, String, String)>,
}

struct Tables(Vec<(&'static str, Arc<TableData>)>);

impl Source for Tables {
    fn table_names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, wirelab::Error>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, table)| Ok(Arc::clone(table)))
    }
}

impl Log {
    pub fn source(&self) -> Arc<dyn Source> {
        self.tables.clone()
    }

    fn of(logs: Vec<logs::Log>) -> Self {
        let kinds = logs.iter().map(|log| log.kind).collect();
        let mut tables: Vec<(&'static str, Arc<TableData>)> = Vec::new();
        let mut findings = Vec::new();
        for log in logs {
            findings.extend(log.findings.iter().map(|finding| {
                let message = |lang| finding.message(lang);
                (finding.severity.name().to_owned(), message(wirelab::Lang::En), message(wirelab::Lang::Zh))
            }));
            // Each has a table of its findings; that of the first tool stands for the file.
            let is_new = |name: &str| !tables.iter().any(|(known, _)| *known == name);
            let new: Vec<_> = log.tables.into_iter().filter(|(name, _)| is_new(name)).collect();
            tables.extend(new);
        }
        Self { kinds, tables: Arc::new(Tables(tables)), findings }
    }
}

/// Reads the log at a path; none where it is no output of a tool that is known.
#[pyfunction]
pub fn log(py: Python<'_>, path: PathBuf) -> PyResult<Option<Log>> {
    let mut observer = PyObserver::new(None, Raised::default());
    let found = observer.run(py, |observer| {
        let bytes = logs::bytes_of(&path)?;
        let mut found = Vec::new();
        for kind in logs::kinds(&bytes) {
            match logs::read_observed(kind, &bytes, observer) {
                Ok(log) => found.push(log),
                Err(LogError::Cancelled) => return Err(wirelab::Error::Cancelled),
                // Marks of a tool, and nothing that can be read.
                Err(_) => {}
            }
        }
        Ok(found)
    })?;
    Ok((!found.is_empty()).then(|| Log::of(found)))
}

/// A log of a kind without rows.
#[pyfunction]
pub fn empty_log(py: Python<'_>, kind: &str) -> PyResult<Log> {
    let Some(kind) = LogKind::from_name(kind) else {
        let known: Vec<_> = LOG_KINDS.iter().map(|kind| kind.name()).collect();
        return Err(error::usage(py, &format!("there is no kind of log {kind}; there are {}", known.join(", "))));
    };
    Ok(Log::of(vec![logs::empty(kind)]))
}

#[pymethods]
impl Log {
    /// The tools whose output it is.
    #[getter]
    fn kinds(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.name()).collect()
    }

    /// Names of its tables, with their rows.
    #[getter]
    fn tables(&self) -> Vec<(&'static str, usize)> {
        self.tables.0.iter().map(|(name, table)| (*name, table.num_rows())).collect()
    }

    #[getter]
    fn findings(&self) -> Vec<(String, String, String)> {
        self.findings.clone()
    }

    fn table(&self, name: &str) -> Option<Table> {
        self.tables.0.iter().find(|(known, _)| *known == name).map(|(_, table)| Table::new(Arc::clone(table)))
    }
}
