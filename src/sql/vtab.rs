//! The virtual table: which look-ups a query can be answered with, and the cursor that goes through the rows. The one place
//! of this folder that is unsafe.
#![allow(unsafe_code, reason = "SQLite hands the two structures back by the address of their first field")]

use std::borrow::Cow;
use std::cell::Cell as Kept;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::ops::Range;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::vtab::{
    Context, CreateVTab, Filters, IndexConstraintOp, IndexFlags, IndexInfo, Module, VTab, VTabConnection, VTabCursor,
    VTabKind, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use super::column::{Cell, Kind};
use super::guard::Guard;
use super::index::Index;
use super::part::part;
use super::plan::{Bound, Path, Plan, Probe, integer_probe, range_of, text_probe};
use super::table::{Place, Slot, Table};

/// Name of the module, as in `CREATE VIRTUAL TABLE ... USING wirelab`.
pub(super) const MODULE: &str = "wirelab";
/// Rows that a comparison goes through between two looks at whether the query shall stop.
const LOOK_ROWS: usize = 8_192;
/// What a table is taken to hold before it is read.
const UNKNOWN_ROWS: usize = 1_000_000;
const UNKNOWN_ROWS_PER_VALUE: f64 = 100.0;

/// The tables by schema and name, and the guard of the query.
pub(super) struct Catalog {
    pub slots: HashMap<(String, String), Arc<Slot>>,
    pub guard: Arc<Guard>,
}

pub(super) fn register(connection: &Connection, catalog: Arc<Catalog>) -> Result<()> {
    const VTAB: Module<'static, ArrowTable> = Module::read_only_module();
    connection.create_module(MODULE, &VTAB, Some(catalog))
}

#[repr(C)]
pub(super) struct ArrowTable {
    base: sqlite3_vtab,
    slot: Arc<Slot>,
    guard: Arc<Guard>,
}

// SAFETY: `repr(C)` with the base first.
unsafe impl VTab<'_> for ArrowTable {
    type Aux = Arc<Catalog>;
    type Cursor = Cursor;

    fn connect(
        _: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _: &[u8],
        schema: &[u8],
        name: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (schema, name) = (text(schema), text(name));
        let found = aux.and_then(|catalog| Some((catalog.slots.get(&(schema, name))?, &catalog.guard)));
        let (slot, guard) = found.ok_or_else(|| failure("no such table of the catalogue"))?;
        let columns: Vec<_> = slot
            .schema
            .fields()
            .iter()
            .map(|field| {
                let declared = Kind::of(field.name(), field.data_type()).map_or("TEXT", Kind::declared);
                format!("{} {declared}", quoted(field.name()))
            })
            .collect();
        let declaration = CString::new(format!("CREATE TABLE x({})", columns.join(", ")))?;
        let table = Self { base: sqlite3_vtab::default(), slot: Arc::clone(slot), guard: Arc::clone(guard) };
        Ok((Cow::Owned(declaration), table))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let table = self.slot.table.get().map(Arc::as_ref);
        if table.is_none() {
            self.slot.note_use(part(info, &self.slot.schema)?);
        }
        let rows = table.map_or(UNKNOWN_ROWS, Table::rows) as f64;
        let choice = self.choose(info, table, rows)?;
        // SQLite wants the values numbered from 1 in the order of their use.
        for (at, (constraint, can_omit)) in choice.constraints.iter().enumerate() {
            let mut usage = info.constraint_usage(*constraint);
            usage.set_argv_index(at as c_int + 1);
            usage.set_omit(*can_omit);
        }
        let (is_ordered, is_backward) = self.order(info, table, &choice.path);
        info.set_order_by_consumed(is_ordered);
        let plan = Plan { path: choice.path, is_backward };
        info.set_idx_num(plan.to_number());
        info.set_idx_str(&plan.describe(&self.slot.schema));
        info.set_estimated_rows(choice.rows.max(1.0) as i64);
        info.set_estimated_cost(choice.cost);
        if choice.path == Path::Row {
            info.set_idx_flags(IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
        }
        Ok(true)
    }

    fn open(&mut self) -> Result<Cursor> {
        let table = self.slot.table.get().ok_or_else(|| failure("the rows of a table were not read"))?;
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            table: Arc::clone(table),
            guard: Arc::clone(&self.guard),
            walk: Walk::Rows(0..0),
            is_backward: false,
            row: 0,
            is_end: true,
            placed: Kept::new((0, table.place(0))),
        })
    }
}

