//! Rows of a query into Arrow columns. SQLite's values have types of their own, row by row; a column gets the declared type
//! where all of its values fit it, else the widest that any of them has: integer, real, text.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::*;
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Float64Array, Int64Array, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use rusqlite::types::ValueRef;

use super::column::Kind;
use super::guard::Guard;
use crate::error::Error;
use crate::open::TableData;

/// Rows of a batch, and bytes of text after which one ends early: Arrow counts the bytes of a text column in 32 bits.
const BATCH_ROWS: usize = 32_768;
const BATCH_TEXT_BYTES: usize = 256 << 20;

/// A result on its way.
pub(super) struct Collector {
    columns: Vec<Gathering>,
    rows: u64,
    batch_rows: usize,
    batch_text_bytes: usize,
}

struct Gathering {
    name: String,
    declared: Option<Kind>,
    runs: Vec<Run>,
    widest: Widest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Widest {
    Nothing,
    Integer,
    Real,
    Text,
}

/// The values of one batch.
enum Run {
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    Texts(StringBuilder),
    /// More than one kind.
    Mixed(Vec<Owned>),
}

enum Owned {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Collector {
    /// Columns by name and declared type; names that repeat are numbered.
    pub fn new(columns: impl Iterator<Item = (String, Option<Kind>)>) -> Self {
        let mut taken = HashSet::new();
        let columns = columns.map(|(name, declared)| {
            let mut unique = name.clone();
            let mut number = 2;
            while !taken.insert(unique.clone()) {
                unique = format!("{name}_{number}");
                number += 1;
            }
            Gathering { name: unique, declared, runs: Vec::new(), widest: Widest::Nothing }
        });
        Self { columns: columns.collect(), rows: 0, batch_rows: BATCH_ROWS, batch_text_bytes: 0 }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes a row; `false` where the memory allowed is used up.
    pub fn push<'a>(
        &mut self,
        guard: &Guard,
        mut value: impl FnMut(usize) -> rusqlite::Result<ValueRef<'a>>,
    ) -> rusqlite::Result<bool> {
        if self.batch_rows >= BATCH_ROWS || self.batch_text_bytes >= BATCH_TEXT_BYTES {
            self.columns.iter_mut().for_each(|column| column.runs.push(Run::Integers(Vec::new())));
            (self.batch_rows, self.batch_text_bytes) = (0, 0);
        }
        let mut bytes = 0;
        for (at, column) in self.columns.iter_mut().enumerate() {
            bytes += column.push(value(at)?);
        }
        self.batch_rows += 1;
        self.rows += 1;
        self.batch_text_bytes += bytes;
        Ok(guard.take(bytes as u64))
    }

