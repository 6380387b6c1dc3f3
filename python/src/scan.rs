//! One table as a stream.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::StructArray;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyTuple};
use pyo3_arrow::ffi::{to_array_pycapsules, to_schema_pycapsule};
use wirelab::write::{TableFormat, TableWriter};
use wirelab::{Error, Lang, ScanRequest};

use crate::input::inputs;
use crate::observer::{PyObserver, Raised};
use crate::request::{RowFilter, RunOptions};
use crate::table::table_id;
use crate::{cells, error, stream};

/// Bytes gathered before Python's `write` is called.
const WRITE_BYTES: usize = 1 << 20;

/// A run that gives the batches of one table, once.
#[pyclass(frozen, module = "wirelab._core")]
pub struct Scan {
    schema: SchemaRef,
    run: Mutex<Option<Run>>,
    /// What is wrong with the files, in English and Chinese; known at the end.
    warnings: Arc<Mutex<Vec<(String, String)>>>,
}

struct Run {
    scan: wirelab::Scan,
    observer: PyObserver,
    warnings: Arc<Mutex<Vec<(String, String)>>>,
}

#[pyfunction]
#[pyo3(signature = (given, table, columns, filter, options, progress))]
pub fn scan(
    py: Python<'_>,
    given: Vec<Bound<'_, PyAny>>,
    table: &str,
    columns: Option<Vec<String>>,
    filter: RowFilter,
    options: RunOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<Scan> {
    let raised = Raised::default();
    let (inputs, options) = (inputs(given, &raised)?, options.into_core());
    let request = ScanRequest { table: table_id(py, table)?, columns, filter: filter.into_core(py)? };
    let mut observer = PyObserver::new(progress, raised);
    let scan = observer.run(py, |_| wirelab::scan(inputs, &options, request))?;
    let warnings = Arc::default();
    let run = Run { observer, warnings: Arc::clone(&warnings), scan };
    Ok(Scan { schema: run.scan.schema(), run: Mutex::new(Some(run)), warnings })
}

#[pymethods]
impl Scan {
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<(String, String)> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        // Taken out, so that a `progress` that comes back here finds the scan busy and not a lock.
        let Some(mut run) = self.lock().take() else { return Ok(None) };
        let next = run.next(py)?;
        if next.is_some() {
            *self.lock() = Some(run);
        }
        Ok(next.map(RecordBatch))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut run = self.take(py)?;
        let batches = std::iter::from_fn(move || {
            let next = Python::try_attach(|py| run.next(py).map_err(|raised| stream_error(py, raised)));
            next.unwrap_or_else(|| Err(ArrowError::ExternalError("the interpreter is going down".into()))).transpose()
        });
        stream::capsule(py, &self.schema, batches, requested_schema)
    }

    /// Writes the rest to a file-like object; returns the rows written.
    #[pyo3(signature = (out, format, limit))]
    fn write(&self, py: Python<'_>, out: Py<PyAny>, format: &str, limit: Option<usize>) -> PyResult<usize> {
        let format = TableFormat::from_name(format).map_err(|failure| error::to_py(py, &failure))?;
        let mut run = self.take(py)?;
        let writer = PyWriter { out, raised: run.observer.raised() };
        let scan = &mut run.scan;
        let rows = run.observer.run(py, |observer| {
            let schema = scan.schema();
            write_all(&schema, || scan.next_batch(observer), writer, format, limit)
        })?;
        run.observer.finish(py)?;
        run.keep_warnings();
        Ok(rows)
    }
}

impl Scan {
    fn lock(&self) -> MutexGuard<'_, Option<Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, py: Python<'_>) -> PyResult<Run> {
        self.lock().take().ok_or_else(|| error::usage(py, "a scan can be read once only; scan again"))
    }
}

impl Run {
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<arrow_array::RecordBatch>> {
        let scan = &mut self.scan;
        let next = self.observer.run(py, |observer| scan.next_batch(observer))?;
        if next.is_none() {
            self.observer.finish(py)?;
            self.keep_warnings();
        }
        Ok(next)
    }

    fn keep_warnings(&self) {
        let [english, chinese] = [Lang::En, Lang::Zh].map(|lang| self.scan.warnings(lang));
        *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = english.into_iter().zip(chinese).collect();
    }
}

/// Only a text gets through the C interface. Ctrl-C is rung again, so that it ends more than the stream.
fn stream_error(py: Python<'_>, raised: PyErr) -> ArrowError {
    let text = raised.to_string().trim_end_matches(": ").to_owned();
    if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
        // If that fails, the stream's own error still ends the reading.
        let _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
    }
    if raised.is_instance_of::<pyo3::exceptions::PyOSError>(py) {
        return ArrowError::IoError(text.clone(), io::Error::other(text));
    }
    ArrowError::ExternalError(text.into())
}

/// Writes what `next` gives, at most `limit` rows; returns how many.
pub fn write_all(
    schema: &SchemaRef,
    mut next: impl FnMut() -> Result<Option<arrow_array::RecordBatch>, Error>,
    out: PyWriter,
    format: TableFormat,
    limit: Option<usize>,
) -> Result<usize, Error> {
    let mut writer = TableWriter::new(format, schema, BufWriter::with_capacity(WRITE_BYTES, out))?;
    let mut rows = 0;
    while limit.is_none_or(|limit| rows < limit) {
        let Some(batch) = next()? else { break };
        let count = limit.map_or(batch.num_rows(), |limit| batch.num_rows().min(limit - rows));
        writer.write(&batch.slice(0, count))?;
        rows += count;
    }
    writer.finish()?;
    Ok(rows)
}

/// Writes to a Python object with `write`.
pub struct PyWriter {
    pub out: Py<PyAny>,
    pub raised: Raised,
}

impl Write for PyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Python::try_attach(|py| {
            let written = self.out.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
            // A raw file may take less than it is given; others give nothing back or all.
            let written: Option<usize> = written.extract(py)?;
            Ok::<_, PyErr>(written.unwrap_or(bytes.len()).min(bytes.len()))
        });
        match written {
            Some(Ok(written)) => Ok(written),
            Some(Err(raised)) => {
                let told = io::Error::other(raised.to_string());
                self.raised.keep(raised);
                Err(told)
            }
            None => Err(io::Error::other("the interpreter is going down")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A few thousand rows of a table.
#[pyclass(frozen, module = "wirelab._core")]
pub struct RecordBatch(arrow_array::RecordBatch);

#[pymethods]
impl RecordBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn rows<'py>(&self, py: Python<'py>, start: usize, limit: usize) -> PyResult<Bound<'py, PyList>> {
        cells::rows(py, std::slice::from_ref(&self.0), start, limit)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema_ref().as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let array = StructArray::from(self.0.clone());
        Ok(to_array_pycapsules(py, stream::struct_field(self.0.schema_ref()), &array, requested_schema)?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream::capsule(py, self.0.schema_ref(), std::iter::once(Ok(self.0.clone())), requested_schema)
    }
}
