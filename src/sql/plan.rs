//! How a query looks rows up, and what it looks for. SQLite hands over values as the query has them: the comparisons here
//! convert them as SQLite's own would.

use arrow_schema::Schema;
use rusqlite::types::ValueRef;

use super::column::Column;
use super::table::Place;

/// A way to the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    All,
    /// One row, by its number.
    Row,
    Equal {
        column: usize,
    },
    Range {
        column: usize,
        low: Option<Bound>,
        high: Option<Bound>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Included,
    Excluded,
}

/// A way to the rows and its direction, as the number that SQLite keeps for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub path: Path,
    pub is_backward: bool,
}

impl Plan {
    /// Bits 0 and 1: the path, 2: backward, 3 and 4: the lower bound, 5 and 6: the upper one; the column above.
    pub fn to_number(self) -> i32 {
        let bound = |bound: Option<Bound>| match bound {
            None => 0,
            Some(Bound::Included) => 1,
            Some(Bound::Excluded) => 2,
        };
        let (path, column, low, high) = match self.path {
            Path::All => (0, 0, None, None),
            Path::Row => (1, 0, None, None),
            Path::Equal { column } => (2, column, None, None),
            Path::Range { column, low, high } => (3, column, low, high),
        };
        // A table has at most 2,000 columns.
        let column = i32::try_from(column).unwrap_or(0);
        path | i32::from(self.is_backward) << 2 | bound(low) << 3 | bound(high) << 5 | column << 8
    }

    pub fn from_number(number: i32) -> Self {
        let bound = |bits: i32| match bits & 3 {
            1 => Some(Bound::Included),
            2 => Some(Bound::Excluded),
            _ => None,
        };
        let column = usize::try_from(number >> 8).unwrap_or(0);
        let path = match number & 3 {
            1 => Path::Row,
            2 => Path::Equal { column },
            3 => Path::Range { column, low: bound(number >> 3), high: bound(number >> 5) },
            _ => Path::All,
        };
        Self { path, is_backward: number & 4 != 0 }
    }

    /// What `EXPLAIN QUERY PLAN` shows.
    pub fn describe(&self, schema: &Schema) -> String {
        let name = |column: usize| schema.fields().get(column).map_or("", |field| field.name());
        let way = match self.path {
            Path::All => "all rows".to_owned(),
            Path::Row => "one row".to_owned(),
            Path::Equal { column } => format!("equal {}", name(column)),
            Path::Range { column, .. } => format!("range {}", name(column)),
        };
        if self.is_backward { way + ", backwards" } else { way }
    }
}

/// What a column is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// No row is equal to it.
    Nothing,
    /// Cannot be told here: SQLite compares.
    Anything,
    Integer(i64),
    Text(String),
}

impl Probe {
    #[inline]
    pub fn matches(&self, column: &Column, place: Place) -> bool {
        match self {
            Self::Nothing => false,
            Self::Anything => true,
            Self::Integer(number) => column.integer(place.batch, place.row) == Some(*number),
            Self::Text(wanted) => column.text(place.batch, place.row).is_some_and(|text| text.as_ref() == wanted),
        }
    }
}

/// Which integer is equal to the value. It must be right, since SQLite does not compare again.
pub(super) fn integer_probe(value: ValueRef<'_>) -> Probe {
    match value {
        ValueRef::Integer(number) => Probe::Integer(number),
        ValueRef::Real(number) => of_real(number),
        // Against a column of integers, a text that reads as a number is that number; any other is greater than all.
        ValueRef::Text(text) => match number_of(text) {
            Some(ValueRef::Integer(number)) => Probe::Integer(number),
            Some(ValueRef::Real(number)) => of_real(number),
            _ => Probe::Nothing,
        },
        ValueRef::Null | ValueRef::Blob(_) => Probe::Nothing,
    }
}

/// Which text is equal to the value; SQLite compares again.
pub(super) fn text_probe(value: ValueRef<'_>) -> Probe {
    match value {
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Probe::Text(text.to_owned()),
            Err(_) => Probe::Nothing,
        },
        ValueRef::Null => Probe::Nothing,
        // A number is compared as text or the text as a number, by where it comes from.
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => Probe::Anything,
    }
}

/// The integers from one bound to another, both included; the first above the second where there are none. It may hold
/// more than asked for: SQLite compares again.
pub(super) fn range_of(low: Option<(Bound, ValueRef<'_>)>, high: Option<(Bound, ValueRef<'_>)>) -> (i64, i64) {
    const NONE: (i64, i64) = (1, 0);
    let from = match low {
        None => Some(i64::MIN),
        Some((_, ValueRef::Null)) => None,
        Some((Bound::Included, ValueRef::Integer(number))) => Some(number),
        Some((Bound::Excluded, ValueRef::Integer(number))) => number.checked_add(1),
        Some((_, ValueRef::Real(number))) if number >= TWO_TO_63 => None,
        // Converting to an integer stops at the ends of their range.
        Some((_, ValueRef::Real(number))) => Some(number.floor() as i64),
        Some((_, ValueRef::Text(_) | ValueRef::Blob(_))) => Some(i64::MIN),
    };
    let to = match high {
        None => Some(i64::MAX),
        Some((_, ValueRef::Null)) => None,
        Some((Bound::Included, ValueRef::Integer(number))) => Some(number),
        Some((Bound::Excluded, ValueRef::Integer(number))) => number.checked_sub(1),
        Some((_, ValueRef::Real(number))) if number < -TWO_TO_63 => None,
        Some((_, ValueRef::Real(number))) => Some(number.ceil() as i64),
        Some((_, ValueRef::Text(_) | ValueRef::Blob(_))) => Some(i64::MAX),
    };
    from.zip(to).unwrap_or(NONE)
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn of_real(number: f64) -> Probe {
    let is_whole = number.trunc() == number && (-TWO_TO_63..TWO_TO_63).contains(&number);
    if is_whole { Probe::Integer(number as i64) } else { Probe::Nothing }
}

/// The number that a text reads as, by SQLite's rules: decimal only, with white space around it.
fn number_of(text: &[u8]) -> Option<ValueRef<'static>> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_decimal || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Ok(number) = text.parse() {
        return Some(ValueRef::Integer(number));
    }
    text.parse().ok().map(ValueRef::Real)
}
