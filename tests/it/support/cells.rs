//! Reads any cell of any table, whatever its Arrow type.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// Numbers, and times as nanoseconds.
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Value>),
}

impl Value {
    pub fn int(&self) -> Option<i128> {
        if let Self::Int(value) = self { Some(*value) } else { None }
    }

    pub fn text(&self) -> Option<&str> {
        if let Self::Text(value) = self { Some(value) } else { None }
    }
}

/// The cells of a column over all batches.
pub fn column(batches: &[RecordBatch], name: &str) -> Vec<Value> {
    let mut values = Vec::new();
    for batch in batches {
        let array = batch.column_by_name(name).unwrap_or_else(|| panic!("there is no column {name}"));
        values.extend((0..array.len()).map(|row| value(array, row)));
    }
    values
}

/// A column of numbers without gaps.
pub fn ints(batches: &[RecordBatch], name: &str) -> Vec<i128> {
    column(batches, name).iter().map(|value| value.int().unwrap_or_else(|| panic!("{name} holds {value:?}"))).collect()
}

pub fn texts(batches: &[RecordBatch], name: &str) -> Vec<String> {
    let text = |value: &Value| value.text().unwrap_or_else(|| panic!("{name} holds {value:?}")).to_owned();
    column(batches, name).iter().map(text).collect()
}

/// Each row as one line of `column=value`.
pub fn rows_as_text(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let cells = schema.fields().iter().zip(batch.columns());
            let cells: Vec<_> =
                cells.map(|(field, array)| format!("{}={:?}", field.name(), value(array, row))).collect();
            lines.push(cells.join(" "));
        }
    }
    lines
}

pub fn value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    fn int<A: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> Value
    where
        A::Native: Into<i128>,
    {
        Value::Int(array.as_primitive::<A>().value(row).into())
    }
    match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::UInt8 => int::<UInt8Type>(array, row),
        DataType::UInt16 => int::<UInt16Type>(array, row),
        DataType::UInt32 => int::<UInt32Type>(array, row),
        DataType::UInt64 => int::<UInt64Type>(array, row),
        DataType::Int32 => int::<Int32Type>(array, row),
        DataType::Int64 => int::<Int64Type>(array, row),
        DataType::Timestamp(_, _) => int::<TimestampNanosecondType>(array, row),
        DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let key = usize::try_from(dictionary.keys().value(row)).expect("a key of the dictionary");
            value(dictionary.values(), key)
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Value::List((0..items.len()).map(|item| value(&items, item)).collect())
        }
        DataType::Struct(_) => {
            let fields = array.as_struct().columns();
            Value::List(fields.iter().map(|field| value(field, row)).collect())
        }
        other => panic!("no test reads columns of type {other} yet"),
    }
}
