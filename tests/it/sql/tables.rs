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
