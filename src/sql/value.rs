//! Values that go into a query and come out of one.

use super::column::{Cell, Column, Kind};
use crate::open::TableData;

/// A value bound to a `:name` in a query, or read from a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

/// A small table as plain values.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// The values of a row by the name of the column.
    pub fn get(&self, row: usize, column: &str) -> Option<&Value> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.rows.get(row)?.get(at)
    }
}

/// A table as plain values, as SQL sees them: times as nanoseconds, booleans as 0 and 1, lists as JSON.
pub fn rows(data: &TableData) -> Rows {
    let fields = data.schema.fields();
    let columns: Vec<_> = fields
        .iter()
        .enumerate()
        .map(|(at, field)| {
            let arrays = data.batches.iter().filter_map(|batch| batch.columns().get(at));
            Kind::of(field.name(), field.data_type()).and_then(|kind| Column::new(kind, arrays))
        })
        .collect();
    let value = |column: &Option<Column>, batch: usize, row: usize| match column {
        Some(column) => match column.cell(batch, row) {
            Cell::Null => Value::Null,
            Cell::Integer(number) => Value::Integer(number),
            Cell::Real(number) => Value::Real(number),
            Cell::Text(text) => Value::Text(text.into_owned()),
        },
        None => Value::Null,
    };
    let mut rows = Vec::with_capacity(data.num_rows());
    for (batch, of) in data.batches.iter().enumerate() {
        rows.extend((0..of.num_rows()).map(|row| columns.iter().map(|column| value(column, batch, row)).collect()));
    }
    Rows { columns: fields.iter().map(|field| field.name().clone()).collect(), rows }
}
