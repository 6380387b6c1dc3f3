//! Batches across the Arrow C stream interface.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, Field, FieldRef, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayReader, to_stream_pycapsule};

/// A capsule that gives the batches to whoever takes it. A panic in the batches' making ends the stream with an error: a
/// C caller up the stack could not unwind it.
pub fn capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let field = struct_field(schema);
    let guarded = Guarded { batches, field, is_done: false };
    Ok(to_stream_pycapsule(py, Box::new(guarded), requested_schema)?)
}

/// Across the interface, a batch is a struct.
pub fn struct_field(schema: &SchemaRef) -> FieldRef {
    Arc::new(Field::new_struct("", schema.fields().clone(), false).with_metadata(schema.metadata().clone()))
}

struct Guarded<I> {
    batches: I,
    field: FieldRef,
    is_done: bool,
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> Iterator for Guarded<I> {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = catch_unwind(AssertUnwindSafe(|| self.batches.next())).unwrap_or_else(|_| {
            Some(Err(ArrowError::ExternalError("wirelab has a fault, please report it: panic in a stream".into())))
        });
        self.is_done = !matches!(next, Some(Ok(_)));
        Some(match next? {
            Ok(batch) => Ok(Arc::new(StructArray::from(batch)) as ArrayRef),
            Err(error) => Err(without_nul(error)),
        })
    }
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> ArrayReader for Guarded<I> {
    fn field(&self) -> FieldRef {
        self.field.clone()
    }
}

/// The message becomes a C string; a file's name may hold anything.
fn without_nul(error: ArrowError) -> ArrowError {
    let text = error.to_string();
    if text.contains('\0') { ArrowError::ExternalError(text.replace('\0', "\u{fffd}").into()) } else { error }
}

/// A stream whose making panics: what the guard is tested with.
#[cfg(debug_assertions)]
#[pyfunction]
pub fn panicking_stream(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = wirelab::TableId::Packets.definition().schema();
    let batches = std::iter::from_fn(|| -> Option<Result<RecordBatch, ArrowError>> { panic!("on purpose") });
    capsule(py, &schema, batches, None)
}
