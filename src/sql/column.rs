//! Arrow columns as SQLite sees them: resolved to a type once per table, then read cell by cell. Nothing here panics,
//! since a panic inside a callback of a virtual table ends the process.

use std::borrow::Cow;
use std::fmt::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Int32Array, LargeStringArray, PrimitiveArray, StringArray,
};
use arrow_schema::{DataType, TimeUnit};

/// 64-bit header fields: addresses and operands, not quantities. They may be above SQLite's signed range, so they are text
/// of fixed width, which compares as the numbers do.
const HEX_COLUMNS: [&str; 4] = ["va", "swap_or_add", "compare", "original_value"];

/// What a column is in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Time,
    Text,
    Hex,
    Json,
}

impl Kind {
    /// All kinds by the type name that a column is declared with. SQLite makes an affinity of the name: what holds `INT` is
    /// an integer, else what holds `TEXT` is text, `FLOA` a real.
    const DECLARED: [(Self, &'static str); 15] = [
        (Self::Bool, "BOOLEAN_INT"),
        (Self::I8, "INT8"),
        (Self::I16, "INT16"),
        (Self::I32, "INT32"),
        (Self::I64, "INT64"),
        (Self::U8, "UINT8"),
        (Self::U16, "UINT16"),
        (Self::U32, "UINT32"),
        (Self::U64, "UINT64"),
        (Self::F32, "FLOAT32"),
        (Self::F64, "FLOAT64"),
        (Self::Time, "TIMESTAMP_NS_INT"),
        (Self::Text, "TEXT"),
        (Self::Hex, "HEX_TEXT"),
        (Self::Json, "JSON_TEXT"),
    ];

    /// `None` for a type that no table has.
    pub fn of(name: &str, data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Bool,
            DataType::Int8 => Self::I8,
            DataType::Int16 => Self::I16,
            DataType::Int32 => Self::I32,
            DataType::Int64 => Self::I64,
            DataType::UInt8 => Self::U8,
            DataType::UInt16 => Self::U16,
            DataType::UInt32 => Self::U32,
            DataType::UInt64 if HEX_COLUMNS.contains(&name) => Self::Hex,
            DataType::UInt64 => Self::U64,
            DataType::Float32 => Self::F32,
            DataType::Float64 => Self::F64,
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Self::Time,
            DataType::Utf8 | DataType::LargeUtf8 => Self::Text,
            DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8 => Self::Text,
            DataType::List(_) | DataType::Struct(_) => Self::Json,
            _ => return None,
        })
    }

    pub fn declared(self) -> &'static str {
        Self::DECLARED.iter().find(|(kind, _)| *kind == self).map_or("TEXT", |(_, name)| *name)
    }

    pub fn from_declared(name: &str) -> Option<Self> {
        Self::DECLARED.iter().find(|(_, declared)| *declared == name).map(|(kind, _)| *kind)
    }

    pub fn is_integer(self) -> bool {
        !matches!(self, Self::F32 | Self::F64 | Self::Text | Self::Hex | Self::Json)
    }

    /// Whether equality with a text is offered.
    pub fn is_plain_text(self) -> bool {
        matches!(self, Self::Text | Self::Hex)
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

/// A column's part in one batch.
enum Chunk {
    Bool(BooleanArray),
    I8(PrimitiveArray<Int8Type>),
    I16(PrimitiveArray<Int16Type>),
    I32(PrimitiveArray<Int32Type>),
    I64(PrimitiveArray<Int64Type>),
    U8(PrimitiveArray<UInt8Type>),
    U16(PrimitiveArray<UInt16Type>),
    U32(PrimitiveArray<UInt32Type>),
    U64(PrimitiveArray<UInt64Type>),
    F32(PrimitiveArray<Float32Type>),
    F64(PrimitiveArray<Float64Type>),
    Time(PrimitiveArray<TimestampNanosecondType>),
    Words(Int32Array, StringArray),
    Text(StringArray),
    LargeText(LargeStringArray),
    Json(ArrayRef),
}

/// A column over all batches of a table.
pub(super) struct Column {
    pub kind: Kind,
    chunks: Vec<Chunk>,
}

impl Column {
    /// `None` where a batch holds another type than the schema says.
    pub fn new<'a>(kind: Kind, arrays: impl Iterator<Item = &'a ArrayRef>) -> Option<Self> {
        let chunks = arrays.map(|array| chunk(array, kind)).collect::<Option<Vec<_>>>()?;
        Some(Self { kind, chunks })
    }

    /// The value at a row of a batch.
    #[inline]
    pub fn cell(&self, batch: usize, row: usize) -> Cell<'_> {
        let Some(chunk) = self.chunks.get(batch) else { return Cell::Null };
        match chunk {
            Chunk::F32(array) => value(array, row).map_or(Cell::Null, |real| Cell::Real(f64::from(real))),
            Chunk::F64(array) => value(array, row).map_or(Cell::Null, Cell::Real),
            Chunk::Words(keys, words) => word(keys, words, row).map_or(Cell::Null, |text| Cell::Text(text.into())),
            Chunk::Text(array) if is_there(array, row) => Cell::Text(array.value(row).into()),
            Chunk::LargeText(array) if is_there(array, row) => Cell::Text(array.value(row).into()),
            Chunk::Json(array) if is_there(array.as_ref(), row) => Cell::Text(json_text(array.as_ref(), row).into()),
            Chunk::Text(_) | Chunk::LargeText(_) | Chunk::Json(_) => Cell::Null,
            Chunk::U64(array) => match value(array, row) {
                None => Cell::Null,
                Some(bits) if self.kind == Kind::Hex => Cell::Text(hex_text(bits).into()),
                // A quantity this large is a fault of its source; as a negative number it would be a lie.
                Some(number) => {
                    i64::try_from(number).map_or_else(|_| Cell::Text(hex_text(number).into()), Cell::Integer)
                }
            },
            _ => self.integer(batch, row).map_or(Cell::Null, Cell::Integer),
        }
    }

    /// The value of an integer column; `None` where it is null, or beyond SQLite's integers.
    #[inline]
    pub fn integer(&self, batch: usize, row: usize) -> Option<i64> {
        match self.chunks.get(batch)? {
            Chunk::U64(array) => value(array, row).and_then(|number| i64::try_from(number).ok()),
            Chunk::U32(array) => value(array, row).map(i64::from),
            Chunk::Time(array) => value(array, row),
            Chunk::I64(array) => value(array, row),
            Chunk::U16(array) => value(array, row).map(i64::from),
            Chunk::U8(array) => value(array, row).map(i64::from),
            Chunk::Bool(array) => is_there(array, row).then(|| i64::from(array.value(row))),
            Chunk::I32(array) => value(array, row).map(i64::from),
            Chunk::I16(array) => value(array, row).map(i64::from),
            Chunk::I8(array) => value(array, row).map(i64::from),
            _ => None,
        }
    }

    /// The value of a text column.
    #[inline]
    pub fn text(&self, batch: usize, row: usize) -> Option<Cow<'_, str>> {
        match self.cell(batch, row) {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether every value that is there is one of SQLite's integers.
    pub fn fits_integers(&self) -> bool {
        self.chunks.iter().all(|chunk| match chunk {
            Chunk::U64(array) => array.iter().flatten().all(|number| i64::try_from(number).is_ok()),
            _ => true,
        })
    }
}

