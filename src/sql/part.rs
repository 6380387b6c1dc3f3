//! Which rows of a table are enough for one use of it in a query, told before any row is there. What is not certain is all
//! rows: SQLite looks at every condition and limit again.

use std::net::IpAddr;

use arrow_schema::Schema;
use rusqlite::types::ValueRef;
use rusqlite::vtab::{IndexConstraintOp as Op, IndexInfo};

use super::column::Kind;
use super::source::Part;
use crate::scan::Filter;
use crate::wire::Ip;

/// `None` for all rows.
pub(super) fn part(info: &IndexInfo, schema: &Schema) -> rusqlite::Result<Option<Part>> {
    Ok(match first_rows(info)? {
        Some(rows) => Some(Part::First(rows)),
        None => Some(filter(info, schema)?).filter(|filter| !filter.is_empty()).map(Part::Kept),
    })
}

/// SQLite offers its LIMIT where the table is the only one, rows are neither grouped nor told apart, and all conditions are
/// offered as well. Where there are none, and no order, the first rows are it.
fn first_rows(info: &IndexInfo) -> rusqlite::Result<Option<usize>> {
    let (mut limit, mut offset) = (None, 0_usize);
    for (at, constraint) in info.constraints().enumerate() {
        // A limit that is no plain number is not known yet.
        let number = match info.rhs_value(at)? {
            Some(ValueRef::Integer(number)) if constraint.is_usable() => usize::try_from(number).ok(),
            _ => None,
        };
        match (constraint.operator(), number) {
            (Op::SQLITE_INDEX_CONSTRAINT_LIMIT, Some(number)) => limit = Some(number),
            (Op::SQLITE_INDEX_CONSTRAINT_OFFSET, Some(number)) => offset = number,
            _ => return Ok(None),
        }
    }
    Ok(limit.filter(|_| info.order_bys().next().is_none()).and_then(|limit| limit.checked_add(offset)))
}

/// What conditions on addresses, ports and times say, as far as they compare with constants. All offered hold together, so
/// each may be left out. A row that speaks of the address or port elsewhere is kept as well.
fn filter(info: &IndexInfo, schema: &Schema) -> rusqlite::Result<Filter> {
    let mut filter = Filter::default();
    for (at, constraint) in info.constraints().enumerate().filter(|(_, constraint)| constraint.is_usable()) {
        let column = usize::try_from(constraint.column()).ok().and_then(|column| schema.fields().get(column));
        let Some((name, kind)) =
            column.and_then(|field| Some((field.name(), Kind::of(field.name(), field.data_type())?)))
        else {
            continue;
        };
        let operator = constraint.operator();
        let is_equal = operator == Op::SQLITE_INDEX_CONSTRAINT_EQ;
        match (name.as_str(), info.rhs_value(at)?) {
            ("src_ip" | "dst_ip", Some(ValueRef::Text(text))) if is_equal && filter.hosts.is_empty() => {
                // What is no address is no row's, and SQLite finds that out.
                let address = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                filter.hosts.extend(address.map(|address| match address {
                    IpAddr::V4(address) => Ip::v4(address.octets()),
                    IpAddr::V6(address) => Ip::v6(address.octets()),
                }));
            }
            ("src_port" | "dst_port", Some(ValueRef::Integer(port))) if is_equal && filter.ports.is_empty() => {
                filter.ports.extend(u16::try_from(port).ok());
            }
            ("time", Some(ValueRef::Integer(time))) if kind == Kind::Time => {
                let (from, to) = match operator {
                    Op::SQLITE_INDEX_CONSTRAINT_EQ => (Some(time), time.checked_add(1)),
                    Op::SQLITE_INDEX_CONSTRAINT_GE => (Some(time), None),
                    Op::SQLITE_INDEX_CONSTRAINT_GT => (time.checked_add(1), None),
                    Op::SQLITE_INDEX_CONSTRAINT_LT => (None, Some(time)),
                    Op::SQLITE_INDEX_CONSTRAINT_LE => (None, time.checked_add(1)),
                    _ => (None, None),
                };
                filter.time_from_ns = filter.time_from_ns.max(from);
                filter.time_to_ns = [filter.time_to_ns, to].into_iter().flatten().min();
            }
            _ => {}
        }
    }
    Ok(filter)
}
