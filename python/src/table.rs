//! A table in memory, and what is declared of tables.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use pyo3_arrow::ffi::to_schema_pycapsule;
use wirelab::tables::type_name;
use wirelab::write::TableFormat;
use wirelab::{Matches, TABLES, TableData, TableId};

use crate::observer::{PyObserver, Raised};
use crate::scan::{PyWriter, write_all};
use crate::{cells, error, stream};

/// A table in memory.
#[pyclass(frozen, module = "wirelab._core")]
pub struct Table(Arc<TableData>);

impl Table {
    pub fn new(data: Arc<TableData>) -> Self {
        Self(data)
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Type of each column, as documentation names it.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.0.schema.fields().iter().map(|field| type_name(field.data_type())).collect()
    }

    /// Rows from `start` on, at most `limit`, as tuples; times as nanoseconds.
    fn rows<'py>(&self, py: Python<'py>, start: usize, limit: usize) -> PyResult<Bound<'py, PyList>> {
        cells::rows(py, &self.0.batches, start, limit)
    }

    /// Writes the rows, at most `limit`, to a file-like object; returns how many.
    #[pyo3(signature = (out, format, limit))]
    fn write(&self, py: Python<'_>, out: Py<PyAny>, format: &str, limit: Option<usize>) -> PyResult<usize> {
        let format = TableFormat::from_name(format).map_err(|failure| error::to_py(py, &failure))?;
        let mut observer = PyObserver::new(None, Raised::default());
        let writer = PyWriter { out, raised: observer.raised() };
        let mut batches = self.0.batches.iter().cloned();
        observer.run(py, |observer| {
            let next = || observer.go_on().map(|()| batches.next());
            write_all(&self.0.schema, next, writer, format, limit)
        })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema.as_ref())?)
    }

    /// A fresh stream at each call.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let data = self.0.clone();
        let batches = (0..data.batches.len()).map(move |at| Ok(data.batches[at].clone()));
        stream::capsule(py, &self.0.schema, batches, requested_schema)
    }
}

/// Name and meaning of every table.
#[pyfunction]
pub fn tables() -> Vec<(&'static str, String)> {
    TABLES.iter().map(|table| (table.name(), one_line(table.definition().doc))).collect()
}

/// Name, type, whether it may be null, and meaning of each column of a table.
#[pyfunction]
pub fn table_columns(py: Python<'_>, name: &str) -> PyResult<Vec<(&'static str, String, bool, String)>> {
    // `matches` is the table of two captures, and none that a capture has.
    let matches = Matches::definition();
    let definition = if name == matches.name { matches } else { table_id(py, name)?.definition() };
    Ok(definition.columns.iter().map(|c| (c.name, c.type_name(), c.is_nullable, one_line(c.doc))).collect())
}

pub fn table_id(py: Python<'_>, name: &str) -> PyResult<TableId> {
    TableId::from_name(name).map_err(|failure| error::to_py(py, &failure))
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