fn chunk(array: &ArrayRef, kind: Kind) -> Option<Chunk> {
    fn of<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<PrimitiveArray<T>> {
        array.as_primitive_opt::<T>().cloned()
    }
    Some(match kind {
        Kind::Bool => Chunk::Bool(array.as_boolean_opt()?.clone()),
        Kind::I8 => Chunk::I8(of(array)?),
        Kind::I16 => Chunk::I16(of(array)?),
        Kind::I32 => Chunk::I32(of(array)?),
        Kind::I64 => Chunk::I64(of(array)?),
        Kind::U8 => Chunk::U8(of(array)?),
        Kind::U16 => Chunk::U16(of(array)?),
        Kind::U32 => Chunk::U32(of(array)?),
        Kind::U64 | Kind::Hex => Chunk::U64(of(array)?),
        Kind::F32 => Chunk::F32(of(array)?),
        Kind::F64 => Chunk::F64(of(array)?),
        Kind::Time => Chunk::Time(of(array)?),
        Kind::Text => match array.data_type() {
            DataType::Utf8 => Chunk::Text(array.as_string_opt::<i32>()?.clone()),
            DataType::LargeUtf8 => Chunk::LargeText(array.as_string_opt::<i64>()?.clone()),
            _ => {
                let words = array.as_dictionary_opt::<Int32Type>()?;
                Chunk::Words(words.keys().clone(), words.values().as_string_opt::<i32>()?.clone())
            }
        },
        Kind::Json => Chunk::Json(array.clone()),
    })
}

