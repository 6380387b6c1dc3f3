//! Where the rows of a table gather until they make a batch.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::filter::Filter;
use crate::error::Error;
use crate::tables::{Projection, TableBuilder, TableRow};

/// Rows of a batch: a good size for DuckDB, Polars and Parquet, and small enough to stay in the cache with its columns.
pub(crate) const BATCH_ROWS: usize = 32_768;
const BLOCK_ROWS: usize = 256;

/// Rows of one table on their way into batches.
pub(crate) struct Sink<R: TableRow> {
    projection: Projection,
    schema: SchemaRef,
    filter: Filter,
    block: Vec<R>,
    builder: Option<R::Builder>,
    pub batches: Vec<RecordBatch>,
    /// The first failure to build a batch; the run ends with it.
    pub failure: Option<Error>,
}

impl<R: TableRow> Sink<R> {
    pub fn new(projection: Projection, filter: Filter) -> Self {
        let schema = R::definition().schema_of(&projection);
        Self {
            projection,
            schema,
            filter,
            block: Vec::with_capacity(BLOCK_ROWS),
            builder: None,
            batches: Vec::new(),
            failure: None,
        }
    }

    /// Whether a column is asked for.
    pub fn wants(&self, column: &str) -> bool {
        self.schema.column_with_name(column).is_some()
    }

    #[inline]
    pub fn push(&mut self, row: R) {
        if !self.filter.is_empty() && !self.filter.keeps(&row.subject()) {
            return;
        }
        self.block.push(row);
        if self.block.len() == BLOCK_ROWS {
            self.append_block();
        }
    }

    /// Rows that were gathered elsewhere.
    pub fn append(&mut self, rows: &[R])
    where
        R: Clone,
    {
        if self.filter.is_empty() {
            let builder = self.builder.get_or_insert_with(|| R::Builder::new(&self.projection, BATCH_ROWS));
            builder.append(rows);
            if builder.rows() >= BATCH_ROWS {
                self.emit();
            }
        } else {
            rows.iter().filter(|row| self.filter.keeps(&row.subject())).for_each(|row| self.block.push(row.clone()));
            if self.block.len() >= BLOCK_ROWS {
                self.append_block();
            }
        }
    }

    fn append_block(&mut self) {
        let builder = self.builder.get_or_insert_with(|| R::Builder::new(&self.projection, BATCH_ROWS));
        builder.append(&self.block);
        self.block.clear();
        if builder.rows() >= BATCH_ROWS {
            self.emit();
        }
    }

    fn emit(&mut self) {
        let Some(builder) = self.builder.take() else { return };
        let rows = builder.rows();
        match self.projection.batch(&self.schema, rows, builder.finish()) {
            Ok(batch) => self.batches.push(batch),
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }

    /// Puts out what is left.
    pub fn flush(&mut self) {
        if !self.block.is_empty() {
            self.append_block();
        }
        if self.builder.as_ref().is_some_and(|builder| builder.rows() > 0) {
            self.emit();
        }
    }
}
