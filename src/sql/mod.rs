//! SQL over tables: SQLite, read-only, with Arrow tables as its virtual tables. Knows nothing of grading.
//!
//! ```
//! use wirelab::sql::{Value, rows};
//!
//! let file = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-captures/ping-delay/ping-delay.pcap");
//! let capture = wirelab::open([file], &wirelab::Options::default())?;
//! let table = capture.sql("SELECT count(*) AS sent FROM probes WHERE rtt_ns > :least", &[("least", Value::Integer(0))])?;
//! assert_eq!(rows(&table).rows, [[Value::Integer(12)]]);
//! # Ok::<(), wirelab::Error>(())
//! ```

mod collect;
mod column;
mod count;
mod fault;
mod functions;
mod guard;
mod index;
mod part;
mod plan;
mod run;
mod source;
mod table;
mod value;
mod vtab;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use fault::Fault;
pub use guard::QueryLimits;
pub use source::{Part, Source, Wanted};
pub use value::{Rows, Value, rows};

use crate::error::Error;
use crate::observe::{Observer, Unobserved};
use crate::open::{Capture, TableData};
use table::Table;

/// Most schemas of one database: as many as SQLite attaches.
const SCHEMAS: usize = 10;
/// Longest name of a schema.
const NAME_CHARS: usize = 64;

/// Sources of tables under names of their own: `jumbo.tcp_flows`. A bare table name means the first source that has it.
/// Queries run in parallel from several threads.
pub struct Database {
    limits: QueryLimits,
    schemas: Vec<Schema>,
}

struct Schema {
    name: String,
    source: Arc<dyn Source>,
    /// Tables that queries have read, with the indexes that grew on them.
    tables: Mutex<HashMap<String, Arc<Table>>>,
}

impl Database {
    pub fn new(limits: QueryLimits) -> Self {
        Self { limits, schemas: Vec::new() }
    }

    /// Adds a source of tables. Its name starts with a letter and goes on with letters, digits and `_`; case does not
    /// matter.
    pub fn attach(&mut self, schema: &str, source: Arc<dyn Source>) -> Result<(), Error> {
        if self.schemas.len() >= SCHEMAS {
            return Err(fault::error(Fault::TooManySchemas { limit: SCHEMAS }));
        }
        let is_first = self.schemas.is_empty();
        let is_taken = self.schemas.iter().any(|other| other.name.eq_ignore_ascii_case(schema));
        // SQLite has a `main` and a `temp` of its own, which are looked into before any other.
        let is_reserved = schema.eq_ignore_ascii_case("temp") || schema.eq_ignore_ascii_case("main") && !is_first;
        if is_taken || is_reserved || !is_name(schema) {
            return Err(fault::error(Fault::SchemaName { name: schema.to_owned() }));
        }
        // However it is written, SQLite calls its own `main`.
        let name = if schema.eq_ignore_ascii_case("main") { "main" } else { schema };
        self.schemas.push(Schema { name: name.to_owned(), source, tables: Mutex::default() });
        Ok(())
    }

    /// Runs one query. `:name` in it stands for the parameter of that name, whose value is bound and never becomes part of
    /// the text. The observer is asked on this thread, while tables are read and while the query runs.
    pub fn query(&self, sql: &str, params: &[(&str, Value)], observer: &mut dyn Observer) -> Result<TableData, Error> {
        run::query(self, sql, params, observer)
    }
}

impl Schema {
    /// The table as an earlier query left it, if it was made of the same data.
    fn table(&self, name: &str, schema: &arrow_schema::SchemaRef, data: Arc<TableData>) -> Result<Arc<Table>, Error> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(name).filter(|table| Arc::ptr_eq(&table.data, &data)) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(Table::new(name, schema, data)?);
        tables.insert(name.to_owned(), Arc::clone(&table));
        Ok(table)
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.schemas.iter().map(|schema| &schema.name).collect();
        f.debug_struct("Database").field("schemas", &names).finish_non_exhaustive()
    }
}

impl Capture {
    /// Runs a query over the capture's tables, with the default limits.
    pub fn sql(&self, sql: &str, params: &[(&str, Value)]) -> Result<TableData, Error> {
        self.sql_observed(sql, params, QueryLimits::default(), &mut Unobserved)
    }

    /// The same, with limits, progress and a way to stop.
    pub fn sql_observed(
        &self,
        sql: &str,
        params: &[(&str, Value)],
        limits: QueryLimits,
        observer: &mut dyn Observer,
    ) -> Result<TableData, Error> {
        let mut database = Database::new(limits);
        database.attach("capture", Arc::new(self.clone()))?;
        database.query(sql, params, observer)
    }
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|c| c.is_alphanumeric() || c == '_')
        && name.chars().count() <= NAME_CHARS
}
