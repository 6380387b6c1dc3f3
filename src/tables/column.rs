//! What every table has in common: its definition, and which columns are wanted.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::Error;
use crate::wire::Ip;

/// One column of a table.
#[derive(Clone, Debug)]
pub struct ColumnDef {
    pub name: &'static str,
    pub data_type: DataType,
    pub is_nullable: bool,
    /// Meaning and unit.
    pub doc: &'static str,
}

impl ColumnDef {
    /// The type as documentation names it, as `timestamp[ns, UTC]`.
    pub fn type_name(&self) -> String {
        type_name(&self.data_type)
    }
}

/// A table: its name, what a row is, and its columns.
#[derive(Clone, Debug)]
pub struct TableDef {
    pub name: &'static str,
    pub doc: &'static str,
    pub columns: Vec<ColumnDef>,
}

impl TableDef {
    pub fn schema(&self) -> SchemaRef {
        self.schema_of(&Projection::all(self.columns.len()))
    }

    pub fn schema_of(&self, projection: &Projection) -> SchemaRef {
        let wanted = projection.order.iter().filter_map(|at| self.columns.get(*at));
        let fields: Vec<_> = wanted.map(|c| Field::new(c.name, c.data_type.clone(), c.is_nullable)).collect();
        Arc::new(Schema::new(fields))
    }

    /// The columns named, in the order named; all of them for `None`.
    pub fn project(&self, names: Option<&[String]>) -> Result<Projection, Error> {
        let Some(names) = names else { return Ok(Projection::all(self.columns.len())) };
        let mut order = Vec::with_capacity(names.len());
        for name in names {
            let Some(at) = self.columns.iter().position(|column| column.name == name) else {
                let known: Vec<_> = self.columns.iter().map(|column| column.name).collect();
                let near = nearest(name, &known);
                return Err(Error::NoColumn { table: self.name, name: name.to_owned(), near });
            };
            if order.contains(&at) {
                return Err(Error::Usage(format!("column {name} is asked for twice")));
            }
            order.push(at);
        }
        Ok(Projection { order })
    }
}

/// A type as documentation names it.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Timestamp(_, _) => "timestamp[ns, UTC]".to_owned(),
        DataType::Dictionary(_, _) => "dictionary<int32, utf8>".to_owned(),
        DataType::List(item) => format!("list<{}>", type_name(item.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{}: {}", f.name(), type_name(f.data_type()))).collect();
            format!("struct<{}>", fields.join(", "))
        }
        other => other.to_string().to_lowercase(),
    }
}

/// The known word that `word` is most likely meant to be, if it is near.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &str| {
        // Levenshtein over one row.
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in word.bytes().enumerate() {
            let mut diagonal = row[0];
            row[0] = i + 1;
            for (j, b) in other.bytes().enumerate() {
                let above = row[j + 1];
                row[j + 1] = (diagonal + usize::from(a != b)).min(above + 1).min(row[j] + 1);
                diagonal = above;
            }
        }
        row[other.len()]
    };
    let (best, near) = known.iter().map(|other| (distance(other), *other)).min()?;
    (best <= 1 + word.len() / 3).then_some(near)
}

/// Which columns are wanted, and in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    order: Vec<usize>,
}

impl Projection {
    pub fn all(columns: usize) -> Self {
        Self { order: (0..columns).collect() }
    }

    pub fn has(&self, column: usize) -> bool {
        self.order.contains(&column)
    }

    /// Puts finished columns (by index of the definition) into a batch.
    pub(crate) fn batch(
        &self,
        schema: &SchemaRef,
        rows: usize,
        columns: Vec<Option<ArrayRef>>,
    ) -> Result<RecordBatch, Error> {
        let mut columns = columns;
        let arrays = self.order.iter().filter_map(|at| columns.get_mut(*at).and_then(Option::take)).collect();
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?)
    }
}

/// What filters look at in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowSubject {
    pub time_ns: Option<i64>,
    /// Addresses the row speaks of, none where it has fewer.
    pub ips: [Ip; 4],
    /// Likewise.
    pub ports: [Option<u16>; 4],
}

/// A row of a declared table.
pub(crate) trait TableRow: Sized + Send {
    type Builder: TableBuilder<Self>;
    fn definition() -> &'static TableDef;
    fn subject(&self) -> RowSubject;
}

/// Collects rows into columns.
pub(crate) trait TableBuilder<R>: Send {
    fn new(projection: &Projection, capacity: usize) -> Self;
    fn append(&mut self, rows: &[R]);
    fn rows(&self) -> usize;
    fn finish(self) -> Vec<Option<ArrayRef>>;
}
