//! The rows do not depend on the machine: 1, 2 and 7 threads give the same bytes, batch boundaries included. Flows are
//! spread by a hash whose seed differs from run to run, so these runs also differ in where each flow is analysed.

use std::path::PathBuf;
use std::sync::Arc;

use wirelab::{Input, ScanRequest, TABLES, TableId};

use crate::support::generate::{pcap, split_near, traffic};
use crate::support::{
    Scratch, TableBatches, all_tables, assert_same_tables, cells, crate_root, files_below, outside_folder, tables,
    with_threads,
};

const CAPTURES: [&str; 3] = [".pcap", ".pcapng", ".pcap.gz"];

#[test]
fn every_sample_gives_the_same_bytes_for_any_number_of_threads() {
    for path in files_below(&crate_root().join("sample-captures"), &CAPTURES) {
        compare(&|| vec![Input::Path(path.clone())], &path.display().to_string());
    }
}

#[test]
fn lab_captures_give_the_same_bytes_for_any_number_of_threads() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let captures = files_below(&folder, &CAPTURES);
    assert!(captures.len() > 50, "{} captures in {}", captures.len(), folder.display());
    for path in captures {
        compare(&|| vec![Input::Path(path.clone())], &path.display().to_string());
    }
}

#[test]
fn a_capture_of_many_windows_gives_the_same_bytes_for_any_number_of_threads() {
    let bytes: Arc<[u8]> = pcap(&traffic(120_000, 1)).into();
    let tables = compare(&|| vec![Input::Bytes(bytes.clone())], "generated capture");
    // Batches hold about 16,384 rows, so their boundaries were compared too, and every kind of row was there.
    for table in &tables {
        let (name, rows) = (table.table.name(), table.num_rows());
        assert!(rows > 0, "{name}: no row in the generated capture");
        match table.table {
            TableId::Packets => assert_eq!((rows, table.batches.len()), (120_000, 8)),
            TableId::Tcp => assert!(table.batches.len() > 4, "{name}: {} batches", table.batches.len()),
            TableId::Flows => assert!(rows > 1_000, "{name}: {rows} rows"),
            _ => {}
        }
    }
}

#[test]
fn several_files_give_the_same_bytes_for_any_number_of_threads() {
    let scratch = Scratch::new("threads-files");
    let packets = traffic(60_000, 2);
    let (first, second) = packets.split_at(split_near(&packets, 35_000));
    let other_host = traffic(40_000, 3);
    let paths: [PathBuf; 3] = [
        scratch.write("a.pcap1", &pcap(second)),
        scratch.write("b.pcap", &pcap(&other_host)),
        scratch.write("a.pcap0", &pcap(first)),
    ];
    let tables = compare(&|| paths.iter().map(|path| Input::Path(path.clone())).collect(), "three files");
    assert_eq!(tables[0].num_rows(), 100_000);
}

#[test]
fn a_scan_of_one_table_gives_the_rows_that_all_tables_together_give() {
    let mut captures: Vec<_> = files_below(&crate_root().join("sample-captures"), &CAPTURES)
        .into_iter()
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .collect();
    captures.push(("generated capture".to_owned(), pcap(&traffic(60_000, 4))));
    for (what, bytes) in captures {
        let bytes: Arc<[u8]> = bytes.into();
        let together = all_tables(vec![Input::Bytes(bytes.clone())], &with_threads(1)).unwrap();
        for table in TABLES {
            let request = ScanRequest::new(table);
            let alone = tables(vec![Input::Bytes(bytes.clone())], &with_threads(1), &[request]).unwrap();
            let same = together.iter().find(|other| other.table == table).unwrap();
            assert_same_tables(&alone, std::slice::from_ref(same), &what);
        }
    }
}

#[test]
fn a_column_alone_holds_what_it_holds_in_the_whole_table() {
    let bytes: Arc<[u8]> = pcap(&traffic(4_000, 5)).into();
    let input = || vec![Input::Bytes(bytes.clone())];
    let whole = all_tables(input(), &with_threads(1)).unwrap();
    for (table, whole) in TABLES.into_iter().zip(&whole) {
        assert!(whole.num_rows() > 0, "{}", table.name());
        for column in &table.definition().columns {
            let request = ScanRequest { columns: Some(vec![column.name.to_owned()]), ..ScanRequest::new(table) };
            let alone = tables(input(), &with_threads(1), &[request]).unwrap();
            let same = whole.without(|name| name != column.name);
            assert_same_tables(&alone, &[same], &format!("column {}", column.name));
        }
    }
}

#[test]
fn columns_come_in_the_order_they_are_asked_for() {
    let bytes: Arc<[u8]> = pcap(&traffic(4_000, 6)).into();
    for table in TABLES {
        let backwards: Vec<_> = table.definition().columns.iter().rev().map(|column| column.name.to_owned()).collect();
        let request = ScanRequest { columns: Some(backwards.clone()), ..ScanRequest::new(table) };
        let scanned = tables(vec![Input::Bytes(bytes.clone())], &with_threads(2), &[request]).unwrap();
        assert!(scanned[0].num_rows() > 0, "{}", table.name());
        for batch in &scanned[0].batches {
            let order: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
            assert_eq!(order, backwards, "{}", table.name());
        }
    }
}

fn compare(inputs: &dyn Fn() -> Vec<Input>, what: &str) -> Vec<TableBatches> {
    let run = |threads| all_tables(inputs(), &with_threads(threads)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let one = run(1);
    for threads in [2, 7] {
        assert_same_tables(&run(threads), &one, &format!("{what}: {threads} threads against 1"));
    }
    assert_rows_are_in_frame_order(&one, what);
    one
}

/// Within a file, tables with one row per frame or more come in the order of frames.
fn assert_rows_are_in_frame_order(tables: &[TableBatches], what: &str) {
    for table in tables {
        if !matches!(table.table, TableId::Packets | TableId::Tcp | TableId::Roce | TableId::Pause | TableId::Tunnels) {
            continue;
        }
        let (files, frames) = (cells::ints(&table.batches, "file_no"), cells::ints(&table.batches, "frame_no"));
        let mut last = std::collections::BTreeMap::new();
        for (file, frame) in files.into_iter().zip(frames) {
            let before = last.insert(file, frame).unwrap_or(0);
            assert!(before <= frame, "{what}: {}: frame {frame} after {before}", table.table.name());
        }
    }
}
