//! A table as queries read it: columns by number, rows by number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_schema::SchemaRef;

use super::column::{Column, Kind};
use super::guard::Guard;
use super::index::{Facts, Index};
use super::source::Part;
use crate::error::Error;
use crate::open::TableData;

/// Rows between two looks at whether the query shall stop.
const LOOK_ROWS: usize = 8_192;

/// Where a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub batch: usize,
    pub row: usize,
}

/// A table with its columns resolved.
pub(super) struct Table {
    pub data: Arc<TableData>,
    /// By number in the whole schema; `None` where the column was not read.
    columns: Vec<Option<Held>>,
    /// First row of each batch, and the number of rows.
    starts: Vec<usize>,
    /// Rows of the first batch, which most others have too.
    step: usize,
    sorted: Mutex<HashMap<Vec<usize>, bool>>,
}

struct Held {
    column: Column,
    facts: Facts,
}

impl Table {
    pub fn new(name: &str, schema: &SchemaRef, data: Arc<TableData>) -> Result<Self, Error> {
        let mut starts = vec![0];
        let mut rows = 0;
        for batch in &data.batches {
            rows += batch.num_rows();
            starts.push(rows);
        }
        let held = |field: &arrow_schema::FieldRef| {
            let Some((at, _)) = data.schema.column_with_name(field.name()) else { return Ok(None) };
            let arrays = data.batches.iter().filter_map(|batch| batch.columns().get(at));
            let column = Kind::of(field.name(), field.data_type()).and_then(|kind| Column::new(kind, arrays));
            let held = column.map(|column| Held { column, facts: Facts::default() });
            let (field, kind) = (field.name(), field.data_type());
            let refused =
                || Error::Usage(format!("column {field} of table {name} cannot be queried: its type is {kind}"));
            held.map(Some).ok_or_else(refused)
        };
        let columns = schema.fields().iter().map(held).collect::<Result<_, _>>()?;
        let step = data.batches.first().map_or(0, |batch| batch.num_rows());
        Ok(Self { data, columns, starts, step, sorted: Mutex::default() })
    }

    pub fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    #[inline]
    pub fn column(&self, at: usize) -> Option<&Column> {
        self.columns.get(at)?.as_ref().map(|held| &held.column)
    }

    pub fn index(&self, column: usize, guard: &Guard) -> Option<Arc<Index>> {
        let held = self.columns.get(column)?.as_ref()?;
        held.facts.index(&held.column, self, guard)
    }

    pub fn rows_per_value(&self, column: usize) -> f64 {
        let held = self.columns.get(column).and_then(Option::as_ref);
        held.map_or(1.0, |held| held.facts.rows_per_value(&held.column, self))
    }

    /// Whether the column is one of integers that SQLite can hold, so that comparing as integers is right.
    pub fn fits_integers(&self, column: usize) -> bool {
        let held = self.columns.get(column).and_then(Option::as_ref);
        held.is_some_and(|held| held.column.kind.is_integer() && held.facts.fits_integers(&held.column))
    }

    /// Where a row is. Rows past the end are in a batch past the end.
    #[inline]
    pub fn place(&self, row: usize) -> Place {
        let guess = row.checked_div(self.step).unwrap_or(0);
        let is_in = |batch: usize| {
            let (start, end) = (self.starts.get(batch), self.starts.get(batch + 1));
            start.zip(end).is_some_and(|(start, end)| *start <= row && row < *end)
        };
        let batch =
            if is_in(guess) { guess } else { self.starts.partition_point(|start| *start <= row).saturating_sub(1) };
        Place { batch, row: row - self.starts.get(batch).copied().unwrap_or(0) }
    }

    #[inline]
    pub fn batch_rows(&self, batch: usize) -> usize {
        self.data.batches.get(batch).map_or(0, |batch| batch.num_rows())
    }

    /// Calls with every row; `None` where the query was stopped before the end.
    pub fn each_row(&self, guard: &Guard, mut call: impl FnMut(u32, Place)) -> Option<()> {
        let mut row = 0_u32;
        for (batch, rows) in self.data.batches.iter().map(|batch| batch.num_rows()).enumerate() {
            for at in 0..rows {
                if at % LOOK_ROWS == 0 && guard.is_stopped() {
                    return None;
                }
                call(row, Place { batch, row: at });
                row = row.wrapping_add(1);
            }
        }
        Some(())
    }

    /// Whether the rows are in the order of these columns already, all of them integers without nulls. No column at all
    /// stands for the row number.
    pub fn is_sorted_by(&self, columns: &[usize]) -> bool {
        if columns.is_empty() {
            return true;
        }
        if let Some(known) = self.sorted.lock().unwrap_or_else(PoisonError::into_inner).get(columns) {
            return *known;
        }
        let held: Option<Vec<&Column>> = columns.iter().map(|at| self.column(*at)).collect();
        let is_sorted = held.is_some_and(|columns| self.goes_up(&columns));
        self.sorted.lock().unwrap_or_else(PoisonError::into_inner).insert(columns.to_vec(), is_sorted);
        is_sorted
    }

    fn goes_up(&self, columns: &[&Column]) -> bool {
        let mut last: Vec<i64> = vec![i64::MIN; columns.len()];
        for batch in 0..self.data.batches.len() {
            for row in 0..self.batch_rows(batch) {
                let mut is_later = false;
                for (column, last) in columns.iter().zip(&mut last) {
                    let Some(value) = column.integer(batch, row) else { return false };
                    if !is_later && value < *last {
                        return false;
                    }
                    is_later |= value > *last;
                    *last = value;
                }
            }
        }
        true
    }

    /// The first row whose value in a sorted column is not below the bound.
    pub fn first_from(&self, column: usize, bound: i64) -> usize {
        let Some(column) = self.column(column) else { return 0 };
        let (mut low, mut high) = (0, self.rows());
        while low < high {
            let middle = low + (high - low) / 2;
            let place = self.place(middle);
            if column.integer(place.batch, place.row).is_some_and(|value| value < bound) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A table that a query may name: its columns now, its rows once they are read.
pub(super) struct Slot {
    pub name: String,
    pub schema: SchemaRef,
    pub table: OnceLock<Arc<Table>>,
    /// Which rows are enough for all uses of the table in the query.
    pub enough: Mutex<Enough>,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Enough {
    #[default]
    NotUsed,
    Some(Part),
    All,
}

impl Slot {
    /// Notes that the query uses the table, and what is enough there. SQLite may ask several times for one use, so that equal
    /// answers may be of one use or of several.
    pub fn note_use(&self, part: Option<Part>) {
        let mut enough = self.enough.lock().unwrap_or_else(PoisonError::into_inner);
        *enough = match (std::mem::take(&mut *enough), part) {
            (Enough::NotUsed, Some(part)) => Enough::Some(part),
            (Enough::Some(Part::First(most)), Some(Part::First(rows))) => Enough::Some(Part::First(most.max(rows))),
            (Enough::Some(before), Some(part)) if before == part => Enough::Some(part),
            _ => Enough::All,
        };
    }

    /// What is enough, if that is less than all.
    pub fn enough(&self) -> Option<Part> {
        match &*self.enough.lock().unwrap_or_else(PoisonError::into_inner) {
            Enough::Some(part) => Some(part.clone()),
            Enough::NotUsed | Enough::All => None,
        }
    }
}
