//! Rows found by the value of a column. SQLite makes no index on virtual tables, so a join without one would be quadratic.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;

use super::column::{Cell, Column};
use super::guard::Guard;
use super::table::Table;

/// Rows that a distinct count is estimated from.
const SAMPLE_ROWS: usize = 1_024;

/// Rows in the order of a column's values; rows of the same value in their own order. Nulls are left out: no comparison
/// finds them.
pub(super) struct Index {
    by: By,
    rows: Vec<u32>,
}

enum By {
    /// Where the rows of each value from `least` on start; one more at the end.
    Dense {
        least: i64,
        starts: Vec<u32>,
    },
    /// The value of each entry of `rows`.
    Sorted(Vec<i64>),
    Texts(HashMap<String, Range<u32>>),
}

/// What is known of a column, found out when it is first asked.
#[derive(Default)]
pub(super) struct Facts {
    index: OnceLock<Option<Arc<Index>>>,
    probes: AtomicU32,
    rows_per_value: OnceLock<f64>,
    fits_integers: OnceLock<bool>,
}

impl Facts {
    /// The index, from the second time on: for a single look-up, going through the rows is cheaper. `None` also where the
    /// query was stopped meanwhile.
    pub fn index(&self, column: &Column, table: &Table, guard: &Guard) -> Option<Arc<Index>> {
        if let Some(index) = self.index.get() {
            return index.clone();
        }
        if self.probes.fetch_add(1, Ordering::Relaxed) == 0 {
            return None;
        }
        let index = Index::build(column, table, guard).map(Arc::new);
        if guard.is_stopped() {
            return None;
        }
        self.index.get_or_init(|| index).clone()
    }

    /// About how many rows have the same value.
    pub fn rows_per_value(&self, column: &Column, table: &Table) -> f64 {
        *self.rows_per_value.get_or_init(|| {
            let rows = table.rows();
            let step = (rows / SAMPLE_ROWS).max(1);
            let sample: Vec<_> = (0..rows).step_by(step).map(|row| table.place(row)).collect();
            let mut values: Vec<String> = sample
                .iter()
                .filter_map(|place| match column.cell(place.batch, place.row) {
                    Cell::Null => None,
                    Cell::Integer(number) => Some(number.to_string()),
                    Cell::Real(number) => Some(number.to_string()),
                    Cell::Text(text) => Some(text.into_owned()),
                })
                .collect();
            let found = values.len();
            values.sort_unstable();
            values.dedup();
            // Where a sample holds each value once, values are likely unique in the whole as well.
            if values.len() == found { 1.0 } else { rows as f64 / values.len().max(1) as f64 }
        })
    }

    /// Whether comparing as integers is right for every row.
    pub fn fits_integers(&self, column: &Column) -> bool {
        *self.fits_integers.get_or_init(|| column.fits_integers())
    }
}

impl Index {
    /// `None` where the table has too many rows, or the query was stopped.
    fn build(column: &Column, table: &Table, guard: &Guard) -> Option<Self> {
        u32::try_from(table.rows()).ok()?;
        if column.kind.is_integer() {
            Self::of_integers(column, table, guard)
        } else {
            Self::of_texts(column, table, guard)
        }
    }

    fn of_integers(column: &Column, table: &Table, guard: &Guard) -> Option<Self> {
        let mut pairs: Vec<(i64, u32)> = Vec::with_capacity(table.rows());
        let (mut least, mut most, mut is_sorted) = (i64::MAX, i64::MIN, true);
        table.each_row(guard, |row, place| {
            if let Some(value) = column.integer(place.batch, place.row) {
                is_sorted &= value >= most;
                (least, most) = (least.min(value), most.max(value));
                pairs.push((value, row));
            }
        })?;
        let span = most.checked_sub(least).and_then(|span| usize::try_from(span).ok()).unwrap_or(usize::MAX);
        if !pairs.is_empty() && span < pairs.len().saturating_mul(4).max(1_024) {
            return dense(least, span, &pairs);
        }
        if !is_sorted {
            pairs.sort_unstable();
        }
        let (keys, rows) = pairs.into_iter().unzip();
        Some(Self { by: By::Sorted(keys), rows })
    }

    fn of_texts(column: &Column, table: &Table, guard: &Guard) -> Option<Self> {
        let mut ids: HashMap<String, u32> = HashMap::new();
        let mut pairs: Vec<(i64, u32)> = Vec::with_capacity(table.rows());
        table.each_row(guard, |row, place| {
            if let Some(text) = column.text(place.batch, place.row) {
                let next = ids.len() as u32;
                let id = *ids.entry_ref(text.as_ref()).or_insert(next);
                pairs.push((i64::from(id), row));
            }
        })?;
        let Self { by: By::Dense { starts, .. }, rows } = dense(0, ids.len().saturating_sub(1), &pairs)? else {
            return None;
        };
        let range = |id: u32| starts.get(id as usize).copied().zip(starts.get(id as usize + 1).copied());
        let texts = ids.into_iter().filter_map(|(text, id)| range(id).map(|(from, to)| (text, from..to))).collect();
        Some(Self { by: By::Texts(texts), rows })
    }

    /// Where in [`Self::row`] the rows with values from `low` to `high` are, both included.
    pub fn integers(&self, low: i64, high: i64) -> Range<usize> {
        if low > high {
            return 0..0;
        }
        match &self.by {
            By::Dense { least, starts } => {
                let values = starts.len().saturating_sub(1);
                let at = |value: i64| {
                    // As far outside as it may be, the nearest end serves.
                    let at = i128::from(value) - i128::from(*least);
                    usize::try_from(at.max(0)).unwrap_or(usize::MAX).min(values)
                };
                let end = if high < *least { 0 } else { at(high).saturating_add(1).min(values) };
                let start = |at: usize| starts.get(at).map_or(self.rows.len(), |start| *start as usize);
                start(at(low))..start(end).max(start(at(low)))
            }
            By::Sorted(keys) => keys.partition_point(|key| *key < low)..keys.partition_point(|key| *key <= high),
            By::Texts(_) => 0..0,
        }
    }

    pub fn text(&self, text: &str) -> Range<usize> {
        match &self.by {
            By::Texts(texts) => texts.get(text).map_or(0..0, |range| range.start as usize..range.end as usize),
            _ => 0..0,
        }
    }

    #[inline]
    pub fn row(&self, at: usize) -> Option<usize> {
        self.rows.get(at).map(|row| *row as usize)
    }
}

/// A counting sort; `pairs` are in row order.
fn dense(least: i64, span: usize, pairs: &[(i64, u32)]) -> Option<Index> {
    let mut starts = vec![0_u32; span.checked_add(2)?];
    let slot = |value: i64| usize::try_from(value.wrapping_sub(least)).unwrap_or(usize::MAX);
    for (value, _) in pairs {
        *starts.get_mut(slot(*value).checked_add(1)?)? += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut next = starts.clone();
    let mut rows = vec![0_u32; pairs.len()];
    for (value, row) in pairs {
        let at = next.get_mut(slot(*value))?;
        *rows.get_mut(*at as usize)? = *row;
        *at += 1;
    }
    Some(Index { by: By::Dense { least, starts }, rows })
}