impl CreateVTab<'_> for ArrowTable {
    const KIND: VTabKind = VTabKind::Default;
}

/// A way to the rows, with what SQLite must hand over for it.
struct Choice {
    path: Path,
    /// Constraints by number, and whether SQLite may leave out its own comparison.
    constraints: Vec<(usize, bool)>,
    rows: f64,
    cost: f64,
}

/// The bounds that a query sets to a column, each with the number of its constraint.
struct Bounds {
    column: usize,
    low: Option<(usize, Bound)>,
    high: Option<(usize, Bound)>,
}

impl ArrowTable {
    /// The way that leads to the fewest rows.
    fn choose(&self, info: &IndexInfo, table: Option<&Table>, rows: f64) -> Result<Choice> {
        let mut best = Choice { path: Path::All, constraints: Vec::new(), rows, cost: rows + 1.0 };
        let mut ranges: Vec<Bounds> = Vec::new();
        for (at, constraint) in info.constraints().enumerate().filter(|(_, constraint)| constraint.is_usable()) {
            let operator = constraint.operator();
            let Ok(column) = usize::try_from(constraint.column()) else {
                if operator == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ {
                    let path = Path::Row;
                    return Ok(Choice { path, constraints: vec![(at, true)], rows: 1.0, cost: 1.0 });
                }
                continue;
            };
            let Some(kind) = self.slot.schema.fields().get(column).and_then(|f| Kind::of(f.name(), f.data_type()))
            else {
                continue;
            };
            let (is_low, bound) = match operator {
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => {
                    let is_integer = kind.is_integer() && table.is_none_or(|table| table.fits_integers(column));
                    // Texts are found byte by byte; under another collation there would be more of them.
                    let is_text = kind.is_plain_text() && info.collation(at)? == "BINARY";
                    if is_integer || is_text {
                        let found = table.map_or(UNKNOWN_ROWS_PER_VALUE, |table| table.rows_per_value(column));
                        if found < best.rows || best.path == Path::All {
                            let path = Path::Equal { column };
                            // Comparing texts again costs little, and what is compared with may be no text.
                            best = Choice { path, constraints: vec![(at, is_integer)], rows: found, cost: found + 3.0 };
                        }
                    }
                    continue;
                }
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => (true, Bound::Included),
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => (true, Bound::Excluded),
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => (false, Bound::Included),
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => (false, Bound::Excluded),
                _ => continue,
            };
            if !self.has_ranges(table, column, kind) {
                continue;
            }
            if !ranges.iter().any(|range| range.column == column) {
                ranges.push(Bounds { column, low: None, high: None });
            }
            if let Some(range) = ranges.iter_mut().find(|range| range.column == column) {
                let side = if is_low { &mut range.low } else { &mut range.high };
                side.get_or_insert((at, bound));
            }
        }
        for Bounds { column, low, high } in ranges {
            let found = if low.is_some() && high.is_some() { rows / 16.0 } else { rows / 4.0 };
            if found < best.rows {
                let path = Path::Range { column, low: low.map(|low| low.1), high: high.map(|high| high.1) };
                let constraints = [low, high].into_iter().flatten().map(|(at, _)| (at, false)).collect();
                best = Choice { path, constraints, rows: found, cost: found + 3.0 };
            }
        }
        Ok(best)
    }

    /// Ranges are offered where they need no index, and on what people ask for by range.
    fn has_ranges(&self, table: Option<&Table>, column: usize, kind: Kind) -> bool {
        let name = self.slot.schema.fields().get(column).map_or("", |field| field.name());
        let is_usual = kind == Kind::Time || matches!(name, "frame_no" | "time_rel_ns");
        kind.is_integer()
            && table.is_none_or(|table| table.is_sorted_by(&[column]) || (is_usual && table.fits_integers(column)))
    }

