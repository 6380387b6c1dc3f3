//! What a prototype met, point by point. Numbers are those of the notes on SQLite over Arrow.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{StringArray, UInt64Array};
use arrow_schema::{DataType, TimeUnit};
use wirelab::sql::{Database, Fault, QueryLimits, Value};
use wirelab::{Error, Observer, Unobserved};

use super::sources::*;

#[test]
fn point_1_a_join_on_any_integer_or_text_column_is_no_scan_within_a_scan() {
    let database = Memory::default().with("packets", packets(60_000, 30_000, 8_192)).database();
    for column in ["frame_no", "flow_id", "length", "delta", "src_ip", "comment", "va", "time", "port"] {
        let sql =
            format!("SELECT count(*) FROM packets a JOIN packets b ON a.{column} = b.{column} WHERE a.frame_no <= 500");
        assert!(plan(&database, &sql).contains(&format!("equal {column}")), "{}", plan(&database, &sql));
    }
    // 60,000 times 60,000 comparisons would take minutes.
    let start = Instant::now();
    assert_eq!(integer(&database, "SELECT count(*) FROM packets a JOIN packets b ON a.flow_id = b.flow_id"), 120_000);
    let texts = "SELECT count(*) FROM packets a JOIN packets b ON a.comment = b.comment";
    assert_eq!(integer(&database, texts), 12_000);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn point_2_a_text_is_looked_up_only_where_texts_are_compared_byte_by_byte() {
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    words.extend(["TCP", "tcp", "Udp", "udp "].map(Some));
    let plain = StringArray::from(vec!["TCP", "tcp", "Udp", "udp "]);
    let columns = batch(vec![("word", Arc::new(words.finish())), ("plain", Arc::new(plain))]);
    let database = Memory::default().with("t", vec![columns]).database();
    for _ in 0..3 {
        for column in ["word", "plain"] {
            let count =
                |condition: &str| integer(&database, &format!("SELECT count(*) FROM t WHERE {column} {condition}"));
            assert_eq!(count("= 'tcp'"), 1);
            assert_eq!(count("= 'tcp' COLLATE NOCASE"), 2);
            assert_eq!(count("= 'udp' COLLATE RTRIM"), 1);
            assert_eq!(count("= 'udp'"), 0);
        }
    }
    let join = "SELECT count(*) FROM t a JOIN t b ON a.word = b.plain COLLATE NOCASE";
    assert_eq!(integer(&database, join), 6);
}

#[test]
fn point_3_an_integer_is_found_by_texts_and_reals_as_sqlite_itself_compares_them() {
    let database = database(1_000);
    // The same comparison where no look-up is possible: on an expression with the column's affinity.
    let slow = |value: &str| {
        let sql = format!("SELECT count(*) FROM packets WHERE CAST(flow_id AS INTEGER) = {value}");
        integer(&database, &sql)
    };
    let values = [
        "5",
        "5.0",
        "5.5",
        "'5'",
        "' 5 '",
        "'5.0'",
        "'5e0'",
        "'+5'",
        "'0x5'",
        "'five'",
        "''",
        "x'35'",
        "NULL",
        "-1",
        "1e300",
        "-1e300",
        "9223372036854775807",
        "9223372036854775808",
        "'9223372036854775808'",
        "'inf'",
        "'nan'",
        "' '",
        "'.'",
        "'5.'",
        "'.5e1'",
        "true",
    ];
    for value in values {
        let fast = format!("SELECT count(*) FROM packets WHERE flow_id = {value}");
        assert!(plan(&database, &fast).contains("equal flow_id"), "{value}");
        // The first look-up goes through the rows, later ones use the index.
        for _ in 0..3 {
            assert_eq!(integer(&database, &fast), slow(value), "{value}");
        }
    }
    for value in [
        "5.5",
        "'5.5'",
        "'5'",
        "1e300",
        "-1e300",
        "'five'",
        "NULL",
        "x'35'",
        "9223372036854775807",
        "-9223372036854775808",
    ] {
        for operator in ["<", "<=", ">", ">="] {
            for column in ["frame_no", "time", "delta"] {
                let fast = format!("SELECT count(*) FROM packets WHERE {column} {operator} {value}");
                let slow = format!("SELECT count(*) FROM packets WHERE CAST({column} AS INTEGER) {operator} {value}");
                assert_eq!(integer(&database, &fast), integer(&database, &slow), "{fast}");
            }
        }
    }
}

#[test]
fn point_4_unsigned_header_fields_are_hex_text_and_no_number_turns_negative() {
    let database = database(20);
    assert_eq!(one(&database, "SELECT va FROM packets WHERE frame_no = 1"), text("0xffffffffffffffff"));
    // Texts of one width compare as the numbers do.
    assert_eq!(integer(&database, "SELECT count(*) FROM packets WHERE va <= '0xfffffffffffffffa'"), 15);
    for _ in 0..3 {
        assert_eq!(integer(&database, "SELECT frame_no FROM packets WHERE va = '0xfffffffffffffffe'"), 2);
    }
    // A quantity beyond SQLite's integers is not a negative one, and is found as what it is shown as.
    let huge = UInt64Array::from(vec![1, u64::MAX, 3]);
    let database = Memory::default().with("t", vec![batch(vec![("bytes", Arc::new(huge))])]).database();
    let shown = values(&database, "SELECT bytes FROM t");
    assert_eq!(shown.rows, [[text("1")], [text("0xffffffffffffffff")], [text("3")]]);
    for _ in 0..3 {
        assert_eq!(integer(&database, "SELECT count(*) FROM t WHERE bytes = 3"), 1);
        assert_eq!(integer(&database, "SELECT count(*) FROM t WHERE bytes = '0xffffffffffffffff'"), 1);
        assert_eq!(integer(&database, "SELECT count(*) FROM t WHERE bytes < 0"), 0);
    }
}

#[test]
fn point_5_a_nul_in_the_query_is_refused_since_it_would_cut_it() {
    let database = database(10);
    let error = refusal(&database, "SELECT count(*) FROM packets\0 WHERE frame_no < 3");
    assert!(matches!(error, Error::Sql { fault: Fault::Nul, .. }), "{error:?}");
    // In a value it is a character as any other.
    let given = [("text", Value::Text("a\0b".to_owned()))];
    let table = database.query("SELECT length(CAST(:text AS BLOB)) AS n, :text AS t", &given, &mut Unobserved).unwrap();
    assert_eq!(wirelab::sql::rows(&table).rows, [[Value::Integer(3), text("a\0b")]]);
}

#[test]
fn point_6_no_place_outside_of_a_table_is_read() {
    for count in [0, 1, 99, 100, 101, 250] {
        let database = database(count);
        let found = |sql: &str| integer(&database, sql);
        let rows = count as i64;
        assert_eq!(found("SELECT count(*) FROM packets"), rows);
        for row in ["-9223372036854775808", "-1", "0", "9223372036854775807", "1e300", "NULL", "'x'"] {
            assert_eq!(found(&format!("SELECT count(*) FROM packets WHERE rowid = {row}")), 0, "{row}");
        }
        for row in 1..=rows {
            assert_eq!(found(&format!("SELECT frame_no FROM packets WHERE rowid = {row}")), row);
        }
        assert_eq!(found(&format!("SELECT count(*) FROM packets WHERE rowid = {}", rows + 1)), 0);
        for column in ["frame_no", "flow_id", "src_ip", "comment", "va", "port"] {
            let joined = format!(
                "SELECT count(*) FROM packets a LEFT JOIN packets b ON a.{column} = b.{column} AND b.frame_no < 0"
            );
            assert_eq!(found(&joined), rows, "{column}");
        }
        assert_eq!(values(&database, "SELECT * FROM packets").rows.len(), count as usize);
    }
}

/// On an idle machine it is some 20 ms; tests run on busy ones. The queries would take hours.
const PATIENCE: Duration = Duration::from_secs(5);

/// Stops a query after a while.
struct Impatient(Instant, Duration);

impl Observer for Impatient {
    fn on_progress(&mut self, _: u64, _: Option<u64>) -> ControlFlow<()> {
        if self.0.elapsed() > self.1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn point_7_whoever_watches_can_stop_a_query_at_once() {
    let database = Memory::default().with("packets", packets(200_000, 10, 8_192)).database();
    let endless = [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT count(*) FROM packets a, packets b, packets c WHERE a.length < b.length + c.length",
        "SELECT count(*) FROM packets a JOIN packets b ON a.flow_id = b.flow_id",
        "SELECT a.frame_no FROM packets a, packets b ORDER BY a.length * b.length",
    ];
    for sql in endless {
        let start = Instant::now();
        let mut observer = Impatient(start, Duration::from_millis(200));
        let error = database.query(sql, &[], &mut observer).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error:?}");
        assert!(start.elapsed() < PATIENCE, "{:?} for {sql}", start.elapsed());
    }
    // The next query knows nothing of it.
    assert_eq!(integer(&database, "SELECT count(*) FROM packets"), 200_000);
}

#[test]
fn point_8_a_query_ends_at_its_time_also_while_it_sorts() {
    let limits = QueryLimits { time: Duration::from_millis(300), ..QueryLimits::default() };
    let database = Memory::default().with("packets", packets(200_000, 10, 8_192)).database_with(limits);
    let slow = [
        "SELECT a.frame_no FROM packets a, packets b ORDER BY a.length * b.length",
        "SELECT median(a.length * b.length) FROM packets a, packets b",
        "SELECT count(*) FROM (SELECT DISTINCT a.length * b.delta FROM packets a, packets b)",
    ];
    for sql in slow {
        let start = Instant::now();
        let error = refusal(&database, sql);
        let is_time = matches!(&error, Error::Sql { fault: Fault::TimeLimit { limit }, .. } if *limit == limits.time);
        assert!(is_time, "{error:?}");
        assert!(error.to_string().contains("0.3 s"), "{error}");
        assert!(start.elapsed() < PATIENCE, "{:?} for {sql}", start.elapsed());
    }
}

#[test]
fn point_9_what_gathers_values_is_capped_and_the_database_lives_on() {
    let limits = QueryLimits { bytes: 100_000, ..QueryLimits::default() };
    let database = Memory::default().with("packets", packets(100_000, 10, 8_192)).database_with(limits);
    let hungry = [
        "SELECT median(length) FROM packets",
        "SELECT quantile(length, 0.9) FROM packets",
        "SELECT * FROM packets",
        "SELECT group_concat(src_ip) FROM packets",
        "SELECT json_group_array(length) FROM packets",
        "SELECT hex(zeroblob(90000))",
    ];
    for sql in hungry {
        let error = refusal(&database, sql);
        let is_memory = matches!(&error, Error::Sql { fault: Fault::MemoryLimit { .. }, .. });
        assert!(is_memory, "{sql}: {error:?}");
        assert_eq!(integer(&database, "SELECT count(*) FROM packets"), 100_000);
    }
    // What a group gathered is given back when it is done.
    let sql = "SELECT count(*) FROM (SELECT frame_no / 5000, median(length) FROM packets GROUP BY 1)";
    assert_eq!(integer(&database, sql), 21);
}

#[test]
fn point_10_a_query_can_read_and_nothing_else() {
    let database = database(10);
    let hostile = [
        "INSERT INTO packets(frame_no) VALUES (1)",
        "UPDATE packets SET frame_no = 1",
        "DELETE FROM packets",
        "DROP TABLE packets",
        "CREATE TABLE t(x)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON packets BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE t USING fts5(x)",
        "ALTER TABLE packets RENAME TO p",
        "ATTACH '/etc/passwd' AS p",
        "ATTACH ':memory:' AS p",
        "DETACH memory",
        "PRAGMA user_version",
        "PRAGMA writable_schema = 1",
        "PRAGMA table_info(packets)",
        "SELECT * FROM pragma_table_info('packets')",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM dbstat",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('x')",
        "SELECT sqlite_log(1, 'x')",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "RELEASE s",
        "REINDEX",
        "ANALYZE",
        "VACUUM",
        "VACUUM INTO '/tmp/wirelab-must-not-be-there.db'",
        "EXPLAIN DELETE FROM packets",
        "WITH x AS (SELECT 1) DELETE FROM packets",
        "REPLACE INTO sqlite_master VALUES (1, 2, 3, 4, 5)",
        "UPDATE sqlite_master SET sql = ''",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/x', 'x')",
        "SELECT edit('x')",
    ];
    for sql in hostile {
        let error = refusal(&database, sql);
        assert!(matches!(error, Error::Sql { .. }), "{sql}: {error:?}");
        for lang in [wirelab::Lang::En, wirelab::Lang::Zh] {
            assert!(!error.message(lang).is_empty());
        }
    }
    assert!(!std::path::Path::new("/tmp/wirelab-must-not-be-there.db").exists());
    for sql in ["", "   ", "-- nothing", ";"] {
        assert!(matches!(refusal(&database, sql), Error::Sql { fault: Fault::Empty, .. }), "{sql:?}");
    }
    let error = refusal(&database, "SELECT 1; SELECT 2");
    assert!(matches!(error, Error::Sql { fault: Fault::SeveralStatements, .. }), "{error:?}");
    assert_eq!(integer(&database, "SELECT 1 ; -- and no more\n"), 1);
    let delete = refusal(&database, "DELETE FROM packets");
    assert!(matches!(delete, Error::Sql { fault: Fault::NotReadOnly, .. }), "{delete:?}");
}

#[test]
fn point_11_ten_sources_and_a_bare_name_means_the_first() {
    let mut database = Database::new(QueryLimits::default());
    let of = |count| Arc::new(Memory::default().with("packets", packets(count, 7, 100)));
    for number in 1..=10_u64 {
        database.attach(&format!("s{number}"), of(number)).unwrap();
    }
    let error = database.attach("s11", of(11)).unwrap_err();
    assert!(matches!(error, Error::Sql { fault: Fault::TooManySchemas { limit: 10 }, .. }), "{error:?}");
    assert_eq!(integer(&database, "SELECT count(*) FROM packets"), 1);
    for number in 1..=10 {
        assert_eq!(integer(&database, &format!("SELECT count(*) FROM s{number}.packets")), number);
    }
    let joined = "SELECT count(*) FROM s9.packets a JOIN s10.packets b ON a.frame_no = b.frame_no";
    assert_eq!(integer(&database, joined), 9);
}

#[test]
fn point_12_values_keep_their_kind_in_every_comparison() {
    let database = database(20);
    let kinds = [
        ("frame_no", "integer"),
        ("time", "integer"),
        ("port", "integer"),
        ("delta", "integer"),
        ("share", "real"),
        ("src_ip", "text"),
        ("is_lost", "integer"),
        ("frames", "text"),
        ("comment", "text"),
        ("va", "text"),
    ];
    for (column, kind) in kinds {
        let sql = format!("SELECT typeof({column}) FROM packets WHERE frame_no = 6");
        assert_eq!(one(&database, &sql), text(kind), "{column}");
    }
    // By the name of its type, a list's text would otherwise be compared as a number, and 5 with '5' as different things.
    assert_eq!(integer(&database, "SELECT count(*) FROM packets WHERE frames = '[5,6]'"), 1);
    assert_eq!(integer(&database, "SELECT count(*) FROM packets WHERE is_lost = '1'"), 7);
    assert_eq!(integer(&database, "SELECT count(*) FROM packets WHERE is_lost"), 7);
    assert_eq!(integer(&database, "SELECT count(*) FROM packets WHERE share = '1'"), 1);
    assert_eq!(
        one(&database, "SELECT json_extract(frames, '$[1]') FROM packets WHERE frame_no = 3"),
        Value::Integer(3)
    );
}

#[test]
fn point_13_declared_types_come_back_and_a_union_that_does_not_fit_is_demoted() {
    let database = database(20);
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let kind = |sql: &str| table(&database, sql).schema.field(0).data_type().clone();
    assert_eq!(kind("SELECT time FROM packets"), time);
    assert_eq!(kind("SELECT t FROM (SELECT DISTINCT time AS t FROM packets)"), time);
    assert_eq!(kind("WITH x AS (SELECT time FROM packets) SELECT time FROM x GROUP BY time"), time);
    assert_eq!(kind("SELECT is_lost FROM packets LIMIT 0"), DataType::Boolean);
    assert_eq!(kind("SELECT is_lost FROM packets"), DataType::Boolean);
    assert_eq!(kind("SELECT port FROM packets"), DataType::UInt16);
    assert_eq!(kind("SELECT frame_no FROM packets"), DataType::UInt64);
    assert_eq!(kind("SELECT max(time) FROM packets"), DataType::Int64);
    assert_eq!(kind("SELECT CAST(port AS INTEGER) FROM packets"), DataType::Int64);
    // The declared type is the first arm's.
    assert_eq!(kind("SELECT is_lost FROM packets UNION ALL SELECT delta FROM packets"), DataType::Int64);
    assert_eq!(kind("SELECT port FROM packets UNION ALL SELECT 70000"), DataType::Int64);
    assert_eq!(kind("SELECT frame_no FROM packets UNION ALL SELECT -1"), DataType::Int64);
    assert_eq!(kind("SELECT time FROM packets UNION ALL SELECT 0.5"), DataType::Utf8);
    assert_eq!(kind("SELECT port FROM packets UNION ALL SELECT 0.5"), DataType::Float64);
    assert_eq!(kind("SELECT port FROM packets UNION ALL SELECT 'none'"), DataType::Utf8);
    let mixed = values(&database, "SELECT 7 UNION ALL SELECT 0.5 UNION ALL SELECT NULL UNION ALL SELECT 'x'");
    assert_eq!(mixed.rows, [[text("7")], [text("0.5")], [Value::Null], [text("x")]]);
    // A real column would round this one.
    let large = values(&database, "SELECT 9007199254740993 AS n UNION ALL SELECT 0.5");
    assert_eq!(large.rows, [[text("9007199254740993")], [text("0.5")]]);
}

#[test]
fn point_14_whole_numbers_divide_to_whole_numbers_sums_of_times_overflow_and_names_that_repeat_are_numbered() {
    let database = database(20);
    assert_eq!(one(&database, "SELECT 10 / 4"), Value::Integer(2));
    assert_eq!(one(&database, "SELECT ratio(10, 4)"), Value::Real(2.5));
    let error = refusal(&database, "SELECT sum(time) FROM packets");
    assert!(error.to_string().contains("integer overflow"), "{error}");
    assert!(matches!(error, Error::Sql { fault: Fault::Failed, .. }), "{error:?}");
    for (sql, value) in
        [("sqrt(9)", 3.0), ("log(1000)", 3.0), ("log(2, 8)", 3.0), ("pow(2, 10)", 1024.0), ("ln(exp(2))", 2.0)]
    {
        let Value::Real(found) = one(&database, &format!("SELECT {sql}")) else { panic!("{sql}") };
        assert!((found - value).abs() < 1e-9, "{sql} = {found}");
    }
    let columns = values(
        &database,
        "SELECT a.frame_no, b.frame_no, 1 AS frame_no_2, port, port FROM packets a JOIN packets b USING (port)",
    )
    .columns;
    assert_eq!(columns, ["frame_no", "frame_no_2", "frame_no_2_2", "port", "port_2"]);
}
