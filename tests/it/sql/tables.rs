//! The tables of captures.

use std::sync::Arc;
use std::time::Instant;

use wirelab::sql::{Database, QueryLimits, Source, Value, Wanted, rows};
use wirelab::{Error, Input, Options, TABLES, TableId, Unobserved};

use super::sources::*;
use crate::support::generate::{pcap, traffic};
use crate::support::sample;

fn capture(name: &str) -> wirelab::Capture {
    wirelab::open([sample(name)], &Options::default()).unwrap()
}

fn database_of(name: &str) -> Database {
    let mut database = Database::new(QueryLimits::default());
    database.attach("capture", Arc::new(capture(name))).unwrap();
    database
}

#[test]
fn every_table_of_a_capture_reads_in_sql_as_it_is() {
    for name in [
        "tcp-loss/tcp-loss.h1.pcap",
        "roce-verbs/roce-verbs.pcap",
        "roce-pfc/roce-pfc.pcap",
        "vxlan-kubernetes/vxlan-kubernetes.node.pcap",
    ] {
        let (capture, database) = (capture(name), database_of(name));
        for id in TABLES {
            let (table_name, direct) = (id.name(), capture.table(id).unwrap());
            let through = table(&database, &format!("SELECT * FROM {table_name}"));
            assert_eq!(rows(&through), rows(&direct), "{table_name} of {name}");
            assert_eq!(integer(&database, &format!("SELECT count(*) FROM {table_name}")), direct.num_rows() as i64);
        }
    }
}

#[test]
fn remote_addresses_are_hex_texts_that_can_be_looked_up() {
    let database = database_of("roce-verbs/roce-verbs.pcap");
    let first = "SELECT va FROM roce WHERE va IS NOT NULL ORDER BY frame_no LIMIT 1";
    let Value::Text(address) = one(&database, first) else { panic!() };
    assert!(address.len() == 18 && address.starts_with("0x"), "{address}");
    let count = format!("SELECT count(*) > 0 FROM roce WHERE va = '{address}'");
    assert_eq!(integer(&database, &count), 1);
    let one_type = "SELECT DISTINCT typeof(va) FROM roce WHERE va IS NOT NULL";
    assert_eq!(one(&database, one_type), text("text"));
}

#[test]
fn two_captures_are_compared_in_one_query() {
    let mut database = Database::new(QueryLimits::default());
    database.attach("standard", Arc::new(capture("tcp-mtu-1500/tcp-mtu-1500.pcap"))).unwrap();
    database.attach("jumbo", Arc::new(capture("tcp-mtu-9000/tcp-mtu-9000.pcap"))).unwrap();
    let sql = "SELECT (SELECT max(client_mss) FROM standard.tcp_flows), (SELECT max(client_mss) FROM jumbo.tcp_flows), \
               (SELECT max(client_mss) FROM tcp_flows)";
    let found = values(&database, sql);
    assert_eq!(found.rows, [[Value::Integer(1460), Value::Integer(8960), Value::Integer(1460)]]);
}

#[test]
fn a_capture_answers_by_itself() {
    let capture = capture("tcp-loss/tcp-loss.h1.pcap");
    let sql = "SELECT count(*) AS n FROM tcp WHERE verdict = :verdict";
    let resent = capture.sql(sql, &[("verdict", text("retransmit"))]).unwrap();
    let table = capture.table(TableId::Tcp).unwrap();
    let at = table.schema.index_of("verdict").unwrap();
    let expected = rows(&table).rows.iter().filter(|row| row[at] == text("retransmit")).count();
    assert!(expected > 0);
    assert_eq!(rows(&resent).rows, [[Value::Integer(expected as i64)]]);
    assert!(matches!(capture.sql("SELECT x", &[]), Err(Error::Sql { .. })));
}

#[test]
fn of_a_large_capture_only_the_columns_that_a_query_reads_are_computed() {
    let file = pcap(&traffic(70_000, 3));
    let least = 64 << 20;
    // The records again and again, until the capture is a large one.
    let mut bytes = file.clone();
    while bytes.len() <= least {
        bytes.extend_from_slice(&file[24..]);
    }
    let frames = 70_000 * ((bytes.len() - 24) / (file.len() - 24));
    let capture = wirelab::open([Input::from(bytes)], &Options::default()).unwrap();
    let wanted = |table: &str, columns: &[&str]| Wanted {
        table: table.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        rows: None,
    };
    let start = Instant::now();
    let found = capture.sql("SELECT count(*) AS n FROM packets", &[]).unwrap();
    let counting = start.elapsed();
    assert_eq!(rows(&found).rows, [[Value::Integer(frames as i64)]]);
    let loaded = Source::load(&capture, &[wanted("packets", &[])], &mut Unobserved).unwrap();
    assert!(loaded[0].schema.fields().is_empty());
    let sql = "SELECT max(captured_bytes) AS most, count(DISTINCT src_ip) AS sources FROM packets";
    let first = rows(&capture.sql(sql, &[]).unwrap());
    let names =
        |data: &wirelab::TableData| data.schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let loaded = Source::load(&capture, &[wanted("packets", &["src_ip"])], &mut Unobserved).unwrap();
    assert_eq!(names(&loaded[0]), ["captured_bytes", "src_ip"]);
    // A further column joins those, and the whole table takes their place.
    capture.sql("SELECT min(frame_no) FROM packets", &[]).unwrap();
    let loaded = Source::load(&capture, &[wanted("packets", &[])], &mut Unobserved).unwrap();
    assert_eq!(names(&loaded[0]).len(), 3);
    let start = Instant::now();
    assert_eq!(capture.table(TableId::Packets).unwrap().num_rows(), frames);
    println!("count(*) {counting:?}, whole table {:?}", start.elapsed());
    assert_eq!(rows(&capture.sql(sql, &[]).unwrap()), first);
}