    /// The table.
    pub fn finish(self) -> Result<TableData, Error> {
        let types: Vec<_> = self.columns.iter().map(Gathering::result_type).collect();
        let fields: Vec<_> = self
            .columns
            .iter()
            .zip(&types)
            .map(|(column, data_type)| Field::new(&column.name, data_type.clone(), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let mut runs: Vec<_> = self.columns.into_iter().map(|column| column.runs.into_iter()).collect();
        let mut batches = Vec::new();
        loop {
            let next: Vec<_> = runs.iter_mut().filter_map(Iterator::next).collect();
            if next.is_empty() {
                break;
            }
            let rows = next.first().map_or(0, Run::rows);
            let arrays = next.into_iter().zip(&types).map(|(run, data_type)| run.array(data_type)).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            batches.push(RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?);
        }
        Ok(TableData { schema, batches })
    }
}

impl Gathering {
    /// Bytes that the value takes.
    fn push(&mut self, value: ValueRef<'_>) -> usize {
        let Some(run) = self.runs.last_mut() else { return 0 };
        let widest = match value {
            ValueRef::Null => Widest::Nothing,
            ValueRef::Integer(_) => Widest::Integer,
            ValueRef::Real(_) => Widest::Real,
            ValueRef::Text(_) | ValueRef::Blob(_) => Widest::Text,
        };
        self.widest = self.widest.max(widest);
        run.push(value)
    }

    fn result_type(&self) -> DataType {
        match self.widest {
            // Nothing to go by: as most results of aggregates are.
            Widest::Nothing => self.declared.map_or(DataType::Int64, arrow_type),
            Widest::Integer => match self.declared {
                Some(kind) if self.runs.iter().all(|run| run.fits(kind)) => arrow_type(kind),
                _ => DataType::Int64,
            },
            // Integers beside reals, as long as none would lose a digit.
            Widest::Real if self.runs.iter().all(Run::is_exact_in_reals) => DataType::Float64,
            Widest::Real | Widest::Text => DataType::Utf8,
        }
    }
}

impl Run {
    fn rows(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Reals(values) => values.len(),
            Self::Texts(texts) => arrow_array::builder::ArrayBuilder::len(texts),
            Self::Mixed(values) => values.len(),
        }
    }

    fn push(&mut self, value: ValueRef<'_>) -> usize {
        match (&mut *self, value) {
            (Self::Integers(values), ValueRef::Integer(number)) => values.push(Some(number)),
            (Self::Integers(values), ValueRef::Null) => values.push(None),
            (Self::Reals(values), ValueRef::Real(number)) => values.push(Some(number)),
            (Self::Reals(values), ValueRef::Null) => values.push(None),
            (Self::Texts(texts), ValueRef::Text(text)) => {
                texts.append_value(String::from_utf8_lossy(text));
                return text.len() + 4;
            }
            (Self::Texts(texts), ValueRef::Null) => texts.append_null(),
            (Self::Mixed(values), value) => {
                let value = owned(value);
                let bytes = size_of::<Owned>() + if let Owned::Text(text) = &value { text.len() } else { 0 };
                values.push(value);
                return bytes;
            }
            (_, value) => {
                self.widen(value);
                return 16 + self.push(value);
            }
        }
        16
    }

    /// Becomes able to take the value.
    fn widen(&mut self, value: ValueRef<'_>) {
        let nulls = match self {
            Self::Integers(values) if values.iter().all(Option::is_none) => Some(values.len()),
            _ => None,
        };
        *self = match (nulls, value) {
            (Some(nulls), ValueRef::Real(_)) => Self::Reals(vec![None; nulls]),
            (Some(nulls), ValueRef::Text(_)) => {
                let mut texts = StringBuilder::new();
                (0..nulls).for_each(|_| texts.append_null());
                Self::Texts(texts)
            }
            _ => Self::Mixed(std::mem::replace(self, Self::Mixed(Vec::new())).into_owned()),
        };
    }

    fn into_owned(self) -> Vec<Owned> {
        match self {
            Self::Integers(values) => {
                values.into_iter().map(|value| value.map_or(Owned::Null, Owned::Integer)).collect()
            }
            Self::Reals(values) => values.into_iter().map(|value| value.map_or(Owned::Null, Owned::Real)).collect(),
            Self::Texts(mut texts) => texts
                .finish()
                .iter()
                .map(|text| text.map_or(Owned::Null, |text| Owned::Text(text.to_owned())))
                .collect(),
            Self::Mixed(values) => values,
        }
    }

    /// Whether all values, known to be integers, have a place in the declared type.
    fn fits(&self, kind: Kind) -> bool {
        let is_fit = |value: i64| match kind {
            Kind::Bool => matches!(value, 0 | 1),
            Kind::I8 => i8::try_from(value).is_ok(),
            Kind::I16 => i16::try_from(value).is_ok(),
            Kind::I32 => i32::try_from(value).is_ok(),
            Kind::U8 => u8::try_from(value).is_ok(),
            Kind::U16 => u16::try_from(value).is_ok(),
            Kind::U32 => u32::try_from(value).is_ok(),
            Kind::U64 => value >= 0,
            Kind::I64 | Kind::Time => true,
            Kind::F32 | Kind::F64 | Kind::Text | Kind::Hex | Kind::Json => false,
        };
        match self {
            Self::Integers(values) => values.iter().flatten().all(|value| is_fit(*value)),
            _ => false,
        }
    }

    fn is_exact_in_reals(&self) -> bool {
        let is_exact = |value: i64| value.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS;
        match self {
            Self::Integers(values) => values.iter().flatten().all(|value| is_exact(*value)),
            Self::Mixed(values) => {
                values.iter().all(|value| if let Owned::Integer(value) = value { is_exact(*value) } else { true })
            }
            Self::Reals(_) | Self::Texts(_) => true,
        }
    }

    fn array(self, data_type: &DataType) -> ArrayRef {
        fn narrow<T: ArrowPrimitiveType>(run: Run) -> PrimitiveArray<T>
        where
            T::Native: TryFrom<i64>,
        {
            run.integers().map(|value| value.and_then(|value| T::Native::try_from(value).ok())).collect()
        }
        match data_type {
            DataType::Boolean => {
                Arc::new(self.integers().map(|value| value.map(|value| value != 0)).collect::<BooleanArray>())
            }
            DataType::Int8 => Arc::new(narrow::<Int8Type>(self)),
            DataType::Int16 => Arc::new(narrow::<Int16Type>(self)),
            DataType::Int32 => Arc::new(narrow::<Int32Type>(self)),
            DataType::UInt8 => Arc::new(narrow::<UInt8Type>(self)),
            DataType::UInt16 => Arc::new(narrow::<UInt16Type>(self)),
            DataType::UInt32 => Arc::new(narrow::<UInt32Type>(self)),
            DataType::UInt64 => Arc::new(narrow::<UInt64Type>(self)),
            DataType::Timestamp(_, _) => Arc::new(narrow::<TimestampNanosecondType>(self).with_timezone("UTC")),
            DataType::Float64 => Arc::new(Float64Array::from(self.reals())),
            DataType::Utf8 => Arc::new(self.texts()),
            _ => Arc::new(self.integers().collect::<Int64Array>()),
        }
    }

    fn integers(self) -> impl Iterator<Item = Option<i64>> {
        self.into_owned().into_iter().map(|value| if let Owned::Integer(number) = value { Some(number) } else { None })
    }

    fn reals(self) -> Vec<Option<f64>> {
        match self {
            Self::Reals(values) => values,
            other => other
                .into_owned()
                .into_iter()
                .map(|value| match value {
                    Owned::Real(number) => Some(number),
                    Owned::Integer(number) => Some(number as f64),
                    Owned::Null | Owned::Text(_) => None,
                })
                .collect(),
        }
    }

    fn texts(self) -> StringArray {
        match self {
            Self::Texts(mut texts) => texts.finish(),
            other => other
                .into_owned()
                .into_iter()
                .map(|value| match value {
                    Owned::Null => None,
                    Owned::Integer(number) => Some(number.to_string()),
                    Owned::Real(number) => Some(format!("{number:?}")),
                    Owned::Text(text) => Some(text),
                })
                .collect(),
        }
    }
}

/// Blobs come as SQL writes them: `x'0aff'`.
fn owned(value: ValueRef<'_>) -> Owned {
    match value {
        ValueRef::Null => Owned::Null,
        ValueRef::Integer(number) => Owned::Integer(number),
        ValueRef::Real(number) => Owned::Real(number),
        ValueRef::Text(text) => Owned::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Owned::Text(format!("x'{digits}'"))
        }
    }
}

fn arrow_type(kind: Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::I8 => DataType::Int8,
        Kind::I16 => DataType::Int16,
        Kind::I32 => DataType::Int32,
        Kind::I64 => DataType::Int64,
        Kind::U8 => DataType::UInt8,
        Kind::U16 => DataType::UInt16,
        Kind::U32 => DataType::UInt32,
        Kind::U64 => DataType::UInt64,
        Kind::F32 | Kind::F64 => DataType::Float64,
        Kind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Kind::Text | Kind::Hex | Kind::Json => DataType::Utf8,
    }
}
