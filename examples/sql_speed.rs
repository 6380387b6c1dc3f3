//! How long queries take over a table of a million rows and 45 columns (or as many rows as are asked for):
//! `cargo run --release --features sql --example sql_speed -- 5000000`.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, TimestampNanosecondArray, UInt64Array};
use wirelab::sql::{Database, QueryLimits, Source};
use wirelab::{Error, TableData, Unobserved};

const QUERIES: [(&str, &str); 15] = [
    ("count(*)", "SELECT count(*) FROM packets"),
    ("count where boolean", "SELECT count(*) FROM packets WHERE is_lost"),
    ("group by src_ip", "SELECT src_ip, count(*) FROM packets GROUP BY src_ip"),
    ("sum/avg/min/max", "SELECT sum(length), avg(length), min(length), max(length) FROM packets"),
    ("median", "SELECT median(length) FROM packets"),
    ("frame_no range of 1,000 rows", "SELECT sum(length) FROM packets WHERE frame_no BETWEEN 500000 AND 500999"),
    ("time range of 1,000 rows", "SELECT sum(length) FROM packets WHERE time BETWEEN 500000000 AND 500999000"),
    ("flow_id = k, first probe", "SELECT sum(length) FROM packets WHERE flow_id = 77"),
    ("flow_id = k, second probe (builds the index)", "SELECT sum(length) FROM packets WHERE flow_id = 78"),
    ("flow_id = k, third probe", "SELECT sum(length) FROM packets WHERE flow_id = 79"),
    (
        "lag() per flow, to a scalar",
        "SELECT max(gap) FROM (SELECT time - lag(time) OVER (PARTITION BY flow_id ORDER BY frame_no) AS gap FROM packets)",
    ),
    (
        "join to per-flow minimum",
        "SELECT count(*) FROM packets p JOIN (SELECT flow_id, min(time) AS first FROM packets GROUP BY flow_id) f \
         ON p.flow_id = f.flow_id AND p.time = f.first",
    ),
    ("self-join on flow_id", "SELECT count(*) FROM packets a JOIN packets b ON a.flow_id = b.flow_id"),
    ("order by length limit 10", "SELECT * FROM packets ORDER BY length LIMIT 10"),
    ("select *", "SELECT * FROM packets"),
];

struct Packets(Arc<TableData>);

impl Source for Packets {
    fn table_names(&self) -> Vec<&str> {
        vec!["packets"]
    }

    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, Error>> {
        (name == "packets").then(|| Ok(Arc::clone(&self.0)))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |rows| rows.parse())?;
    let mut batches = Vec::new();
    let mut from = 0;
    while from < rows {
        let to = (from + 32_768).min(rows);
        batches.push(batch(from..to)?);
        from = to;
    }
    let schema = batches.first().ok_or("no rows")?.schema();
    let packets = Arc::new(Packets(Arc::new(TableData { schema, batches })));
    for (name, sql) in QUERIES {
        // A fresh database knows no index; the look-ups of one column go on in one.
        static LOOK_UPS: std::sync::OnceLock<Database> = std::sync::OnceLock::new();
        let mut best = f64::INFINITY;
        let once = name.contains("probe");
        for _ in 0..if once { 1 } else { 3 } {
            let fresh = || {
                let mut database =
                    Database::new(QueryLimits { time: std::time::Duration::from_secs(600), ..QueryLimits::default() });
                database.attach("memory", packets.clone()).map(|()| database)
            };
            let own;
            let database = if once {
                if LOOK_UPS.get().is_none() {
                    let _ = LOOK_UPS.set(fresh()?);
                }
                LOOK_UPS.get().ok_or("no database")?
            } else {
                own = fresh()?;
                &own
            };
            let start = Instant::now();
            let result = database.query(sql, &[], &mut Unobserved)?;
            best = best.min(start.elapsed().as_secs_f64() * 1_000.0);
            std::hint::black_box(result.num_rows());
        }
        println!("{best:10.1} ms  {name}");
    }
    Ok(())
}

/// Flows of a hundred rows each, which interleave as packets do.
fn batch(numbers: std::ops::Range<u64>) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let flows = 10_000;
    let mixed = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let all = || numbers.clone();
    let words = |count: u64| -> ArrayRef {
        let mut words = StringDictionaryBuilder::<Int32Type>::new();
        all().for_each(|number| words.append_value(format!("10.0.0.{}", mixed(number) % count)));
        Arc::new(words.finish())
    };
    let times =
        TimestampNanosecondArray::from_iter_values(all().map(|number| number as i64 * 1_000)).with_timezone("UTC");
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("frame_no".to_owned(), Arc::new(UInt64Array::from_iter_values(all().map(|number| number + 1)))),
        ("time".to_owned(), Arc::new(times)),
        ("flow_id".to_owned(), Arc::new(UInt64Array::from_iter_values(all().map(|number| mixed(number) % flows)))),
        ("length".to_owned(), Arc::new(UInt64Array::from_iter_values(all().map(|number| 60 + mixed(number) % 1_440)))),
        ("is_lost".to_owned(), Arc::new(all().map(|number| Some(number % 100 == 0)).collect::<BooleanArray>())),
        ("src_ip".to_owned(), words(200)),
        ("dst_ip".to_owned(), words(100)),
    ];
    for at in columns.len()..45 {
        let column: ArrayRef = match at % 3 {
            0 => words(10),
            _ => Arc::new(UInt64Array::from_iter_values(all().map(|number| mixed(number + at as u64)))),
        };
        columns.push((format!("c{at}"), column));
    }
    RecordBatch::try_from_iter(columns)
}