/// Notes how far the reading came.
struct Furthest(u64);

impl wirelab::Observer for Furthest {
    fn on_progress(&mut self, done_bytes: u64, _: Option<u64>) -> std::ops::ControlFlow<()> {
        self.0 = self.0.max(done_bytes);
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn a_limit_alone_reads_no_more_of_a_large_capture_than_it_takes() {
    let file = pcap(&traffic(20_000, 5));
    let mut bytes = file.clone();
    while bytes.len() <= 64 << 20 {
        bytes.extend_from_slice(&file[24..]);
    }
    let (length, frames) = (bytes.len() as u64, (20_000 * ((bytes.len() - 24) / (file.len() - 24))) as i64);
    let bytes: std::sync::Arc<[u8]> = bytes.into();
    let open = || wirelab::open([Input::Bytes(bytes.clone())], &Options::default()).unwrap();
    let whole = open();
    whole.load(&[TableId::Packets, TableId::TcpFlows], &mut Unobserved).unwrap();
    let ask = |capture: &wirelab::Capture, sql: &str| {
        let mut furthest = Furthest(0);
        let limits = wirelab::sql::QueryLimits { time: std::time::Duration::from_secs(600), ..Default::default() };
        let found =
            capture.sql_observed(sql, &[], limits, &mut furthest).unwrap_or_else(|error| panic!("{sql}: {error}"));
        (rows(&found).rows, furthest.0)
    };
    for (sql, is_short) in [
        ("SELECT frame_no, src_ip FROM packets LIMIT 5", true),
        ("SELECT frame_no FROM packets LIMIT 7 OFFSET 40000", true),
        ("SELECT * FROM (SELECT frame_no FROM packets LIMIT 3)", true),
        ("SELECT frame_no FROM packets LIMIT 0", true),
        ("SELECT frame_no FROM packets UNION ALL SELECT frame_no + 1 FROM packets LIMIT 260000", false),
        ("SELECT frame_no FROM packets WHERE frame_no > 200000 LIMIT 2", false),
        ("SELECT frame_no FROM packets WHERE frame_no % 200000 = 1999 LIMIT 1", false),
        ("SELECT frame_no FROM packets ORDER BY frame_no DESC LIMIT 2", false),
        ("SELECT DISTINCT protocol FROM packets ORDER BY 1 LIMIT 20", false),
        ("SELECT count(*) FROM packets LIMIT 1", false),
        ("SELECT count(*) OVER () FROM packets LIMIT 1", false),
        ("SELECT (SELECT count(*) FROM packets), frame_no FROM packets LIMIT 1", false),
        ("SELECT count(*) FROM (SELECT frame_no FROM packets LIMIT 10) a CROSS JOIN packets b", false),
        ("SELECT a.frame_no FROM packets a JOIN packets b ON b.frame_no = a.frame_no + 200000 LIMIT 1", false),
        ("SELECT client_ip FROM tcp_flows LIMIT 4", false),
        ("SELECT frame_no FROM packets LIMIT -1 OFFSET 200000", false),
    ] {
        let (found, read) = ask(&open(), sql);
        assert_eq!(found, ask(&whole, sql).0, "{sql}");
        assert!(sql.ends_with("LIMIT 0") || !found.is_empty(), "{sql}: nothing to compare");
        assert!(!is_short || read < length / 2, "{sql}: {read} of {length} bytes were read");
    }
    // What was read for a limit is not taken for the table.
    let capture = open();
    ask(&capture, "SELECT frame_no FROM packets LIMIT 5");
    assert_eq!(ask(&capture, "SELECT count(frame_no) FROM packets").0, [[Value::Integer(frames)]]);
    assert_eq!(ask(&capture, "SELECT frame_no FROM packets LIMIT 1").0, [[Value::Integer(1)]]);
}
