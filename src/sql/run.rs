//! One query, from its text to a table. A connection lives as long as the query: opening one and naming the tables takes
//! half a millisecond. SQLite works on a thread of its own; the caller's thread reads tables for it, asks the observer and
//! looks at the clock.

use std::collections::HashMap;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, ToSql};

use super::collect::Collector;
use super::column::Kind;
use super::count::counted;
use super::fault::{self, Fault, Known};
use super::guard::{self, Guard, Reads, Relay, Stop};
use super::source::{Part, Wanted};
use super::table::{Slot, Table};
use super::vtab::{self, Catalog, MODULE, quoted};
use super::{Database, Value, functions};
use crate::error::Error;
use crate::observe::Observer;
use crate::open::TableData;

/// SQLite goes deep into nested queries.
const STACK_BYTES: usize = 16 << 20;

/// What the query needs of the caller's thread: tables, by the number of their schema, and where to say that they are read.
struct Ask {
    schema: usize,
    wanted: Vec<Wanted>,
    answer: SyncSender<Result<Vec<Arc<TableData>>, Error>>,
}

pub(super) fn query(
    database: &Database,
    sql: &str,
    params: &[(&str, Value)],
    observer: &mut dyn Observer,
) -> Result<TableData, Error> {
    if sql.contains('\0') {
        return Err(fault::error(Fault::Nul));
    }
    let guard = Arc::new(Guard::new(&database.limits));
    let query = Query { database, sql, params, catalog: Arc::new(catalog(database, &guard)?) };
    let (asks, inbox) = channel();
    let mut relay = Relay::new(observer);
    let outcome = std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new()
            .name("wirelab-sql".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || query.run(asks));
        let worker = spawned.map_err(|source| Error::Io { path: "thread".into(), source })?;
        guard::wait(&inbox, database.limits.time, &guard, &mut relay, |ask: Ask, observer| {
            let source = database.schemas.get(ask.schema).map(|schema| &schema.source);
            let tables = source.map_or(Ok(Vec::new()), |source| source.load(&ask.wanted, observer));
            // The worker waits for it, unless it is gone; then its own outcome tells why.
            let _ = ask.answer.send(tables);
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match (outcome, guard.stopped()) {
        // A query that came to its end just then is as good as any.
        (Ok(table), None | Some(Stop::Time | Stop::Cancelled)) => Ok(table),
        (_, Some(Stop::Cancelled)) => Err(Error::Cancelled),
        (_, Some(Stop::Time)) => Err(fault::error(Fault::TimeLimit { limit: database.limits.time })),
        (_, Some(Stop::Memory)) => Err(fault::error(Fault::MemoryLimit { limit_bytes: database.limits.bytes })),
        (Err(error), None) => Err(error),
    }
}

/// All tables by name, with their columns and yet without rows.
fn catalog(database: &Database, guard: &Arc<Guard>) -> Result<Catalog, Error> {
    let mut slots = HashMap::new();
    for schema in &database.schemas {
        for name in schema.source.table_names() {
            let Some(columns) = schema.source.schema(name) else { continue };
            let slot =
                Slot { name: name.to_owned(), schema: columns?, table: OnceLock::new(), enough: Mutex::default() };
            slots.insert((schema.name.clone(), name.to_owned()), Arc::new(slot));
        }
    }
    Ok(Catalog { slots, guard: Arc::clone(guard) })
}

struct Query<'a> {
    database: &'a Database,
    sql: &'a str,
    params: &'a [(&'a str, Value)],
    catalog: Arc<Catalog>,
}

