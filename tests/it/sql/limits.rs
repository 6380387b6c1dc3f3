//! What a query may take, and what is said of one that is at fault.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirelab::sql::{Database, Fault, QueryLimits, Value, rows};
use wirelab::{Error, Lang, Observer, Unobserved};

use super::sources::*;

fn fault(error: &Error) -> &Fault {
    match error {
        Error::Sql { fault, .. } => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fault_is_shown_where_it_stands_with_the_name_that_was_probably_meant() {
    let database = database(10);
    let error = refusal(&database, "SELECT frame_no,\n       flowid FROM packets");
    assert_eq!(*fault(&error), Fault::UnknownColumn { name: "flowid".to_owned(), nearest: Some("flow_id".to_owned()) });
    let expected = "there is no column flowid (did you mean flow_id?)\n         flowid FROM packets\n         ^";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, Error::Sql { offset: Some(24), .. }), "{error:?}");

    let error = refusal(&database, "SELECT count(*) FROM Packet");
    assert_eq!(*fault(&error), Fault::UnknownTable { name: "Packet".to_owned(), nearest: Some("packets".to_owned()) });
    assert!(error.to_string().ends_with("\n  SELECT count(*) FROM Packet\n                       ^"), "{error}");

    let error = refusal(&database, "SELECT frame_no FORM packets WHERE 1");
    assert_eq!(*fault(&error), Fault::Refused);
    assert!(error.to_string().contains("syntax error") && error.to_string().contains('^'), "{error}");
    assert!(error.message(Lang::Zh).starts_with("查询语句有误"), "{}", error.message(Lang::Zh));

    // A wide character takes two places.
    let error = refusal(&database, "SELECT '重传', flowid FROM packets");
    assert!(error.to_string().ends_with("\n  SELECT '重传', flowid FROM packets\n                 ^"), "{error}");

    let error = refusal(&database, "SELECT count(*) FROM packets WHERE src_ip = \"10.0.0.1\"");
    assert_eq!(*fault(&error), Fault::DoubleQuoted { name: "10.0.0.1".to_owned() });
    assert!(error.to_string().contains("'10.0.0.1'"), "{error}");

    let error = refusal(&database, "SELECT other.frame_no FROM packets");
    assert!(error.to_string().contains("other.frame_no"), "{error}");
    let error = refusal(&database, "SELECT count(*) FROM memori.packet");
    assert!(error.to_string().contains("(did you mean memory.packets?)"), "{error}");
    let long = format!("SELECT {} flowid FROM packets", "1, ".repeat(500));
    let error = refusal(&database, &long).to_string();
    assert!(error.len() < 400 && error.contains('^'), "{error}");
}

#[test]
fn parameters_are_bound_by_name_and_never_become_part_of_the_query() {
    let database = database(10);
    let ask = |sql: &str, given: &[(&str, Value)]| database.query(sql, given, &mut Unobserved);
    let hostile = "x' OR '1' = '1";
    let given = [("ip", text(hostile)), ("unused", Value::Null)];
    let none = ask("SELECT count(*) AS n FROM packets WHERE src_ip = :ip", &given).unwrap();
    assert_eq!(rows(&none).rows, [[Value::Integer(0)]]);
    let all = [("i", Value::Integer(-5)), ("r", Value::Real(0.25)), ("t", text("重传")), ("n", Value::Null)];
    let echo = ask("SELECT :i AS i, :r AS r, :t AS t, :n AS n, @i AS j, $t AS u", &all).unwrap();
    let shown = rows(&echo);
    assert_eq!(
        shown.rows,
        [[Value::Integer(-5), Value::Real(0.25), text("重传"), Value::Null, Value::Integer(-5), text("重传")]]
    );
    assert_eq!(shown.get(0, "t"), Some(&text("重传")));

    let error = ask("SELECT :port", &[("ports", Value::Integer(1))]).unwrap_err();
    assert_eq!(*fault(&error), Fault::MissingParameter { name: "port".to_owned(), nearest: Some("ports".to_owned()) });
    assert!(error.to_string().contains(":port") && error.to_string().contains("did you mean ports?"), "{error}");
    for unnamed in ["SELECT ?", "SELECT ?1", "SELECT :a, ?"] {
        let error = ask(unnamed, &[("a", Value::Null), ("1", Value::Null)]).unwrap_err();
        assert_eq!(*fault(&error), Fault::UnnamedParameter, "{unnamed}");
    }
}