#[inline]
fn is_there(array: &dyn Array, row: usize) -> bool {
    row < array.len() && array.is_valid(row)
}

#[inline]
fn value<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    let value = array.values().get(row).copied()?;
    array.is_valid(row).then_some(value)
}

#[inline]
fn word<'a>(keys: &Int32Array, words: &'a StringArray, row: usize) -> Option<&'a str> {
    let key = usize::try_from(value(keys, row)?).ok()?;
    is_there(words, key).then(|| words.value(key))
}

/// Sixteen digits, so that texts compare as the numbers do.
pub(super) fn hex_text(bits: u64) -> String {
    format!("0x{bits:016x}")
}

/// A value as JSON: lists as arrays, structs as objects.
fn json_text(array: &dyn Array, row: usize) -> String {
    let mut text = String::new();
    write_json(array, row, &mut text);
    text
}

fn write_json(array: &dyn Array, row: usize, out: &mut String) {
    macro_rules! number {
        ($($kind:pat => $arrow:ty),*) => {
            match array.data_type() {
                $($kind => {
                    if let Some(number) = array.as_primitive_opt::<$arrow>().and_then(|array| value(array, row)) {
                        // Writing to a string does not fail.
                        let _ = write!(out, "{number}");
                        return;
                    }
                })*
                _ => {}
            }
        };
    }
    if !is_there(array, row) {
        out.push_str("null");
        return;
    }
    number!(
        DataType::Int8 => Int8Type, DataType::Int16 => Int16Type, DataType::Int32 => Int32Type,
        DataType::Int64 => Int64Type, DataType::UInt8 => UInt8Type, DataType::UInt16 => UInt16Type,
        DataType::UInt32 => UInt32Type, DataType::UInt64 => UInt64Type,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => TimestampNanosecondType
    );
    match array.data_type() {
        DataType::List(_) => {
            let Some(lists) = array.as_list_opt::<i32>() else { return out.push_str("null") };
            let items = lists.value(row);
            out.push('[');
            for at in 0..items.len() {
                out.push_str(if at > 0 { "," } else { "" });
                write_json(items.as_ref(), at, out);
            }
            out.push(']');
        }
        DataType::Struct(fields) => {
            let Some(columns) = array.as_struct_opt().map(|array| array.columns()) else { return out.push_str("null") };
            out.push('{');
            for (at, (field, column)) in fields.iter().zip(columns).enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_text(field.name(), out);
                out.push(':');
                write_json(column.as_ref(), row, out);
            }
            out.push('}');
        }
        DataType::Boolean => {
            let is_true = array.as_boolean_opt().is_some_and(|array| array.value(row));
            out.push_str(if is_true { "true" } else { "false" });
        }
        DataType::Float64 => match array.as_primitive_opt::<Float64Type>().and_then(|array| value(array, row)) {
            Some(number) if number.is_finite() => {
                let _ = write!(out, "{number:?}");
            }
            _ => out.push_str("null"),
        },
        kind => match Kind::of("", kind).and_then(|kind| chunk(&array.slice(row, 1), kind)) {
            Some(chunk) => match (Column { kind: Kind::Text, chunks: vec![chunk] }).cell(0, 0) {
                Cell::Text(text) => write_text(&text, out),
                _ => out.push_str("null"),
            },
            None => out.push_str("null"),
        },
    }
}

fn write_text(text: &str, out: &mut String) {
    match serde_json::to_string(text) {
        Ok(quoted) => out.push_str(&quoted),
        Err(_) => out.push_str("null"),
    }
}
