//! An opened capture.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use wirelab::TableId;

use crate::input::inputs;
use crate::observer::{PyObserver, Raised};
use crate::overview;
use crate::request::RunOptions;
use crate::table::{Table, table_id};

/// A capture of one or more files.
#[pyclass(frozen, module = "wirelab._core")]
pub struct Capture {
    capture: Arc<wirelab::Capture>,
    progress: Option<Py<PyAny>>,
}

#[pyfunction]
#[pyo3(signature = (given, options, progress))]
pub fn open(
    py: Python<'_>,
    given: Vec<Bound<'_, PyAny>>,
    options: RunOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<Capture> {
    let raised = Raised::default();
    let (inputs, options) = (inputs(given, &raised)?, options.into_core());
    let capture = PyObserver::new(None, raised).run(py, |_| wirelab::open(inputs, &options))?;
    Ok(Capture { capture: Arc::new(capture), progress })
}

#[pymethods]
impl Capture {
    /// Computes tables in one pass over the capture.
    fn load(&self, py: Python<'_>, names: Vec<String>) -> PyResult<()> {
        let tables = names.iter().map(|name| table_id(py, name)).collect::<PyResult<Vec<_>>>()?;
        let mut observer = self.observer(py);
        observer.run(py, |observer| self.capture.load(&tables, observer))?;
        observer.finish(py)
    }

    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let table: TableId = table_id(py, name)?;
        let mut observer = self.observer(py);
        let data = observer.run(py, |observer| self.capture.table_observed(table, observer))?;
        observer.finish(py)?;
        Ok(Table::new(data))
    }

    /// What is wrong with the files, in English and Chinese, as far as they were read.
    fn warnings(&self) -> Vec<(String, String)> {
        self.capture.warnings()
    }

    fn overview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut observer = self.observer(py);
        let seen =
            observer.run(py, |observer| wirelab::overview(self.capture.inputs(), self.capture.options(), observer))?;
        observer.finish(py)?;
        overview::to_py(py, &seen)
    }

    /// Writes frames as pcapng; returns frames and comments written, comments and records left out.
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        frames: Option<Vec<(u32, u64)>>,
        comments: Vec<(u32, u64, String)>,
    ) -> PyResult<(u64, u64, u64, u64)> {
        let comments: Vec<_> = comments.iter().map(|(file, frame, text)| (*file, *frame, text.as_str())).collect();
        let report = PyObserver::new(None, Raised::default())
            .run(py, |observer| self.capture.write_observed(&path, frames.as_deref(), &comments, observer))?;
        Ok((report.frames, report.comments, report.comments_left_out, report.records_left_out))
    }
}

impl Capture {
    pub fn core(&self) -> Arc<wirelab::Capture> {
        Arc::clone(&self.capture)
    }

    pub fn progress(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.progress.as_ref().map(|progress| progress.clone_ref(py))
    }

    fn observer(&self, py: Python<'_>) -> PyObserver {
        PyObserver::new(self.progress(py), Raised::default())
    }
}
