//! One Parquet file, its columns encoded side by side. The bytes do not depend on who encodes what.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use rayon::prelude::*;

/// Rows of a row group: enough to be read in one go, few enough that a reader's threads find work.
const GROUP_ROWS: usize = 131_072;
/// Bytes that a row group may hold in memory before it is written; counted by what is encoded, so that the same rows are
/// always cut at the same places.
const GROUP_BYTES: usize = 24 << 20;

pub(super) struct ParquetFile<W: Write + Send> {
    file: SerializedFileWriter<W>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// Columns of the row group being filled; none between two.
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl<W: Write + Send> ParquetFile<W> {
    pub fn new(
        out: W,
        schema: &SchemaRef,
        facts: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ArrowError> {
        let facts = facts.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("wirelab {}", super::schema::VERSION))
            .set_key_value_metadata(Some(facts))
            .build();
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(arrow)?;
        let (file, factory) = writer.into_serialized_writer().map_err(arrow)?;
        Ok(Self { file, factory, schema: schema.clone(), columns: Vec::new(), rows: 0 })
    }

    /// Adds rows; columns are encoded by the pool where there is one.
    pub fn write(&mut self, batch: &RecordBatch, pool: Option<&rayon::ThreadPool>) -> Result<(), ArrowError> {
        let mut start = 0;
        while start < batch.num_rows() {
            let count = (batch.num_rows() - start).min(GROUP_ROWS - self.rows);
            self.add(&batch.slice(start, count), pool)?;
            start += count;
            if self.rows >= GROUP_ROWS
                || self.columns.iter().map(ArrowColumnWriter::memory_size).sum::<usize>() >= GROUP_BYTES
            {
                self.end_group(pool)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, batch: &RecordBatch, pool: Option<&rayon::ThreadPool>) -> Result<(), ArrowError> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len()).map_err(arrow)?;
        }
        let mut left = self.columns.as_mut_slice();
        let mut work = Vec::with_capacity(batch.num_columns());
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            let (own, rest) = std::mem::take(&mut left).split_at_mut(leaves(field.data_type()));
            left = rest;
            work.push((field, column, own));
        }
        let encode =
            |(field, column, writers): (&arrow_schema::FieldRef, &arrow_array::ArrayRef, &mut [ArrowColumnWriter])| {
                let leaves = compute_leaves(field, column)?;
                writers.iter_mut().zip(&leaves).try_for_each(|(writer, leaf)| writer.write(leaf))
            };
        match pool {
            Some(pool) => pool.install(|| work.into_par_iter().try_for_each(encode)),
            None => work.into_iter().try_for_each(encode),
        }
        .map_err(arrow)?;
        self.rows += batch.num_rows();
        Ok(())
    }

    fn end_group(&mut self, pool: Option<&rayon::ThreadPool>) -> Result<(), ArrowError> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let columns = std::mem::take(&mut self.columns);
        self.rows = 0;
        let close = ArrowColumnWriter::close;
        let chunks: Result<Vec<_>, ParquetError> = match pool {
            Some(pool) => pool.install(|| columns.into_par_iter().map(close).collect()),
            None => columns.into_iter().map(close).collect(),
        };
        let mut group = self.file.next_row_group().map_err(arrow)?;
        for chunk in chunks.map_err(arrow)? {
            chunk.append_to_row_group(&mut group).map_err(arrow)?;
        }
        group.close().map(drop).map_err(arrow)
    }

    pub fn finish(mut self, pool: Option<&rayon::ThreadPool>) -> Result<(), ArrowError> {
        self.end_group(pool)?;
        self.file.close().map(drop).map_err(arrow)
    }
}

/// Columns that a type takes in Parquet.
fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => leaves(item.data_type()),
        DataType::Struct(fields) => fields.iter().map(|field| leaves(field.data_type())).sum(),
        _ => 1,
    }
}

/// An error of the file underneath stays what it is.
fn arrow(error: ParquetError) -> ArrowError {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(io) => ArrowError::IoError(io.to_string(), *io),
            Err(other) => ArrowError::ParquetError(other.to_string()),
        },
        other => ArrowError::ParquetError(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::{GROUP_BYTES, ParquetFile};

    #[test]
    fn row_groups_are_cut_by_bytes_where_rows_are_large() {
        let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, false)]));
        let mut state = 1_u64;
        let mut text = || {
            let mut letter = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b' ' + (state >> 58) as u8)
            };
            (0..64 << 10).map(|_| letter()).collect::<String>()
        };
        // Six bits of eight are left of a letter, and so much of a row group's bytes in the file.
        let batches: Vec<RecordBatch> = (0..12)
            .map(|_| {
                let texts: StringArray = (0..64).map(|_| Some(text())).collect();
                RecordBatch::try_new(schema.clone(), vec![Arc::new(texts)]).unwrap()
            })
            .collect();
        let mut bytes = Vec::new();
        let mut file = ParquetFile::new(&mut bytes, &schema, []).unwrap();
        for batch in &batches {
            file.write(batch, None).unwrap();
            let held: usize = file.columns.iter().map(super::ArrowColumnWriter::memory_size).sum();
            assert!(held < GROUP_BYTES, "{held} bytes are held");
        }
        let groups = file.file.flushed_row_groups().len();
        assert!((1..12).contains(&groups), "{groups} row groups of 48 MiB");
        file.finish(None).unwrap();
        assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    }
}
