//! Queries of a rubric: with the lab's parameters bound, and limits of their own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::grade::rubric::bound_names;
use crate::observe::Observer;
use crate::sql::{Database, Fault, QueryLimits, Rows, Source, Value, rows};

/// Bytes of one answer; rubrics ask for few rows.
const MOST_BYTES: u64 = 64 << 20;

/// The tables of a submission, and the lab's parameters.
pub(super) struct Asker {
    sources: Vec<(String, Arc<dyn Source>)>,
    params: BTreeMap<String, Value>,
    /// By time limit: indexes that grow on tables serve later checks.
    databases: RefCell<BTreeMap<u64, Rc<Database>>>,
    /// Values of expressions over parameters alone.
    constants: RefCell<BTreeMap<String, Value>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// Nobody's fault that handed something in: stopped, or no room for temporary files.
    Ended(Error),
    TimeLimit(u64),
    Failed(String),
}

impl Unanswered {
    pub fn into_error(self) -> Error {
        match self {
            Self::Ended(error) => error,
            Self::TimeLimit(limit) => Error::Usage(format!("more than {limit} s")),
            Self::Failed(message) => Error::Usage(message),
        }
    }
}

impl Asker {
    pub fn new(sources: Vec<(String, Arc<dyn Source>)>, params: BTreeMap<String, Value>) -> Self {
        Self { sources, params, databases: RefCell::default(), constants: RefCell::default() }
    }

    /// The first rows of a rubric's query, at most `most_rows`.
    pub fn ask(
        &self,
        sql: &str,
        most_rows: usize,
        time_limit_s: u64,
        observer: &mut dyn Observer,
    ) -> Result<Rows, Unanswered> {
        let sql = sql.trim().trim_end_matches(';');
        // The line end keeps a comment at the end of the query from swallowing the rest.
        let limited = format!("SELECT * FROM (\n{sql}\n) LIMIT {most_rows}");
        self.run(&limited, &[], time_limit_s, observer)
    }

    /// The value of an expression over parameters and the columns of a row.
    pub fn value(
        &self,
        expression: &str,
        columns: &[String],
        row: &[Value],
        time_limit_s: u64,
        observer: &mut dyn Observer,
    ) -> Result<Value, Unanswered> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let names_column = |word: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(word));
        // A column's name with other characters stands in quotes.
        let is_constant = !expression.contains('"') && !expression.split(|c| !is_word(c)).any(names_column);
        if let Some(value) = self.constants.borrow().get(expression).filter(|_| is_constant) {
            return Ok(value.clone());
        }
        let bound: Vec<_> = row.iter().enumerate().map(|(at, value)| (format!("row_{at}"), value.clone())).collect();
        let named = columns.iter().zip(&bound).map(|(column, (name, _))| format!(":{name} AS {}", quoted(column)));
        let named: Vec<_> = named.collect();
        let from = if named.is_empty() { "1".to_owned() } else { named.join(", ") };
        let sql = format!("SELECT (\n{expression}\n) FROM (SELECT {from})");
        let answer = self.run(&sql, &bound, time_limit_s, observer)?;
        let value = answer.rows.into_iter().next().and_then(|row| row.into_iter().next()).unwrap_or(Value::Null);
        if is_constant {
            self.constants.borrow_mut().insert(expression.to_owned(), value.clone());
        }
        Ok(value)
    }

    fn run(
        &self,
        sql: &str,
        beside: &[(String, Value)],
        time_limit_s: u64,
        observer: &mut dyn Observer,
    ) -> Result<Rows, Unanswered> {
        let failed = |error| failed(error, time_limit_s);
        let database = self.database(time_limit_s).map_err(failed)?;
        let names = bound_names(sql);
        let of_lab = self.params.iter().map(|(name, value)| (name.as_str(), value));
        let all = of_lab.chain(beside.iter().map(|(name, value)| (name.as_str(), value)));
        let bound: Vec<_> =
            all.filter(|(name, _)| names.contains(name)).map(|(name, value)| (name, value.clone())).collect();
        database.query(sql, &bound, observer).map(|table| rows(&table)).map_err(failed)
    }

    fn database(&self, time_limit_s: u64) -> Result<Rc<Database>, Error> {
        if let Some(database) = self.databases.borrow().get(&time_limit_s) {
            return Ok(Rc::clone(database));
        }
        let time = Duration::from_secs(time_limit_s);
        let mut database = Database::new(QueryLimits { time, bytes: MOST_BYTES, ..QueryLimits::default() });
        for (schema, source) in &self.sources {
            database.attach(schema, source.clone())?;
        }
        let database = Rc::new(database);
        self.databases.borrow_mut().insert(time_limit_s, Rc::clone(&database));
        Ok(database)
    }
}

fn failed(error: Error, time_limit_s: u64) -> Unanswered {
    match error {
        Error::Cancelled | Error::NoRoom { .. } => Unanswered::Ended(error),
        Error::Sql { fault: Fault::TimeLimit { .. }, .. } => Unanswered::TimeLimit(time_limit_s),
        error => Unanswered::Failed(error.to_string()),
    }
}

/// A name as SQL quotes it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