    /// Whether the rows come in the order asked for by themselves, and whether backwards.
    fn order(&self, info: &IndexInfo, table: Option<&Table>, path: &Path) -> (bool, bool) {
        let Some(table) = table else { return (false, false) };
        let mut columns = Vec::new();
        let mut is_backward = None;
        for term in info.order_bys() {
            if *is_backward.get_or_insert(term.is_order_by_desc()) != term.is_order_by_desc() {
                return (false, false);
            }
            match usize::try_from(term.column()) {
                Ok(column) => columns.push(column),
                // The row number settles the order: whatever comes after it does not matter.
                Err(_) => break,
            }
        }
        let Some(is_backward) = is_backward else { return (false, false) };
        // Look-ups give rows in their own order, but for ranges of a column whose values do not rise with it.
        let is_in_row_order = match path {
            Path::Range { column, .. } => table.is_sorted_by(&[*column]),
            Path::All | Path::Row | Path::Equal { .. } => true,
        };
        // Where the columns tie, the rows are in the order of their numbers, forwards or backwards as all the rest.
        let is_ordered = is_in_row_order && table.is_sorted_by(&columns);
        (is_ordered, is_ordered && is_backward)
    }
}

/// How a cursor goes on.
enum Walk {
    /// All rows from here to there.
    Rows(Range<usize>),
    /// Entries of an index.
    Picked { index: Arc<Index>, entries: Range<usize> },
    /// The rows that have the value, found by looking at each.
    Matching { column: usize, rows: Range<usize>, probe: Probe },
    /// The rows whose value is in the range, found by looking at each.
    Within { column: usize, rows: Range<usize>, range: (i64, i64) },
}

#[repr(C)]
pub(super) struct Cursor {
    base: sqlite3_vtab_cursor,
    table: Arc<Table>,
    guard: Arc<Guard>,
    walk: Walk,
    is_backward: bool,
    /// Number of the current row.
    row: usize,
    is_end: bool,
    /// The row whose place was found last, and that place: many queries count rows and never look at them.
    placed: Kept<(usize, Place)>,
}

// SAFETY: `repr(C)` with the base first.
unsafe impl VTabCursor for Cursor {
    fn filter(&mut self, number: c_int, _: Option<&str>, values: &Filters<'_>) -> Result<()> {
        let plan = Plan::from_number(number);
        self.is_backward = plan.is_backward;
        self.is_end = false;
        self.walk = self.start(&plan.path, values);
        self.advance()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.advance()
    }

    fn eof(&self) -> bool {
        self.is_end
    }

    fn column(&self, context: &mut Context, at: c_int) -> Result<()> {
        let column = usize::try_from(at).ok().and_then(|at| self.table.column(at));
        let Some(column) = column else { return Err(failure("a column was not read")) };
        let place = self.place();
        match column.cell(place.batch, place.row) {
            Cell::Null => Ok(()),
            Cell::Integer(number) => context.set_result(number),
            Cell::Real(number) => context.set_result(number),
            Cell::Text(text) => context.set_result(text.as_ref()),
        }
    }

    fn rowid(&self) -> Result<i64> {
        // Counted from 1, as SQLite does.
        Ok(i64::try_from(self.row).unwrap_or(i64::MAX).saturating_add(1))
    }
}

impl Cursor {
    fn start(&self, path: &Path, values: &Filters<'_>) -> Walk {
        let rows = self.table.rows();
        let mut values = values.iter();
        match *path {
            Path::All => Walk::Rows(0..rows),
            Path::Row => match values.next().map(integer_probe) {
                Some(Probe::Integer(number)) => {
                    let row = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                    Walk::Rows(row.filter(|row| *row < rows).map_or(0..0, |row| row..row + 1))
                }
                _ => Walk::Rows(0..0),
            },
            Path::Equal { column } => {
                let is_integer = self.table.column(column).is_some_and(|column| column.kind.is_integer());
                let value = values.next().unwrap_or(ValueRef::Null);
                let probe = if is_integer { integer_probe(value) } else { text_probe(value) };
                self.matching(column, probe)
            }
            Path::Range { column, low, high } => {
                let mut given = |bound: Option<Bound>| bound.and_then(|bound| Some((bound, values.next()?)));
                let (low, high) = (given(low), given(high));
                self.within(column, range_of(low, high))
            }
        }
    }

