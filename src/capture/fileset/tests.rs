use super::super::testing::{Pcapng, pcap};
use super::*;

const MS: i64 = 1_000_000;

/// File (from 0), frame number, time and interface of each frame, and the codes of the findings.
type Rows = (Vec<(u16, u64, Option<i64>, u32)>, Vec<&'static str>);

fn rows_of(mut reader: Reader) -> Rows {
    let mut rows = Vec::new();
    while let Some(window) = reader.next_window().expect("no error") {
        for record in &window.records {
            assert_eq!(window.bytes(record).len(), record.captured_bytes as usize);
            assert!(window.bytes(record).iter().all(|byte| *byte == record.frame_no as u8), "bytes of another frame");
            rows.push((record.file, record.frame_no, record.time(), record.interface));
        }
    }
    let mut codes: Vec<_> = reader.facts().findings.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    (rows, codes)
}

fn read(files: &[Vec<u8>]) -> Rows {
    let inputs = files.iter().map(|bytes| bytes.clone().into()).collect();
    rows_of(Reader::open(inputs, &Limits::default()).expect("captures"))
}

/// A pcap whose frames' bytes are their numbers.
fn file(times: &[i64]) -> Vec<u8> {
    let data: Vec<[u8; 20]> = (1..=times.len()).map(|number| [number as u8; 20]).collect();
    let list: Vec<(i64, &[u8])> = times.iter().zip(&data).map(|(time, data)| (*time, data.as_slice())).collect();
    pcap(&list)
}

fn times(rows: &Rows) -> Vec<i64> {
    rows.0.iter().filter_map(|row| row.2).collect()
}

fn steps(from: i64, to: i64, step: i64) -> Vec<i64> {
    (from..to).step_by(step as usize).collect()
}

#[test]
fn a_ring_is_read_in_the_order_of_time_and_keeps_its_interface() {
    let files =
        [file(&steps(200 * MS, 300 * MS, MS)), file(&steps(0, 100 * MS, MS)), file(&steps(100 * MS, 200 * MS, MS))];
    let rows = read(&files);
    assert_eq!(times(&rows), steps(0, 300 * MS, MS));
    assert!(rows.0.iter().all(|row| row.3 == 0), "one interface goes on through the ring");
    assert_eq!(rows.0.iter().map(|row| row.0).collect::<Vec<_>>(), [[1_u16; 100], [2; 100], [0; 100]].concat());
}

#[test]
fn overlapping_files_are_merged_and_have_interfaces_of_their_own() {
    let files = [file(&steps(0, 100 * MS, 2 * MS)), file(&steps(MS, 100 * MS, 2 * MS))];
    let rows = read(&files);
    assert_eq!(times(&rows), steps(0, 100 * MS, MS));
    assert!(rows.0.iter().all(|row| u32::from(row.0) == row.3));
}

#[test]
fn a_seam_that_overlaps_by_some_microseconds_is_a_ring_still() {
    let first = steps(0, 100 * MS, MS);
    let mut second = steps(99 * MS - 20_000, 200 * MS, MS);
    second[0] += 3_000;
    let rows = read(&[file(&first), file(&second)]);
    assert!(rows.0.iter().all(|row| row.3 == 0));
    assert_eq!(rows.0.iter().map(|row| row.0).collect::<Vec<_>>(), [vec![0; 100], vec![1; second.len()]].concat());
}

#[test]
fn two_rings_at_once_keep_their_interfaces_apart() {
    let folder = std::env::temp_dir().join(format!("wirelab-rings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let spans = [("h1.pcap0", 0, 100), ("h2.pcap0", 5, 90), ("h1.pcap1", 101, 200), ("h2.pcap1", 120, 210)];
    let mut inputs = Vec::new();
    for (name, from, to) in spans {
        let path = folder.join(name);
        std::fs::write(&path, file(&steps(from * MS, to * MS, MS))).expect("a file");
        inputs.push(Input::Path(path));
    }
    let rows = rows_of(Reader::open(inputs, &Limits::default()).expect("captures"));
    for (file, _, _, interface) in &rows.0 {
        assert_eq!(*interface, u32::from(*file) % 2, "file {file}");
    }
    let sorted = {
        let mut all = times(&rows);
        all.sort_unstable();
        all
    };
    assert_eq!(times(&rows), sorted);
    std::fs::remove_dir_all(&folder).expect("our own folder");
}

#[test]
fn the_order_of_the_arguments_changes_nothing_but_file_numbers() {
    let files = [
        file(&steps(0, 50 * MS, MS)),
        file(&steps(25 * MS, 90 * MS, MS)),
        file(&steps(0, 50 * MS, 3 * MS)),
        file(&[]),
        file(&steps(200 * MS, 210 * MS, MS)),
    ];
    let orders = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [1, 3, 0, 4, 2]];
    let in_order = |order: &[usize; 5]| {
        let rows = read(&order.map(|at| files[at].clone()));
        let named: Vec<_> = rows.0.iter().map(|row| (order[usize::from(row.0)], row.1, row.2, row.3)).collect();
        (named, rows.1)
    };
    let first = in_order(&orders[0]);
    assert_eq!(first.0.len(), 50 + 65 + 17 + 10);
    for order in &orders[1..] {
        assert_eq!(in_order(order), first, "{order:?}");
    }
}

#[test]
fn a_file_without_frames_is_reported_and_changes_nothing_else() {
    let rows = read(&[file(&[]), file(&[1, 2]), file(&[])]);
    assert_eq!((times(&rows), rows.1), (vec![1, 2], vec!["no_frames", "no_frames"]));
}

#[test]
fn files_without_times_come_first() {
    let mut simple = Pcapng::new(false);
    simple.interface(1, 0, &[]);
    for number in 1..=200_u8 {
        simple.simple(8, &[number; 8]);
    }
    let rows = read(&[file(&[5, 6]), simple.bytes.clone(), simple.bytes]);
    let files: Vec<u16> = rows.0.iter().map(|row| row.0).collect();
    assert_eq!(files, [vec![1; 200], vec![2; 200], vec![0; 2]].concat());
    assert!(rows.0[..400].iter().all(|row| row.2.is_none()));
}

#[test]
fn the_same_file_twice_gives_every_frame_twice() {
    let bytes = file(&steps(0, 50 * MS, MS));
    let rows = read(&[bytes.clone(), bytes]);
    assert_eq!(rows.0.len(), 100);
    for pair in rows.0.chunks(2) {
        assert_eq!((pair[0].2, pair[0].0, pair[1].0), (pair[1].2, 0, 1));
    }
}

#[test]
fn a_merge_longer_than_a_window_loses_nothing() {
    let files: Vec<Vec<u8>> = (0..3).map(|host| file(&steps(host, 30_000, 3))).collect();
    let mut inputs: Vec<Input> = Vec::new();
    for bytes in &files {
        inputs.push(bytes.clone().into());
    }
    let share = Share { buffer_bytes: 64 << 10, ..Share::default() };
    let rows = rows_of(Reader::open_with(inputs, &Limits::default(), share).expect("captures"));
    assert_eq!(times(&rows), steps(0, 30_000, 1));
}

#[test]
fn unsorted_times_within_a_file_do_not_stop_the_merge() {
    let rows = read(&[file(&[10, 5, 20, 1, 30]), file(&[7, 15, 25])]);
    assert_eq!(rows.0.len(), 8);
    let own = |file: u16| rows.0.iter().filter(|row| row.0 == file).map(|row| row.1).collect::<Vec<_>>();
    assert_eq!((own(0), own(1)), (vec![1, 2, 3, 4, 5], vec![1, 2, 3]), "each file keeps its own order");
}

#[test]
fn many_files_at_once_need_few_descriptors() {
    let folder = std::env::temp_dir().join(format!("wirelab-many-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut inputs = Vec::new();
    for host in 0..300_i64 {
        let path = folder.join(format!("h{host}.pcap"));
        // Larger than what is read to judge a file, so that each is read from again.
        std::fs::write(&path, file(&steps(host, 900_000, 300))).expect("a file");
        inputs.push(Input::Path(path));
    }
    let mut reader = Reader::open(inputs, &Limits::default()).expect("captures");
    let (mut latest, mut count) = (0, 0);
    let open_files = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    while let Some(window) = reader.next_window().expect("no error") {
        assert!(open_files() < 200);
        for record in &window.records {
            assert!(record.time_ns >= latest);
            latest = record.time_ns;
            count += 1;
        }
    }
    assert_eq!((count, reader.facts().interfaces.len()), (900_000, 300));
    std::fs::remove_dir_all(&folder).expect("our own folder");
}

#[test]
fn a_file_that_is_gone_or_another_by_the_time_it_is_due_is_reported() {
    let folder = std::env::temp_dir().join(format!("wirelab-gone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let paths = ["a.pcap", "b.pcap", "c.pcap"].map(|name| folder.join(name));
    for (at, path) in paths.iter().enumerate() {
        std::fs::write(path, file(&steps(at as i64 * 100 * MS, at as i64 * 100 * MS + 10 * MS, MS))).expect("a file");
    }
    let inputs = paths.iter().map(|path| Input::Path(path.clone())).collect();
    let reader = Reader::open(inputs, &Limits::default()).expect("captures");
    std::fs::remove_file(&paths[1]).expect("our own file");
    std::fs::write(&paths[2], file(&[300 * MS])).expect("a file");
    let rows = rows_of(reader);
    let counts: Vec<_> = (0..3).map(|file| rows.0.iter().filter(|row| row.0 == file).count()).collect();
    assert_eq!((counts, rows.1), (vec![10, 0, 1], vec!["file_changed", "file_changed"]));
    std::fs::remove_dir_all(&folder).expect("our own folder");
}

#[test]
fn drops_and_frames_add_up_over_a_ring() {
    let part = |from: u64, drops: u64| {
        let mut file = Pcapng::new(false);
        file.interface(1, 0, &[(2, b"eth0"), (9, &[9])]);
        file.packet(0, from, &[1; 4], &[]).packet(0, from + 1, &[2; 4], &[]);
        let drops = file.u64(drops);
        let mut body = [file.u32(0), file.u32(0), file.u32(0)].concat();
        body.extend(file.options(&[(5, &drops), (0, &[])]));
        file.block(5, &body).bytes.clone()
    };
    let inputs = [part(5_000, 3), part(100, 4)].map(Input::from).into();
    let mut reader = Reader::open(inputs, &Limits::default()).expect("captures");
    while reader.next_window().expect("no error").is_some() {}
    let interfaces = &reader.facts().interfaces;
    assert_eq!((interfaces.len(), interfaces[0].frames, interfaces[0].interface_drops), (1, 4, Some(7)));
}

#[test]
fn too_many_files_are_an_error_that_names_the_limit() {
    let limits = Limits { files: 2, ..Limits::default() };
    let inputs = (0..3).map(|_| Input::from(file(&[1]))).collect();
    assert!(matches!(Reader::open(inputs, &limits), Err(Error::Limit { limit: "files", value: 2, .. })));
}
