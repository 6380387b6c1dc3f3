//! Several files as one capture: the files of a ring follow each other, those of several hosts are merged by time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wirelab::{Input, TableId};

use crate::support::cells::{Value, column, ints};
use crate::support::generate::{Packet, pcap, pcapng, split_near, traffic};
use crate::support::{Scratch, TableBatches, all_tables, assert_same_tables, tables, with_threads, without};

#[test]
fn a_ring_of_two_files_is_one_capture() {
    let scratch = Scratch::new("ring");
    let packets = traffic(36_000, 31);
    let whole = all_tables(vec![Input::from(pcap(&packets))], &with_threads(2)).unwrap();
    // Places where no packet's copy, inside a tunnel or outside, lies in the other file.
    for split in [1, 22_000, 35_990] {
        let split = split_near(&packets, split);
        let (first, second) = packets.split_at(split);
        let paths = [scratch.write("ring.pcap", &pcap(first)), scratch.write("ring.pcap1", &pcap(second))];
        let ring = all_tables(as_inputs(&paths), &with_threads(2)).unwrap();
        // Frames are counted per file; but for that, everything is as in one file: flows and streams go on.
        for (number, packet) in rows(&ring, TableId::Packets).iter().enumerate() {
            let expected = if number < split { (1, number + 1) } else { (2, number - split + 1) };
            assert_eq!(*packet, (expected.0, expected.1 as i128), "frame {number}, split at {split}");
        }
        for table in [TableId::Packets, TableId::Tcp, TableId::TcpFlows, TableId::Flows, TableId::Probes, TableId::Roce]
        {
            assert_same_but_place(&ring, &whole, table, &format!("split at {split}"));
        }
        let interfaces = table_of(&ring, TableId::Interfaces);
        assert_eq!(ints(&interfaces.batches, "interface_id"), [0], "split at {split}");
        assert_eq!(ints(&interfaces.batches, "frames"), [36_000], "split at {split}");
    }
}

#[test]
fn a_ring_given_in_the_wrong_order_gives_the_same_rows() {
    let scratch = Scratch::new("ring-order");
    let packets = traffic(30_000, 32);
    let paths: Vec<_> = packets
        .chunks(11_000)
        .enumerate()
        .map(|(number, part)| scratch.write(&format!("trace.pcap{number}"), &pcapng(part, "eth0")))
        .collect();
    let right = all_tables(as_inputs(&paths), &with_threads(2)).unwrap();
    assert_eq!(ints(&table_of(&right, TableId::Interfaces).batches, "frames"), [30_000]);
    for order in [[2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        let shuffled: Vec<PathBuf> = order.iter().map(|at| paths[*at].clone()).collect();
        let wrong = all_tables(as_inputs(&shuffled), &with_threads(2)).unwrap();
        // `file_no` is the place in the list that was given; the rows and their order are the same.
        let to_right = |(file, frame): &(i128, i128)| (order[*file as usize - 1] as i128 + 1, *frame);
        for table in [TableId::Packets, TableId::Tcp, TableId::Flows] {
            let renamed: Vec<_> = rows(&wrong, table).iter().map(to_right).collect();
            assert_eq!(renamed, rows(&right, table), "{order:?}: {}", table.name());
            assert_same_but_place(&wrong, &right, table, &format!("{order:?}"));
        }
        assert_eq!(ints(&table_of(&wrong, TableId::Interfaces).batches, "frames"), [30_000], "{order:?}");
    }
}

#[test]
fn files_of_two_hosts_are_merged_by_time_with_interfaces_of_their_own() {
    let scratch = Scratch::new("hosts");
    let (a, b) = (traffic(40_000, 33), traffic(25_000, 34));
    let paths = [scratch.write("h1.pcap", &pcap(&a)), scratch.write("h2.pcap", &pcap(&b))];
    let merged = all_tables(as_inputs(&paths), &with_threads(2)).unwrap();
    assert_merged(&merged, &[&a, &b]);
    let packets = table_of(&merged, TableId::Packets);
    let (files, interfaces) = (ints(&packets.batches, "file_no"), ints(&packets.batches, "interface_id"));
    let mut pairs: Vec<_> = files.into_iter().zip(interfaces).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), 2, "{pairs:?}");
    assert_ne!(pairs[0].1, pairs[1].1, "{pairs:?}");
    let interfaces = table_of(&merged, TableId::Interfaces);
    let mut frames = ints(&interfaces.batches, "frames");
    frames.sort_unstable();
    assert_eq!(frames, [25_000, 40_000]);
    // One connection seen by two hosts is two flows: each of its frames belongs to the flow of its own interface.
    let mut interface_of = BTreeMap::new();
    for (flow, interface) in column(&packets.batches, "flow_id").iter().zip(ints(&packets.batches, "interface_id")) {
        if let Value::Int(flow) = flow {
            assert_eq!(*interface_of.entry(*flow).or_insert(interface), interface, "flow {flow}");
        }
    }
    // The order of the list is no matter.
    let turned = all_tables(as_inputs(&[paths[1].clone(), paths[0].clone()]), &with_threads(2)).unwrap();
    assert_merged(&turned, &[&b, &a]);
}