    fn matching(&self, column: usize, probe: Probe) -> Walk {
        let rows = 0..self.table.rows();
        match probe {
            Probe::Nothing => return Walk::Rows(0..0),
            Probe::Anything => return Walk::Rows(rows),
            Probe::Integer(_) | Probe::Text(_) => {}
        }
        let Some(index) = self.table.index(column, &self.guard) else { return Walk::Matching { column, rows, probe } };
        let entries = match &probe {
            Probe::Integer(number) => index.integers(*number, *number),
            Probe::Text(text) => index.text(text),
            _ => 0..0,
        };
        Walk::Picked { index, entries }
    }

    fn within(&self, column: usize, range: (i64, i64)) -> Walk {
        let (low, high) = range;
        if low > high {
            return Walk::Rows(0..0);
        }
        if self.table.is_sorted_by(&[column]) {
            let first = self.table.first_from(column, low);
            let end = high.checked_add(1).map_or(self.table.rows(), |end| self.table.first_from(column, end));
            return Walk::Rows(first..end.max(first));
        }
        match self.table.index(column, &self.guard) {
            Some(index) => {
                let entries = index.integers(low, high);
                Walk::Picked { index, entries }
            }
            None => Walk::Within { column, rows: 0..self.table.rows(), range },
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let is_backward = self.is_backward;
        let (column, mut rows) = match &mut self.walk {
            Walk::Rows(rows) => {
                let row = step(rows, is_backward);
                self.go_to(row);
                return Ok(());
            }
            Walk::Picked { index, entries } => {
                let row = step(entries, is_backward).and_then(|entry| index.row(entry));
                self.go_to(row);
                return Ok(());
            }
            Walk::Matching { column, rows, .. } | Walk::Within { column, rows, .. } => (*column, rows.clone()),
        };
        let table = Arc::clone(&self.table);
        let column = table.column(column).ok_or_else(|| failure("a column was not read"))?;
        loop {
            let row = step(&mut rows, is_backward);
            self.go_to(row);
            let Some(row) = row else { break };
            if row % LOOK_ROWS == 0 && self.guard.is_stopped() {
                return Err(interrupted());
            }
            let is_found = match &self.walk {
                Walk::Matching { probe, .. } => probe.matches(column, self.place()),
                Walk::Within { range: (low, high), .. } => {
                    let place = self.place();
                    column.integer(place.batch, place.row).is_some_and(|value| *low <= value && value <= *high)
                }
                Walk::Rows(_) | Walk::Picked { .. } => true,
            };
            if is_found {
                break;
            }
        }
        if let Walk::Matching { rows: left, .. } | Walk::Within { rows: left, .. } = &mut self.walk {
            *left = rows;
        }
        Ok(())
    }

    /// Makes a row the current one.
    #[inline]
    fn go_to(&mut self, row: Option<usize>) {
        match row {
            Some(row) => self.row = row,
            None => self.is_end = true,
        }
    }

    /// Where the current row is.
    #[inline]
    fn place(&self) -> Place {
        let (row, place) = self.placed.get();
        if row == self.row {
            return place;
        }
        let is_next = self.row == row.wrapping_add(1) && place.row + 1 < self.table.batch_rows(place.batch);
        let found = if is_next { Place { row: place.row + 1, ..place } } else { self.table.place(self.row) };
        self.placed.set((self.row, found));
        found
    }
}

#[inline]
fn step(range: &mut Range<usize>, is_backward: bool) -> Option<usize> {
    if is_backward { range.next_back() } else { range.next() }
}

/// A name as SQL quotes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn failure(message: &str) -> Error {
    Error::ModuleError(message.to_owned())
}

fn interrupted() -> Error {
    Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT), None)
}
