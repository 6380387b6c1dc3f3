//! Columns that are filled for several rows at a time.

use crate::tables::cell::{Cell, CellBuilder, Gaps};
use crate::wire::Ip;

/// Adds a cell for each item, where the column is asked for.
#[inline]
pub(super) fn fill<I, T: Cell>(items: &[I], column: &mut Option<T::Builder>, value: impl Fn(&I) -> T) {
    if let Some(column) = column {
        column.extend(items.iter().map(value));
    }
}

/// The same for a column of addresses, each with its number.
#[inline]
pub(super) fn fill_ips<I>(items: &[I], column: &mut Option<<Ip as Cell>::Builder>, value: impl Fn(&I) -> (u32, Ip)) {
    if let Some(column) = column {
        column.extend_numbered(items.iter().map(|item| {
            let (number, ip) = value(item);
            (number, (!ip.is_none()).then_some(ip))
        }));
    }
}

/// The same for a column that is empty but where `is_there`.
#[inline]
pub(super) fn rare<I, T: Cell<Builder: Gaps>>(
    items: &[I],
    column: &mut Option<T::Builder>,
    is_there: bool,
    value: impl Fn(&I) -> T,
) {
    if is_there {
        fill(items, column, value);
    } else if let Some(column) = column {
        column.push_gaps(items.len());
    }
}