impl Query<'_> {
    fn run(&self, asks: Sender<Ask>) -> Result<TableData, Error> {
        let guard = &self.catalog.guard;
        let reads = Arc::new(Reads::default());
        let connection = self.connect(&reads).map_err(|failure| self.failed(failure, false))?;
        // The first time only tells which tables, columns and first rows are read; once their rows are there, the plan is made anew.
        self.prepare(&connection)?;
        self.load(&reads, &asks)?;
        let mut statement = self.prepare(&connection)?;
        self.bind(&mut statement)?;
        let columns: Vec<_> = statement
            .columns()
            .map(|column| (column.name().to_owned(), column.decl_type().and_then(Kind::from_declared)))
            .collect();
        let mut collector = Collector::new(columns.into_iter());
        if let Some(rows) = self.plain_count().filter(|_| self.database.limits.rows > 0) {
            collector.push(guard, |_| Ok(ValueRef::Integer(rows))).map_err(|failure| self.failed(failure, true))?;
            return collector.finish();
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|failure| self.failed(failure, true))? {
            if collector.rows() >= self.database.limits.rows {
                return Err(fault::error(Fault::RowLimit { limit: self.database.limits.rows }));
            }
            let is_kept = collector.push(guard, |at| row.get_ref(at)).map_err(|failure| self.failed(failure, true))?;
            if !is_kept {
                return Err(fault::error(Fault::MemoryLimit { limit_bytes: self.database.limits.bytes }));
            }
        }
        collector.finish()
    }

    /// The rows of a table, where that is all that is asked; the table must be loaded.
    fn plain_count(&self) -> Option<i64> {
        let (schema, table) = counted(self.sql)?;
        let (_, slot) = self.resolve(schema, table)?;
        i64::try_from(slot.table.get()?.rows()).ok()
    }

    fn connect(&self, reads: &Arc<Reads>) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_in_memory_with_flags(flags)?;
        guard::set_limits(&connection, &self.database.limits)?;
        vtab::register(&connection, Arc::clone(&self.catalog))?;
        functions::register(&connection, &self.catalog.guard)?;
        let mut setup = String::new();
        for (at, schema) in self.database.schemas.iter().enumerate() {
            let name = quoted(&schema.name);
            // A source that is called `main` has SQLite's own.
            if at > 0 || !schema.name.eq_ignore_ascii_case("main") {
                setup.push_str(&format!("ATTACH ':memory:' AS {name};"));
            }
            for table in self.catalog.slots.iter().filter(|((of, _), _)| *of == schema.name).map(|(_, slot)| &slot.name)
            {
                setup.push_str(&format!("CREATE VIRTUAL TABLE {name}.{} USING {MODULE};", quoted(table)));
            }
        }
        connection.execute_batch(&setup)?;
        guard::watch(&mut connection, &self.catalog.guard, reads)?;
        Ok(connection)
    }

    fn prepare<'c>(&self, connection: &'c Connection) -> Result<Statement<'c>, Error> {
        let statement = connection.prepare(self.sql).map_err(|failure| self.failed(failure, false))?;
        // The authorizer lets some statements through that change nothing in a database and are no queries either.
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(fault::error(Fault::NotReadOnly));
        }
        Ok(statement)
    }

    /// Has the rows read of the tables that the query names.
    fn load(&self, reads: &Reads, asks: &Sender<Ask>) -> Result<(), Error> {
        let read = reads.all();
        for (at, schema) in self.database.schemas.iter().enumerate() {
            let mut found: Vec<(&Slot, Wanted)> = Vec::new();
            for (of, table, column) in &read {
                let Some((_, slot)) = self.resolve(of, table).filter(|(owner, _)| *owner == at) else { continue };
                let wanted = match found.iter_mut().find(|(known, _)| known.name == slot.name) {
                    Some((_, wanted)) => wanted,
                    None => {
                        found.push((
                            slot,
                            Wanted { table: slot.name.clone(), columns: Vec::new(), part: slot.enough() },
                        ));
                        let Some((_, wanted)) = found.last_mut() else { continue };
                        wanted
                    }
                };
                let mut fields = slot.schema.fields().iter();
                match fields.find(|field| field.name().eq_ignore_ascii_case(column)) {
                    Some(field) => wanted.columns.push(field.name().clone()),
                    // SQLite also tells of the row number, which is none of the columns: it is that of the whole table.
                    None if !column.is_empty() && matches!(wanted.part, Some(Part::Kept(_))) => wanted.part = None,
                    None => {}
                }
            }
            let (slots, wanted): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            if slots.is_empty() {
                continue;
            }
            let (answer, answered) = sync_channel(1);
            // Where nobody answers, the caller is going down.
            asks.send(Ask { schema: at, wanted, answer }).map_err(|_| Error::Cancelled)?;
            let tables = answered.recv().map_err(|_| Error::Cancelled)??;
            for (slot, data) in slots.into_iter().zip(tables) {
                let table: Arc<Table> = schema.table(&slot.name, &slot.schema, data)?;
                let _ = slot.table.set(table);
            }
        }
        Ok(())
    }

    /// The table of that name, and the number of its schema. Without a schema it is the first that has such a table.
    fn resolve(&self, schema: &str, table: &str) -> Option<(usize, &Slot)> {
        let mut schemas = self.database.schemas.iter().enumerate();
        schemas.find_map(|(at, known)| {
            if !schema.is_empty() && !schema.eq_ignore_ascii_case(&known.name) {
                return None;
            }
            let mut slots = self.catalog.slots.iter();
            let is_it = |((of, name), _): &(&(String, String), &Arc<Slot>)| {
                *of == known.name && name.eq_ignore_ascii_case(table)
            };
            slots.find(is_it).map(|(_, slot)| (at, slot.as_ref()))
        })
    }

    fn bind(&self, statement: &mut Statement<'_>) -> Result<(), Error> {
        for at in 1..=statement.parameter_count() {
            let named = statement.parameter_name(at).map(str::to_owned);
            let Some(name) = named.as_deref().and_then(|name| name.strip_prefix([':', '@', '$'])) else {
                return Err(fault::error(Fault::UnnamedParameter));
            };
            let Some((_, value)) =
                self.params.iter().find(|(given, _)| given.strip_prefix(':').unwrap_or(given) == name)
            else {
                let known: Vec<_> = self.params.iter().map(|(given, _)| (*given).to_owned()).collect();
                let (name, nearest) = (name.to_owned(), fault::near(name, &known));
                return Err(fault::error(Fault::MissingParameter { name, nearest }));
            };
            statement.raw_bind_parameter(at, value).map_err(|failure| self.failed(failure, false))?;
        }
        Ok(())
    }

    fn failed(&self, failure: rusqlite::Error, is_running: bool) -> Error {
        use rusqlite::ErrorCode::{OutOfMemory, TooBig};
        if is_running && matches!(failure.sqlite_error_code(), Some(OutOfMemory | TooBig)) {
            return fault::error(Fault::MemoryLimit { limit_bytes: guard::value_bytes(&self.database.limits) });
        }
        fault::from_sqlite(failure, self.sql, is_running, || self.known())
    }

    /// The names that the query may have meant.
    fn known(&self) -> Known {
        let tables = self.catalog.slots.values().map(|slot| slot.name.clone()).collect();
        let is_named = |slot: &Slot| fault::words_of(self.sql).any(|(_, word)| word.eq_ignore_ascii_case(&slot.name));
        let named = self.catalog.slots.values().filter(|slot| is_named(slot));
        let columns = named.flat_map(|slot| slot.schema.fields().iter().map(|field| field.name().clone())).collect();
        let qualified = self.catalog.slots.keys().map(|(schema, table)| format!("{schema}.{table}")).collect();
        Known { tables, qualified, columns }
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Null => rusqlite::types::Null.to_sql(),
            Self::Integer(number) => number.to_sql(),
            Self::Real(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
        }
    }
}
