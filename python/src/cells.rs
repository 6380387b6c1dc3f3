//! Rows as Python values, for what is shown to people. Whole tables travel as Arrow.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// Rows from `start` on, at most `limit`, as tuples.
pub fn rows<'py>(py: Python<'py>, batches: &[RecordBatch], start: usize, limit: usize) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let (mut skip, mut left) = (start, limit);
    for batch in batches {
        let from = skip.min(batch.num_rows());
        let count = left.min(batch.num_rows() - from);
        (skip, left) = (skip - from, left - count);
        for row in from..from + count {
            let cells = batch.columns().iter().map(|column| cell(py, column.as_ref(), row));
            list.append(PyTuple::new(py, cells.collect::<PyResult<Vec<_>>>()?)?)?;
        }
    }
    Ok(list)
}

/// All rows as dictionaries: for tables of a few rows.
pub fn dicts<'py>(py: Python<'py>, batches: &[RecordBatch]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for batch in batches {
        for row in 0..batch.num_rows() {
            let dict = PyDict::new(py);
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                dict.set_item(field.name(), cell(py, column.as_ref(), row)?)?;
            }
            list.append(dict)?;
        }
    }
    Ok(list)
}

/// One value; a time as nanoseconds, since Python's own times end at microseconds.
fn cell<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into_bound_py_any(py),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into_bound_py_any(py),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into_bound_py_any(py),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Int8 => column.as_primitive::<Int8Type>().value(row).into_bound_py_any(py),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into_bound_py_any(py),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into_bound_py_any(py),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::Boolean => column.as_boolean().value(row).into_bound_py_any(py),
        DataType::Utf8 => column.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.as_primitive::<TimestampNanosecondType>().value(row).into_bound_py_any(py)
        }
        DataType::Dictionary(_, _) => {
            let column = column.as_dictionary::<Int32Type>();
            match column.key(row) {
                Some(key) => cell(py, column.values().as_ref(), key),
                None => Ok(py.None().into_bound(py)),
            }
        }
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            let cells = (0..items.len()).map(|at| cell(py, items.as_ref(), at));
            PyList::new(py, cells.collect::<PyResult<Vec<_>>>()?)?.into_bound_py_any(py)
        }
        DataType::Struct(_) => {
            let cells = column.as_struct().columns().iter().map(|field| cell(py, field.as_ref(), row));
            PyTuple::new(py, cells.collect::<PyResult<Vec<_>>>()?)?.into_bound_py_any(py)
        }
        // No table has a column of another type; a test reads a row of every table.
        other => Err(pyo3::exceptions::PyTypeError::new_err(format!("cannot show a value of type {other}"))),
    }
}
