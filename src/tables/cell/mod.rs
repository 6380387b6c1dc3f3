//! What a cell of a row may be, and how cells of each kind become an Arrow array.

mod bits;
mod distinct;
mod lists;
mod numbers;

pub(crate) use numbers::{BLOCK, YesNo};

use arrow_array::ArrayRef;
use arrow_schema::DataType;

/// A value that a column can hold.
pub(crate) trait Cell: Sized {
    type Builder: CellBuilder<Self>;
    const NULLABLE: bool;
    fn data_type() -> DataType;
}

/// Collects the cells of one column.
pub(crate) trait CellBuilder<T>: Send + Sized {
    fn with_capacity(rows: usize) -> Self;
    fn push(&mut self, value: &T);
    /// Adds the cells of several rows; fastest for at most [`BLOCK`] of them.
    #[inline]
    fn extend(&mut self, values: impl Iterator<Item = T>) {
        values.for_each(|value| self.push(&value));
    }
    fn finish(self) -> ArrayRef;
}

/// A column whose cells may be missing.
pub(crate) trait Gaps {
    /// Adds as many rows without a value.
    fn push_gaps(&mut self, rows: usize);
}

/// Capture time; the column's type is timestamp[ns, UTC].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeNs(pub i64);

/// One word of a fixed set, as a dictionary entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol(pub &'static str);

/// A set of named bits, shown as the names joined by commas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameSet {
    pub bits: u32,
    pub names: &'static [&'static str],
}

/// SACK blocks of a segment: up to four of left and right edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackList {
    pub blocks: [(u32, u32); 4],
    pub count: u8,
}

/// Frame numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameList(pub Vec<u64>);