#[test]
fn rings_of_two_hosts_keep_the_interfaces_of_each_host() {
    let scratch = Scratch::new("host-rings");
    let (a, b) = (traffic(30_000, 35), traffic(30_000, 36));
    let mut paths = Vec::new();
    for (name, packets) in [("h1", &a), ("h2", &b)] {
        for (number, part) in packets.chunks(12_000).enumerate() {
            paths.push(scratch.write(&format!("{name}.pcap{number}"), &pcap(part)));
        }
    }
    let merged = all_tables(as_inputs(&paths), &with_threads(2)).unwrap();
    let packets = table_of(&merged, TableId::Packets);
    assert_eq!(packets.num_rows(), 60_000);
    assert!(ints(&packets.batches, "time").is_sorted());
    let mut of_file: BTreeMap<i128, Vec<i128>> = BTreeMap::new();
    for (file, interface) in ints(&packets.batches, "file_no").into_iter().zip(ints(&packets.batches, "interface_id")) {
        let interfaces = of_file.entry(file).or_default();
        if !interfaces.contains(&interface) {
            interfaces.push(interface);
        }
    }
    let first_host: Vec<_> = (1..=3).map(|file| of_file[&file].clone()).collect();
    let second_host: Vec<_> = (4..=6).map(|file| of_file[&file].clone()).collect();
    assert_eq!(first_host, [first_host[0].clone(), first_host[0].clone(), first_host[0].clone()]);
    assert_eq!(second_host, [second_host[0].clone(), second_host[0].clone(), second_host[0].clone()]);
    assert_ne!(first_host[0], second_host[0]);
    assert_eq!(ints(&table_of(&merged, TableId::Interfaces).batches, "frames"), [30_000, 30_000]);
}

#[test]
fn the_same_file_in_every_packing_is_the_same_part_of_a_set() {
    let scratch = Scratch::new("packed-set");
    let (a, b) = (pcap(&traffic(20_000, 37)), pcap(&traffic(20_000, 38)));
    let set = |inputs: Vec<Input>| {
        let requests = [TableId::Packets, TableId::Flows, TableId::Tcp].map(|table| without(table, &[]));
        tables(inputs, &with_threads(2), &requests).unwrap()
    };
    let plain = set(as_inputs(&[scratch.write("a.pcap", &a), scratch.write("b.pcap", &b)]));
    let zipped = scratch.write("b.pcap.zst", &zstd::encode_all(&b[..], 1).unwrap());
    let reader = Input::Reader(Box::new(std::io::Cursor::new(a.clone())), "a.pcap".to_owned());
    let mixed = set(vec![reader, Input::Path(zipped)]);
    assert_same_tables(&mixed, &plain, "a reader and a compressed file");
    let bytes = set(vec![Input::from(a), Input::from(b)]);
    assert_same_tables(&bytes, &plain, "bytes");
}

fn as_inputs(paths: &[PathBuf]) -> Vec<Input> {
    paths.iter().cloned().map(Input::Path).collect()
}

fn table_of(tables: &[TableBatches], table: TableId) -> &TableBatches {
    tables.iter().find(|other| other.table == table).unwrap()
}

/// File and frame number of every row.
fn rows(tables: &[TableBatches], table: TableId) -> Vec<(i128, i128)> {
    let table = table_of(tables, table);
    ints(&table.batches, "file_no").into_iter().zip(ints(&table.batches, "frame_no")).collect()
}

/// Compares a table of two runs but for the columns that say where in the files something is. Batches may end elsewhere:
/// a file's end is a window's end.
fn assert_same_but_place(ours: &[TableBatches], theirs: &[TableBatches], table: TableId, what: &str) {
    let [ours, theirs] = [ours, theirs].map(|tables| table_of(tables, table));
    assert!(ours.num_rows() > 0, "{what}: {} is empty", table.name());
    assert_eq!(ours.num_rows(), theirs.num_rows(), "{what}: {}", table.name());
    for name in table.definition().columns.iter().map(|column| column.name) {
        if name.ends_with("file_no") || name.ends_with("frame_no") || name == "duplicate_of" {
            continue;
        }
        let (ours, theirs) = (column(&ours.batches, name), column(&theirs.batches, name));
        for (at, (our, their)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(our, their, "{what}: {}: {name}: row {at}", table.name());
        }
    }
}

/// Every frame of every file comes once, in the order of time, with the time it has in its file.
fn assert_merged(tables: &[TableBatches], files: &[&[Packet]]) {
    let times = ints(&table_of(tables, TableId::Packets).batches, "time");
    assert!(times.is_sorted());
    let places = rows(tables, TableId::Packets);
    assert_eq!(places.len(), files.iter().map(|file| file.len()).sum::<usize>());
    let mut next = vec![1; files.len()];
    for ((file, frame), time) in places.into_iter().zip(times) {
        let at = file as usize - 1;
        assert_eq!(frame, next[at], "file {file}");
        assert_eq!(time, i128::from(files[at][frame as usize - 1].time_ns), "file {file}, frame {frame}");
        next[at] += 1;
    }
}
