//! SQL over captures.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use wirelab::sql::{Database, QueryLimits, Source, Value};

use crate::capture::Capture;
use crate::log::Log;
use crate::observer::{PyObserver, Raised};
use crate::table::Table;

/// A value of a parameter; the package has turned everything else into one of these.
#[derive(FromPyObject)]
pub enum Given {
    Integer(i64),
    Real(f64),
    Text(String),
}

/// What has tables to query.
#[derive(FromPyObject)]
pub enum Named<'py> {
    Capture(Bound<'py, Capture>),
    Log(Bound<'py, Log>),
}

/// Most seconds, rows and bytes; the package has checked them.
type Limits = (Option<f64>, Option<u64>, Option<u64>);

/// Runs a query over captures and logs, each under a name of its own.
#[pyfunction]
#[pyo3(signature = (query, captures, params, limits))]
pub fn sql(
    py: Python<'_>,
    query: &str,
    captures: Vec<(String, Named<'_>)>,
    params: Vec<(String, Option<Given>)>,
    limits: Limits,
) -> PyResult<Table> {
    let default = QueryLimits::default();
    let limits = QueryLimits {
        time: limits.0.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(default.time),
        rows: limits.1.unwrap_or(default.rows),
        bytes: limits.2.unwrap_or(default.bytes),
    };
    let value = |given: Option<Given>| match given {
        None => Value::Null,
        Some(Given::Integer(number)) => Value::Integer(number),
        Some(Given::Real(number)) => Value::Real(number),
        Some(Given::Text(text)) => Value::Text(text),
    };
    let params: Vec<_> = params.into_iter().map(|(name, given)| (name, value(given))).collect();
    let progress = captures.iter().find_map(|(_, named)| match named {
        Named::Capture(capture) => capture.get().progress(py),
        Named::Log(_) => None,
    });
    let source = |named: &Named<'_>| -> Arc<dyn Source> {
        match named {
            Named::Capture(capture) => capture.get().core(),
            Named::Log(log) => log.get().source(),
        }
    };
    let sources: Vec<_> = captures.iter().map(|(name, named)| (name.clone(), source(named))).collect();
    let mut observer = PyObserver::new(progress, Raised::default());
    let data = observer.run(py, |observer| {
        let mut database = Database::new(limits);
        for (name, capture) in sources {
            database.attach(&name, capture)?;
        }
        let params: Vec<_> = params.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        database.query(query, &params, observer)
    })?;
    Ok(Table::new(Arc::new(data)))
}
