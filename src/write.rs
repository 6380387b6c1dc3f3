//! Batches to files: CSV, JSON, Parquet and Arrow IPC.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::tables::nearest;

/// A file format for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableFormat {
    /// Comma-separated, with a header line; times as RFC 3339 with nine digits, lists as JSON.
    Csv,
    /// One JSON array of objects.
    Json,
    /// One JSON object per line.
    JsonLines,
    /// Arrow IPC file (also known as Feather version 2).
    Arrow,
    /// Arrow IPC stream.
    ArrowStream,
    #[cfg(feature = "parquet")]
    Parquet,
}

impl TableFormat {
    /// The formats by the names that users give them.
    const NAMES: [(&'static str, Self); if cfg!(feature = "parquet") { 6 } else { 5 }] = [
        ("csv", Self::Csv),
        ("json", Self::Json),
        ("jsonl", Self::JsonLines),
        ("arrow", Self::Arrow),
        ("arrow_stream", Self::ArrowStream),
        #[cfg(feature = "parquet")]
        ("parquet", Self::Parquet),
    ];

    pub fn from_name(name: &str) -> Result<Self, crate::Error> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format).ok_or_else(|| {
            let known = Self::NAMES.map(|(known, _)| known);
            let hint = nearest(name, &known).map_or(String::new(), |near| format!(" (did you mean {near}?)"));
            crate::Error::Usage(format!("there is no format {name}{hint}; the formats are {}", known.join(", ")))
        })
    }

    /// Whether the format is text, fit for a screen.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Json | Self::JsonLines)
    }
}

/// Writes the batches of one table, then the end of the file.
pub struct TableWriter<W: Write + Send> {
    inner: Inner<W>,
}

enum Inner<W: Write + Send> {
    Csv(Box<arrow_csv::Writer<W>>, SchemaRef),
    Json(arrow_json::Writer<W, arrow_json::writer::JsonArray>),
    JsonLines(arrow_json::Writer<W, arrow_json::writer::LineDelimited>),
    Arrow(Box<arrow_ipc::writer::FileWriter<W>>),
    ArrowStream(Box<arrow_ipc::writer::StreamWriter<W>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::arrow::ArrowWriter<W>>),
}

impl<W: Write + Send> TableWriter<W> {
    pub fn new(format: TableFormat, schema: &SchemaRef, out: W) -> Result<Self, ArrowError> {
        use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions};
        // Batches have dictionaries of their own: a stream may replace them, a file may not.
        let inner = match format {
            TableFormat::Csv => {
                let schema = text_schema(schema);
                let mut writer = arrow_csv::WriterBuilder::new()
                    .with_header(true)
                    .with_timestamp_tz_format(CSV_TIME.to_owned())
                    .build(out);
                writer.write(&RecordBatch::new_empty(schema.clone()))?;
                Inner::Csv(Box::new(writer), schema)
            }
            TableFormat::Json => Inner::Json(json_options().build(out)),
            TableFormat::JsonLines => Inner::JsonLines(json_options().build(out)),
            TableFormat::Arrow => {
                Inner::Arrow(Box::new(arrow_ipc::writer::FileWriter::try_new(out, &plain_schema(schema))?))
            }
            TableFormat::ArrowStream => {
                let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Resend);
                Inner::ArrowStream(Box::new(arrow_ipc::writer::StreamWriter::try_new_with_options(
                    out, schema, options,
                )?))
            }
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => {
                use parquet::basic::{Compression, ZstdLevel};
                let properties = parquet::file::properties::WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let writer = parquet::arrow::ArrowWriter::try_new(out, schema.clone(), Some(properties));
                Inner::Parquet(Box::new(writer.map_err(|error| ArrowError::ParquetError(error.to_string()))?))
            }
        };
        Ok(Self { inner })
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match &mut self.inner {
            Inner::Csv(writer, schema) => writer.write(&text_batch(batch, schema)?),
            Inner::Json(writer) => writer.write(batch),
            Inner::JsonLines(writer) => writer.write(batch),
            Inner::Arrow(writer) => writer.write(&plain_batch(batch)?),
            Inner::ArrowStream(writer) => writer.write(batch),
            #[cfg(feature = "parquet")]
            Inner::Parquet(writer) => writer.write(batch).map_err(|error| ArrowError::ParquetError(error.to_string())),
        }
    }

    pub fn finish(self) -> Result<(), ArrowError> {
        match self.inner {
            Inner::Csv(writer, _) => Ok(writer.into_inner().flush()?),
            Inner::Json(mut writer) => {
                writer.finish()?;
                Ok(writer.into_inner().flush()?)
            }
            Inner::JsonLines(mut writer) => {
                writer.finish()?;
                Ok(writer.into_inner().flush()?)
            }
            Inner::Arrow(mut writer) => writer.finish(),
            Inner::ArrowStream(mut writer) => writer.finish(),
            #[cfg(feature = "parquet")]
            Inner::Parquet(writer) => {
                writer.close().map(|_| ()).map_err(|error| ArrowError::ParquetError(error.to_string()))
            }
        }
    }
}

const CSV_TIME: &str = "%Y-%m-%dT%H:%M:%S%.9fZ";

fn json_options() -> arrow_json::WriterBuilder {
    arrow_json::WriterBuilder::new().with_explicit_nulls(true).with_timestamp_tz_format(CSV_TIME.to_owned())
}

/// Lists become text: CSV has no other place for them.
fn text_schema(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::List(_) => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
        _ => field.clone(),
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn text_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::List(_) => list_text(column),
        _ => Ok(column.clone()),
    });
    RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
}

/// `[1, 2]`, or `[[left, right], …]` for SACK blocks; an empty list is an empty cell.
fn list_text(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let lists = column.as_list::<i32>();
    let mut texts = StringBuilder::new();
    for row in 0..lists.len() {
        if lists.is_null(row) || lists.value_length(row) == 0 {
            texts.append_null();
            continue;
        }
        let items = lists.value(row);
        let options = FormatOptions::default();
        let parts: Vec<String> = match items.data_type() {
            DataType::Struct(_) => {
                let columns = items.as_struct().columns();
                let shown = columns.iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options));
                let shown = shown.collect::<Result<Vec<_>, _>>()?;
                let item = |at: usize| {
                    let values: Vec<_> = shown.iter().map(|values| values.value(at).to_string()).collect();
                    format!("[{}]", values.join(", "))
                };
                (0..items.len()).map(item).collect()
            }
            _ => {
                let shown = ArrayFormatter::try_new(items.as_ref(), &options)?;
                (0..items.len()).map(|at| shown.value(at).to_string()).collect()
            }
        };
        texts.append_value(format!("[{}]", parts.join(", ")));
    }
    Ok(Arc::new(texts.finish()))
}

/// Dictionaries become plain text.
fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(_, values) => {
            let plain = Field::new(field.name(), values.as_ref().clone(), field.is_nullable());
            Arc::new(plain.with_metadata(field.metadata().clone()))
        }
        _ => field.clone(),
    };
    let fields: Vec<_> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain_batch(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::Dictionary(_, values) => arrow_cast::cast(column, values),
        _ => Ok(column.clone()),
    });
    RecordBatch::try_new(plain_schema(&batch.schema()), columns.collect::<Result<_, _>>()?)
}
