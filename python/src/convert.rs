//! Many captures to a dataset of files.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use wirelab::convert::{Conversion, ConvertOptions, Converted, DatasetFormat, GroupBy, Outcome};
use wirelab::{Error, Lang, TABLES, TableId};

use crate::error;
use crate::observer::{PyObserver, Raised};
use crate::request::RunOptions;

/// What became of each capture, as a dictionary; its keys are the package's contract. `group_by` is `file`, `ring`, `all`, or
/// bytes as a number.
#[pyfunction]
#[pyo3(signature = (paths, out, tables, format, group_by, jobs, options, progress))]
#[expect(clippy::too_many_arguments, reason = "the package names them all")]
pub fn convert<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    out: PathBuf,
    tables: Option<Vec<String>>,
    format: &str,
    group_by: &str,
    jobs: Option<usize>,
    options: RunOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = ConvertOptions {
        run: options.into_core(),
        tables: tables
            .map_or_else(|| Ok(TABLES.to_vec()), |names| table_ids(&names))
            .map_err(|e| error::to_py(py, &e))?,
        format: DatasetFormat::from_name(format).map_err(|failure| error::to_py(py, &failure))?,
        group_by: match group_by {
            "file" => GroupBy::File,
            "ring" => GroupBy::Ring,
            "all" => GroupBy::All,
            bytes => GroupBy::Bytes(bytes.parse().map_err(|_| error::usage(py, &format!("no group: {bytes}")))?),
        },
        jobs: jobs.and_then(NonZeroUsize::new),
    };
    let mut observer = PyObserver::new(progress, Raised::default());
    let mut done = None;
    let outcome = observer.run(py, |observer| {
        done = Some(wirelab::convert(paths, out, &options, observer)?);
        Ok(())
    });
    if let Err(raised) = outcome {
        // All was done when the user pressed Ctrl-C: whoever catches it can tell.
        if let (Some(done), true) = (&done, raised.is_instance_of::<PyKeyboardInterrupt>(py)) {
            raised.value(py).setattr("conversion", to_py(py, done)?)?;
        }
        return Err(raised);
    }
    let done = done.unwrap_or(Conversion { captures: Vec::new(), outdated_count: 0, gone_count: 0 });
    observer.finish(py)?;
    to_py(py, &done)
}

fn table_ids(names: &[String]) -> Result<Vec<TableId>, Error> {
    names.iter().map(|name| TableId::from_name(name)).collect()
}

fn to_py<'py>(py: Python<'py>, done: &Conversion) -> PyResult<Bound<'py, PyDict>> {
    let captures = PyList::empty(py);
    for capture in &done.captures {
        captures.append(capture_of(py, capture)?)?;
    }
    let all = PyDict::new(py);
    all.set_item("captures", captures)?;
    all.set_item("outdated_count", done.outdated_count)?;
    all.set_item("gone_count", done.gone_count)?;
    Ok(all)
}

fn capture_of<'py>(py: Python<'py>, capture: &Converted) -> PyResult<Bound<'py, PyDict>> {
    let rows = PyDict::new(py);
    let (status, failure) = match &capture.outcome {
        Outcome::Written(tables) => {
            for (table, count) in tables {
                rows.set_item(table.name(), count)?;
            }
            ("written", None)
        }
        Outcome::Unchanged => ("unchanged", None),
        Outcome::Failed(failure) => ("failed", Some(error::to_py(py, failure).into_value(py))),
    };
    let warnings: Vec<(&str, &str)> = capture.warnings(Lang::En).zip(capture.warnings(Lang::Zh)).collect();
    let one = PyDict::new(py);
    one.set_item("name", &capture.name)?;
    one.set_item("files", capture.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>())?;
    one.set_item("status", status)?;
    one.set_item("rows", rows)?;
    one.set_item("error", failure)?;
    one.set_item("warnings", warnings)?;
    Ok(one)
}
