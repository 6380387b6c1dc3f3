//! Where tables come from.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::error::Error;
use crate::observe::Observer;
use crate::open::{Capture, TableData};
use crate::scan::Filter;
use crate::tables::{TABLES, TableId};

/// What one SQL schema offers: a capture, or a log. Tables are computed when a query first reads them.
pub trait Source: Send + Sync {
    /// Names of all tables, without computing one.
    fn table_names(&self) -> Vec<&str>;

    /// One table, whole; `None` where there is no such table.
    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, Error>>;

    /// The columns of a table. A source whose tables take time to compute tells them without.
    fn schema(&self, name: &str) -> Option<Result<SchemaRef, Error>> {
        self.table(name).map(|table| table.map(|table| Arc::clone(&table.schema)))
    }

    /// The tables that a query reads, in that order, each with at least the columns named. A source that computes several
    /// tables or fewer columns at less cost does so here.
    fn load(&self, wanted: &[Wanted], observer: &mut dyn Observer) -> Result<Vec<Arc<TableData>>, Error> {
        let _ = observer;
        let table = |wanted: &Wanted| {
            let missing = || Error::Usage(format!("there is no table {}", wanted.table));
            self.table(&wanted.table).unwrap_or_else(|| Err(missing()))
        };
        wanted.iter().map(table).collect()
    }
}

/// What a query reads of one table; of its columns there may be none, as for `count(*)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub table: String,
    pub columns: Vec<String>,
    /// Rows that are enough, where the query cannot tell whether others are there. More may be given.
    pub part: Option<Part>,
}

/// Some of a table's rows, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// So many from the first on.
    First(usize),
    /// Those that the filter keeps, by the columns `time`, `src_ip`, `dst_ip`, `src_port` and `dst_port`.
    Kept(Filter),
}

impl Source for Capture {
    fn table_names(&self) -> Vec<&str> {
        TABLES.iter().map(|table| table.name()).collect()
    }

    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, Error>> {
        TableId::from_name(name).ok().map(|id| Capture::table(self, id))
    }

    fn schema(&self, name: &str) -> Option<Result<SchemaRef, Error>> {
        TableId::from_name(name).ok().map(|id| Ok(id.definition().schema()))
    }

    fn load(&self, wanted: &[Wanted], observer: &mut dyn Observer) -> Result<Vec<Arc<TableData>>, Error> {
        let named = wanted.iter().map(|one| Ok((TableId::from_name(&one.table)?, one.columns.clone())));
        let named = named.collect::<Result<Vec<_>, Error>>()?;
        match wanted {
            [Wanted { part: Some(part), .. }] => Ok(vec![self.load_part(&named[0], part, observer)?]),
            _ => self.load_columns(&named, observer),
        }
    }
}
