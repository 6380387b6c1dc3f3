//! The tables of captures.

use std::sync::Arc;
use std::time::Instant;

use wirelab::sql::{Database, Part, QueryLimits, Source, Value, Wanted, rows};
use wirelab::wire::Ip;
use wirelab::{Error, Filter, Input, Options, TABLES, TableId, Unobserved};

use super::sources::*;
use crate::support::generate::{START_NS, pcap, pcap_record_header, traffic, udp};
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
        part: None,
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
    // Enough rows for several batches, in frames large enough for a large capture.
    let mut bytes = pcap(&traffic(2_000, 5));
    let frame = udp([10, 0, 0, 1], [10, 0, 1, 1], (10_000, 5201), 800);
    for number in 0..80_000 {
        bytes.extend(pcap_record_header(START_NS + 1_000_000_000 + number, frame.len() as u32));
        bytes.extend(&frame);
    }
    let (length, frames) = (bytes.len() as u64, 82_000);
    assert!(length > 64 << 20);
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
        ("SELECT frame_no FROM packets LIMIT 7 OFFSET 20000", true),
        ("SELECT * FROM (SELECT frame_no FROM packets LIMIT 3)", true),
        ("SELECT frame_no FROM packets LIMIT 0", true),
        ("SELECT frame_no FROM packets UNION ALL SELECT frame_no + 1 FROM packets LIMIT 82500", false),
        ("SELECT frame_no FROM packets WHERE frame_no > 80000 LIMIT 2", false),
        ("SELECT frame_no FROM packets WHERE frame_no % 80000 = 1999 LIMIT 1", false),
        ("SELECT frame_no FROM packets ORDER BY frame_no DESC LIMIT 2", false),
        ("SELECT DISTINCT protocol FROM packets ORDER BY 1 LIMIT 20", false),
        ("SELECT count(*) FROM packets LIMIT 1", false),
        ("SELECT count(*) OVER () FROM packets LIMIT 1", false),
        ("SELECT (SELECT count(*) FROM packets), frame_no FROM packets LIMIT 1", false),
        ("SELECT count(*) FROM (SELECT frame_no FROM packets LIMIT 10) a CROSS JOIN packets b", false),
        ("SELECT a.frame_no FROM packets a JOIN packets b ON b.frame_no = a.frame_no + 80000 LIMIT 1", false),
        ("SELECT client_ip FROM tcp_flows LIMIT 4", false),
        ("SELECT frame_no FROM packets LIMIT -1 OFFSET 80000", false),
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

