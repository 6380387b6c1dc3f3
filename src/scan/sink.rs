//! Where the rows of a table gather until they make a batch.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::filter::Filter;
use crate::error::Error;
use crate::tables::{Projection, RowSubject, TableBuilder, TableRow};

/// Rows of a batch: a good size for DuckDB, Polars and Parquet, and small enough to stay in the cache with its columns.
pub(crate) const BATCH_ROWS: usize = 16_384;
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

    fn append_block(&mut self) {
        let builder = self.builder.get_or_insert_with(|| R::Builder::new(&self.projection, BATCH_ROWS));
        builder.append(&self.block);
        self.block.clear();
        if builder.rows() >= BATCH_ROWS {
            self.emit();
        }
    }

    /// The rows of one batch in the making, for what fills columns; [`Self::made`] takes it back.
    pub fn new_builder(&self) -> R::Builder {
        R::Builder::new(&self.projection, BATCH_ROWS)
    }

    /// Fills the columns of up to `rows` rows, batch by batch: `fill` is given the batch in the making and how many of the
    /// rows it shall take.
    pub fn fill(&mut self, rows: usize, mut fill: impl FnMut(&mut R::Builder, usize)) {
        let mut left = rows;
        while left > 0 {
            let mut builder = self.builder.take().unwrap_or_else(|| self.new_builder());
            let now = left.min(BATCH_ROWS.saturating_sub(builder.rows()).max(1));
            fill(&mut builder, now);
            left -= now;
            self.builder = Some(builder);
            if self.builder.as_ref().is_some_and(|builder| builder.rows() >= BATCH_ROWS) {
                self.emit();
            }
        }
    }

    /// Whether only the number of rows is asked for.
    pub fn only_counts(&self) -> bool {
        self.schema.fields().is_empty() && self.filter.is_empty()
    }

    /// Whether rows that speak of this come out.
    pub fn keeps(&self, subject: impl FnOnce() -> RowSubject) -> bool {
        self.filter.is_empty() || self.filter.keeps(&subject())
    }

    fn emit(&mut self) {
        if let Some(builder) = self.builder.take() {
            let batch = self.made(builder);
            self.put(batch);
        }
    }

    /// The rows of a builder as a batch, which [`Self::put`] puts out.
    pub fn made(&self, builder: R::Builder) -> Result<RecordBatch, Error> {
        let rows = builder.rows();
        self.projection.batch(&self.schema, rows, builder.finish())
    }

    pub fn put(&mut self, batch: Result<RecordBatch, Error>) {
        match batch {
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
