//! Tables made on the spot, and short ways to query them.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampNanosecondArray, UInt16Array, UInt64Array};
use arrow_schema::Schema;
use wirelab::sql::{Database, QueryLimits, Rows, Source, Value, rows};
use wirelab::{Error, TableData, Unobserved};

/// Time of the first row.
pub const START_NS: i64 = 1_790_000_000_000_000_000;

/// Tables that are there already, by name.
#[derive(Clone, Default)]
pub struct Memory(Vec<(String, Arc<TableData>)>);

impl Memory {
    pub fn with(mut self, name: &str, batches: Vec<RecordBatch>) -> Self {
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), |batch| batch.schema());
        self.0.push((name.to_owned(), Arc::new(TableData { schema, batches })));
        self
    }

    pub fn database(self) -> Database {
        self.database_with(QueryLimits::default())
    }

    pub fn database_with(self, limits: QueryLimits) -> Database {
        let mut database = Database::new(limits);
        database.attach("memory", Arc::new(self)).unwrap();
        database
    }
}

impl Source for Memory {
    fn table_names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, Error>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, data)| Ok(Arc::clone(data)))
    }
}

pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Rows that look like packets: `flows` flows in turn, rising times, every tenth row without a port, and batches of
/// `batch_rows`.
pub fn packets(count: u64, flows: u64, batch_rows: u64) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    let mut from = 0;
    while from < count || batches.is_empty() {
        let to = (from + batch_rows).min(count);
        batches.push(packet_batch(from..to, flows));
        from = to;
        if count == 0 {
            break;
        }
    }
    batches
}

fn packet_batch(numbers: std::ops::Range<u64>, flows: u64) -> RecordBatch {
    let mut source = StringDictionaryBuilder::<Int32Type>::new();
    let mut lost = BooleanBuilder::new();
    let mut frames = ListBuilder::new(UInt64Builder::new());
    let mut comment = StringBuilder::new();
    let mut delta = Int64Builder::new();
    for number in numbers.clone() {
        source.append_value(format!("10.0.0.{}", number % 7));
        lost.append_value(number % 3 == 0);
        frames.values().append_slice(&[number, number + 1]);
        frames.append(true);
        comment.append_option((number % 5 == 0).then(|| format!("Nr {number}")));
        delta.append_value(number as i64 - 10);
    }
    let all = || numbers.clone();
    batch(vec![
        ("frame_no", Arc::new(UInt64Array::from_iter_values(all().map(|number| number + 1)))),
        (
            "time",
            Arc::new(
                TimestampNanosecondArray::from_iter_values(all().map(|number| START_NS + number as i64 * 1_000))
                    .with_timezone("UTC"),
            ),
        ),
        ("flow_id", Arc::new(UInt64Array::from_iter_values(all().map(|number| number % flows)))),
        (
            "port",
            Arc::new(
                all().map(|number| (number % 10 != 0).then_some((number % 60_000) as u16)).collect::<UInt16Array>(),
            ),
        ),
        ("length", Arc::new(UInt64Array::from_iter_values(all().map(|number| 60 + number * 7_919 % 1_440)))),
        ("delta", Arc::new(delta.finish())),
        ("share", Arc::new(Float64Array::from_iter_values(all().map(|number| number as f64 / 4.0)))),
        ("src_ip", Arc::new(source.finish())),
        ("is_lost", Arc::new(lost.finish())),
        ("frames", Arc::new(frames.finish())),
        ("comment", Arc::new(comment.finish())),
        ("va", Arc::new(UInt64Array::from_iter_values(all().map(|number| u64::MAX - number)))),
    ])
}

/// A database with one table `packets`.
pub fn database(count: u64) -> Database {
    Memory::default().with("packets", packets(count, 7, 100)).database()
}

pub fn table(database: &Database, sql: &str) -> TableData {
    database.query(sql, &[], &mut Unobserved).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

pub fn values(database: &Database, sql: &str) -> Rows {
    rows(&table(database, sql))
}

/// The one value of a query.
pub fn one(database: &Database, sql: &str) -> Value {
    let rows = values(database, sql);
    assert_eq!((rows.rows.len(), rows.columns.len()), (1, 1), "{sql}: {rows:?}");
    rows.rows[0][0].clone()
}

pub fn integer(database: &Database, sql: &str) -> i64 {
    match one(database, sql) {
        Value::Integer(number) => number,
        other => panic!("{sql}: {other:?}"),
    }
}

/// The first column.
pub fn integers(database: &Database, sql: &str) -> Vec<i64> {
    let integer =
        |row: &Vec<Value>| if let Value::Integer(number) = row[0] { number } else { panic!("{sql}: {row:?}") };
    values(database, sql).rows.iter().map(integer).collect()
}

pub fn refusal(database: &Database, sql: &str) -> Error {
    match database.query(sql, &[], &mut Unobserved) {
        Ok(table) => panic!("{sql}: {:?}", rows(&table)),
        Err(error) => error,
    }
}

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// How SQLite goes about a query.
pub fn plan(database: &Database, sql: &str) -> String {
    let rows = values(database, &format!("EXPLAIN QUERY PLAN {sql}"));
    let detail = rows.columns.iter().position(|name| name == "detail").unwrap();
    let lines: Vec<_> = rows
        .rows
        .iter()
        .map(|row| if let Value::Text(text) = &row[detail] { text.clone() } else { String::new() })
        .collect();
    lines.join("\n")
}