#[test]
fn a_filter_gives_the_same_answer_where_the_table_would_not_fit_memory() {
    let bytes: Arc<[u8]> = pcap(&traffic(1_500, 5)).into();
    let open = |budget: u64| {
        let options = Options { memory_budget_bytes: Some(budget), ..Options::default() };
        wirelab::open([Input::Bytes(bytes.clone())], &options).unwrap()
    };
    let whole = open(1 << 40);
    let ask = |capture: &wirelab::Capture, sql: &str| {
        rows(&capture.sql(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"))).rows
    };
    let first = |sql: &str| match ask(&whole, sql).swap_remove(0).swap_remove(0) {
        Value::Text(text) => format!("'{text}'"),
        Value::Integer(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let ip = first("SELECT src_ip FROM tcp GROUP BY 1 ORDER BY count(*) DESC LIMIT 1");
    let port = first("SELECT dst_port FROM tcp GROUP BY 1 ORDER BY count(*) DESC LIMIT 1");
    let time = first("SELECT time FROM packets WHERE frame_no = 800");
    let mut compared = 0;
    for table in ["packets", "tcp", "roce", "icmp"] {
        // `@` stands for the name of the table, where it needs one.
        for condition in [
            format!("@src_ip = {ip}"),
            format!("@dst_ip = {ip} AND @src_ip <> {ip}"),
            format!("{ip} = @src_ip AND @time < {time}"),
            format!("@time >= {time} AND @time < {time} + 1000000"),
            format!("@time > {time} AND @time <= 9223372036854775807"),
            format!("@time BETWEEN {time} AND {time}"),
            format!("@src_ip = {ip} OR @src_ip = '10.1.3.1'"),
            format!("@src_ip IN ({ip}, '10.1.3.1')"),
            format!("NOT @src_ip = {ip}"),
            format!("@src_ip = {ip} COLLATE NOCASE"),
            "@src_ip = 'no address'".to_owned(),
            "@src_ip IS NULL".to_owned(),
            format!("@src_port = {port} OR @dst_port = {port}"),
            format!("@dst_port = {port} AND @time < {time}"),
            format!("@dst_port = '{port}' AND @dst_port = {port}.0"),
            "@dst_port = 70000".to_owned(),
        ] {
            if condition.contains("port") && table == "icmp" {
                continue;
            }
            let (plain, of_a, of_b) =
                (condition.replace('@', ""), condition.replace('@', "a."), condition.replace('@', "b."));
            for sql in [
                format!("SELECT frame_no, time FROM {table} WHERE {plain}"),
                format!("SELECT rowid, frame_no FROM {table} WHERE {plain} ORDER BY frame_no DESC LIMIT 3"),
                format!("SELECT (SELECT count(*) FROM {table}), count(*) FROM {table} WHERE {plain}"),
                format!(
                    "SELECT count(*), count(b.frame_no) FROM (SELECT * FROM {table} WHERE {plain}) a \
                     LEFT JOIN {table} b ON b.frame_no = a.frame_no + 1 AND ({of_b})"
                ),
                format!(
                    "SELECT count(*), count(a.frame_no) FROM {table} a \
                     RIGHT JOIN {table} b ON a.frame_no = b.frame_no AND ({of_a})"
                ),
            ] {
                // A budget of nothing: every table is too large, and every answer comes from what is enough for it.
                assert_eq!(ask(&open(1), &sql), ask(&whole, &sql), "{sql}");
                compared += 1;
            }
        }
    }
    let host = Filter { hosts: vec![Ip::v4([10, 1, 3, 1])], ..Filter::default() };
    let wanted = Wanted { table: "packets".to_owned(), columns: vec![], part: Some(Part::Kept(host)) };
    let loaded =
        |budget| Source::load(&open(budget), std::slice::from_ref(&wanted), &mut Unobserved).unwrap()[0].num_rows();
    assert!((1..100).contains(&loaded(1)), "{} rows for one host", loaded(1));
    assert_eq!(loaded(1 << 40), 1_500, "what fits is kept whole, for the next query");
    assert!(compared > 250, "{compared} queries");
}

#[test]
fn a_source_is_told_which_rows_are_enough() {
    /// Notes what is asked of a capture.
    struct Notes(wirelab::Capture, std::sync::Mutex<Vec<Option<Part>>>);
    impl Source for Notes {
        fn table_names(&self) -> Vec<&str> {
            Source::table_names(&self.0)
        }
        fn table(&self, name: &str) -> Option<Result<Arc<wirelab::TableData>, Error>> {
            Source::table(&self.0, name)
        }
        fn load(
            &self,
            wanted: &[Wanted],
            observer: &mut dyn wirelab::Observer,
        ) -> Result<Vec<Arc<wirelab::TableData>>, Error> {
            self.1.lock().unwrap().extend(wanted.iter().map(|one| one.part.clone()));
            Source::load(&self.0, wanted, observer)
        }
    }
    let told = |sql: &str| {
        let notes = Arc::new(Notes(capture("tcp-loss/tcp-loss.h1.pcap"), std::sync::Mutex::default()));
        let mut database = Database::new(QueryLimits::default());
        database.attach("capture", notes.clone()).unwrap();
        database.query(sql, &[], &mut Unobserved).unwrap();
        notes.1.lock().unwrap().pop().unwrap()
    };
    let kept = |filter: Filter| Some(Part::Kept(filter));
    let host = Filter { hosts: vec![Ip::v4([10, 9, 1, 2])], ..Default::default() };
    assert_eq!(told("SELECT frame_no FROM tcp LIMIT 4 OFFSET 2"), Some(Part::First(6)));
    assert_eq!(told("SELECT frame_no FROM tcp WHERE src_ip = '10.9.1.2'"), kept(host.clone()));
    assert_eq!(
        told("SELECT count(*) FROM tcp WHERE dst_port = 5201 AND time > 5 AND time > 3 AND time <= 8"),
        kept(Filter { ports: vec![5201], time_from_ns: Some(6), time_to_ns: Some(9), ..Default::default() })
    );
    for sql in [
        "SELECT frame_no FROM tcp",
        "SELECT frame_no FROM tcp ORDER BY time LIMIT 3",
        "SELECT rowid FROM tcp WHERE src_ip = '10.9.1.2'",
        "SELECT frame_no FROM tcp WHERE src_ip = '10.9.1.2' OR dst_port = 5201",
        "SELECT count(*) FROM tcp a, tcp b WHERE a.src_ip = '10.9.1.2' AND a.frame_no = b.frame_no",
        "SELECT count(*) FROM tcp WHERE src_ip = '10.9.1.2' UNION ALL SELECT count(*) FROM tcp",
    ] {
        assert_eq!(told(sql), None, "{sql}");
    }
}