#[test]
fn too_many_rows_are_an_error_and_not_a_shorter_answer() {
    let limits = QueryLimits { rows: 100, ..QueryLimits::default() };
    let database = Memory::default().with("packets", packets(101, 7, 100)).database_with(limits);
    let error = refusal(&database, "SELECT frame_no FROM packets");
    assert_eq!(*fault(&error), Fault::RowLimit { limit: 100 });
    assert!(error.to_string().contains("100 rows"), "{error}");
    assert_eq!(integers(&database, "SELECT frame_no FROM packets LIMIT 100").len(), 100);
}

#[test]
fn names_of_sources_are_checked() {
    let source = || Arc::new(Memory::default().with("packets", packets(1, 1, 1)));
    for wrong in ["", "temp", "TEMP", "1a", "a-b", "a b", "a\"b", "a;b", "a.b", &"x".repeat(65)] {
        let error = Database::new(QueryLimits::default()).attach(wrong, source()).unwrap_err();
        assert_eq!(*fault(&error), Fault::SchemaName { name: wrong.to_owned() });
    }
    let mut database = Database::new(QueryLimits::default());
    for good in ["main", "jumbo", "标准", "order", "_x1"] {
        database.attach(good, source()).unwrap();
        assert_eq!(integer(&database, &format!("SELECT count(*) FROM \"{good}\".packets")), 1);
    }
    for taken in ["Jumbo", "main", "标准"] {
        assert!(database.attach(taken, source()).is_err(), "{taken}");
    }
    let mut database = Database::new(QueryLimits::default());
    database.attach("MAIN", source()).unwrap();
    for name in ["packets", "Main.packets", "main.packets"] {
        assert_eq!(integer(&database, &format!("SELECT count(*) FROM {name} WHERE 1")), 1);
    }
}

#[test]
fn hostile_queries_end_in_an_error_and_not_in_a_crash() {
    let database = database(10);
    let deep = |open: &str, inner: &str, close: &str, times: usize| {
        format!("SELECT {}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let hostile = [
        deep("(", "1", ")", 5_000),
        deep("(SELECT ", "1", ")", 5_000),
        deep("abs(", "1", ")", 5_000),
        format!("SELECT {}1", "1 + ".repeat(50_000)),
        format!("SELECT {}1", "NOT ".repeat(50_000)),
        format!("SELECT {}", "x".repeat(2_000_000)),
        format!("SELECT 1 {}", "UNION SELECT 1 ".repeat(5_000)),
        format!("SELECT count(*) FROM packets {}", ", packets ".repeat(100)),
        format!("SELECT {}", "1,".repeat(5_000)),
        "SELECT printf('%.*c', 1000000000, 'x')".to_owned(),
        "SELECT zeroblob(1000000000)".to_owned(),
        "SELECT 'a' LIKE printf('%.*c', 60000, '%')".to_owned(),
        "\u{feff}SELECT".to_owned(),
        "SELECT \u{202e}1".to_owned(),
    ];
    for sql in hostile {
        let start = Instant::now();
        let _ = refusal(&database, &sql);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?} for {}", start.elapsed(), &sql[..20]);
    }
}

/// Counts how often it is asked.
struct Counter(u32);

impl Observer for Counter {
    fn on_progress(&mut self, _: u64, _: Option<u64>) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

#[test]
fn an_observer_is_asked_all_along_on_the_thread_of_the_caller() {
    let limits = QueryLimits { time: Duration::from_millis(500), ..QueryLimits::default() };
    let database = Memory::default().database_with(limits);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let mut counter = Counter(0);
    assert!(matches!(
        database.query(endless, &[], &mut counter),
        Err(Error::Sql { fault: Fault::TimeLimit { .. }, .. })
    ));
    assert!(counter.0 >= 5, "{}", counter.0);
}

#[test]
fn queries_run_side_by_side() {
    let database = Memory::default().with("packets", packets(20_000, 100, 8_192)).database();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let joined = "SELECT count(*) FROM packets a JOIN packets b ON a.flow_id = b.flow_id";
                for _ in 0..3 {
                    assert_eq!(integer(&database, joined), 4_000_000);
                }
            });
        }
    });
}
