//! SQL over tables: SQLite, read-only, with Arrow tables as its virtual tables. Knows nothing of grading.

use std::sync::Arc;

use crate::error::Error;
use crate::open::{Capture, TableData};
use crate::tables::{TABLES, TableId};

/// What one SQL schema offers: a capture, or a log. Tables are computed when a query first reads them.
pub trait Source: Send + Sync {
    /// Names of all tables, without computing one.
    fn table_names(&self) -> Vec<&str>;

    /// One table, whole; `None` where there is no such table.
    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, Error>>;
}

/// A value bound to a `:name` in a query, or read from a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Source for Capture {
    fn table_names(&self) -> Vec<&str> {
        TABLES.iter().map(|table| table.name()).collect()
    }

    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, Error>> {
        TableId::from_name(name).ok().map(|id| Capture::table(self, id))
    }
}
