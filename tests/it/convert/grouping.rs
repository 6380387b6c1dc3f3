//! Which files are one capture, and what captures are called.

use std::path::PathBuf;

use wirelab::convert::{ConvertOptions, GroupBy, Outcome};
use wirelab::{Input, TableId};

use super::{content, outcomes, part, read, run, some_tables};
use crate::support::generate::{Packet, pcap, split_near, traffic};
use crate::support::{Scratch, cells, sample, tables, with_threads};

fn by(group_by: GroupBy) -> ConvertOptions {
    ConvertOptions { group_by, ..some_tables() }
}

fn names(done: &wirelab::Conversion) -> Vec<String> {
    outcomes(done).into_iter().map(|(name, _)| name).collect()
}

/// A capture in three files of a ring.
fn ring(scratch: &Scratch, packets: &[Packet]) -> [PathBuf; 3] {
    let (first, rest) = packets.split_at(split_near(packets, packets.len() / 3));
    let (second, third) = rest.split_at(split_near(rest, rest.len() / 2));
    [
        scratch.write("h1.pcap", &pcap(first)),
        scratch.write("h1.pcap2", &pcap(second)),
        scratch.write("h1.pcap10", &pcap(third)),
    ]
}

#[test]
fn files_of_a_ring_are_one_capture_whose_flows_go_on() {
    let scratch = Scratch::new("convert-ring");
    let packets = traffic(6_000, 3);
    let [a, b, c] = ring(&scratch, &packets);
    let other = scratch.write("h2.pcap", &pcap(&traffic(500, 4)));
    let out = scratch.path().join("out");
    let done = run(&[c.clone(), other, a.clone(), b.clone()], &out, &by(GroupBy::Ring)).unwrap();
    assert_eq!(names(&done), ["h1", "h2.pcap"]);
    assert_eq!(done.captures[0].files, [a.clone(), b.clone(), c.clone()], "in the order of their numbers");
    let together = [a, b, c].map(Input::Path).into_iter().collect();
    let requests = [wirelab::ScanRequest::new(TableId::TcpFlows)];
    let expected = tables(together, &with_threads(1), &requests).unwrap();
    let (batches, _) = read(&part(&out, TableId::TcpFlows, "h1"));
    assert_eq!(cells::rows_as_text(&batches), cells::rows_as_text(&expected[0].batches));
    assert_eq!(cells::ints(&read(&part(&out, TableId::Packets, "h1")).0, "file_no").last(), Some(&3));
}

#[test]
fn a_ring_that_grows_is_made_anew_and_one_that_shrinks_is_refused() {
    let scratch = Scratch::new("convert-grow");
    let [a, b, c] = ring(&scratch, &traffic(3_000, 3));
    let out = scratch.path().join("out");
    run(&[&a], &out, &ConvertOptions { tables: vec![TableId::Flows], ..by(GroupBy::Ring) }).unwrap();
    assert!(out.join("flows/capture=h1.pcap").exists());
    for files in [vec![&a, &b], vec![&a, &b, &c]] {
        let done = run(&files, &out, &by(GroupBy::Ring)).unwrap();
        assert_eq!(outcomes(&done), [("h1".to_owned(), "written")]);
    }
    assert!(!out.join("flows/capture=h1.pcap").exists(), "its rows would be there twice");
    let before = content(&out);
    let error = run(&[&b, &c], &out, &by(GroupBy::Ring)).unwrap_err();
    assert!(error.to_string().contains("h1.pcap: name that file too"), "{error}");
    assert!(content(&out) == before);
}

#[test]
fn a_table_that_is_not_asked_for_again_is_not_left_with_rows_of_before() {
    let scratch = Scratch::new("convert-stale");
    let [a, b, c] = ring(&scratch, &traffic(3_000, 3));
    let out = scratch.path().join("out");
    run(&[&a, &b], &out, &ConvertOptions { tables: vec![TableId::Flows], ..by(GroupBy::Ring) }).unwrap();
    run(&[&a, &b, &c], &out, &ConvertOptions { tables: vec![TableId::Packets], ..by(GroupBy::Ring) }).unwrap();
    let fresh = scratch.path().join("fresh");
    let both = ConvertOptions { tables: vec![TableId::Flows, TableId::Packets], ..by(GroupBy::Ring) };
    run(&[a, b, c], &fresh, &both).unwrap();
    assert!(content(&out) == content(&fresh));
}

#[test]
fn files_are_put_together_up_to_a_size_or_all() {
    let scratch = Scratch::new("convert-size");
    let file = |name: &str, frames| scratch.write(name, &pcap(&traffic(frames, 1)));
    let inputs = [file("a.pcap", 100), file("b.pcap", 100), file("c.pcap", 400), file("d.pcap", 10)];
    let bytes = |at: usize| std::fs::metadata(&inputs[at]).unwrap().len();
    let most = bytes(0) + bytes(1);
    assert!(bytes(2) > most - bytes(3), "the third file fits with none");
    let out = scratch.path().join("size");
    let done = run(&inputs, &out, &by(GroupBy::Bytes(most))).unwrap();
    assert_eq!(names(&done), ["a.pcap", "c.pcap", "d.pcap"]);
    assert_eq!(done.captures[0].files.len(), 2);
    let (rows, _) = read(&part(&out, TableId::Packets, "a.pcap"));
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 200);
    let done = run(&inputs, &scratch.path().join("all"), &by(GroupBy::All)).unwrap();
    assert_eq!((names(&done), done.captures[0].files.len()), (vec!["a.pcap".to_owned()], 4));
}

#[test]
fn files_of_one_name_are_told_apart_by_their_folders() {
    let scratch = Scratch::new("convert-names");
    let file = |name: &str| {
        let path = scratch.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(sample("ping-delay/ping-delay.pcap"), &path).unwrap();
        path
    };
    let (a, b) = (file("a/trace.pcap"), file("b/trace.pcap"));
    let odd = ["20260131", "007", "1e5", "true", "抓包 a+b=c%2F.pcap", "UPPER.pcap", "x/upper.pcap"].map(file);
    let out = scratch.path().join("out");
    let mut inputs = vec![a, b.clone()];
    inputs.extend(odd);
    inputs.push(scratch.path().join("a/../b/trace.pcap"));
    let done = run(&inputs, &out, &some_tables()).unwrap();
    let folder = scratch.path().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(
        names(&done),
        [
            "a/trace.pcap",
            "b/trace.pcap",
            "capture-20260131",
            "capture-007",
            "capture-1e5",
            "capture-true",
            "抓包 a+b=c%2F.pcap",
            &format!("{folder}/UPPER.pcap"),
            "x/upper.pcap",
        ],
        "no name is a number to a reader, and the same file counts once"
    );
    assert!(out.join("packets/capture=b%2Ftrace.pcap").is_dir());
    assert!(out.join("packets/capture=抓包%20a%2Bb%3Dc%252F.pcap").is_dir());
    let again = run(&[b], &out, &some_tables()).unwrap();
    assert_eq!(outcomes(&again), [("b/trace.pcap".to_owned(), "unchanged")]);
}

#[test]
fn a_new_file_gets_no_name_that_is_taken_and_a_file_that_was_moved_keeps_its_own() {
    let scratch = Scratch::new("convert-moved");
    let file = |folder: &str, seed| {
        std::fs::create_dir_all(scratch.path().join(folder)).unwrap();
        scratch.write(&format!("{folder}/t.pcap"), &pcap(&traffic(300, seed)))
    };
    let (first, out) = (file("a", 1), scratch.path().join("out"));
    assert_eq!(names(&run(&[&first], &out, &some_tables()).unwrap()), ["t.pcap"]);
    let second = file("b", 2);
    assert_eq!(names(&run(&[&second], &out, &some_tables()).unwrap()), ["b/t.pcap"]);
    std::fs::create_dir_all(scratch.path().join("elsewhere")).unwrap();
    let moved = scratch.path().join("elsewhere/t.pcap");
    std::fs::rename(first, &moved).unwrap();
    let done = run(&[moved, second], &out, &some_tables()).unwrap();
    assert_eq!(outcomes(&done), [("t.pcap".to_owned(), "unchanged"), ("b/t.pcap".to_owned(), "unchanged")]);
}

#[test]
fn a_long_name_is_cut_and_numbered() {
    let scratch = Scratch::new("convert-long");
    let bytes = std::fs::read(sample("ping-delay/ping-delay.pcap")).unwrap();
    let inputs: Vec<_> =
        ["x", "y"].iter().map(|end| scratch.write(&format!("{}{end}.pcap", "抓".repeat(70)), &bytes)).collect();
    let done = run(&inputs, &scratch.path().join("out"), &some_tables()).unwrap();
    assert!(names(&done)[0].ends_with("抓~2") && names(&done)[1].ends_with("抓~3"), "{:?}", names(&done));
    assert_eq!(done.failed().count(), 0);
}

#[test]
fn a_name_that_stands_for_no_value_in_hive_is_a_name() {
    let scratch = Scratch::new("convert-hive");
    let input = scratch.write("__HIVE_DEFAULT_PARTITION__", &pcap(&traffic(300, 1)));
    let done = run(&[input], &scratch.path().join("out"), &some_tables()).unwrap();
    assert_eq!(names(&done), ["capture-__HIVE_DEFAULT_PARTITION__"]);
}

#[cfg(target_os = "linux")]
#[test]
fn of_a_name_that_is_no_text_the_readable_part_is_kept() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new("convert-bytes");
    let file = |name: &[u8]| {
        let path = scratch.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, pcap(&traffic(300, 1))).unwrap();
        path
    };
    let inputs = ["抓包-".as_bytes(), b"a/t", b"b/t"].map(|start| file(&[start, b"\xff\xc3.pcap"].concat()));
    let out = scratch.path().join("out");
    let expected = ["抓包-%FF%C3.pcap", "a/t%FF%C3.pcap", "b/t%FF%C3.pcap"];
    assert_eq!(names(&run(&inputs, &out, &some_tables()).unwrap()), expected);
    assert!(out.join("packets/capture=抓包-%25FF%25C3.pcap/part-0.parquet").exists());
    let again = run(&inputs, &out, &some_tables()).unwrap();
    assert!(outcomes(&again).iter().all(|(_, word)| *word == "unchanged"));
    // It is there still, so another one with its name, size and time is not the same that was moved.
    let twin = file(b"c/\xe6\x8a\x93\xe5\x8c\x85-\xff\xc3.pcap");
    let time = std::fs::metadata(&inputs[0]).unwrap().modified().unwrap();
    std::fs::File::options().append(true).open(&twin).unwrap().set_modified(time).unwrap();
    let done = run(&[twin], &out, &some_tables()).unwrap();
    assert_eq!(outcomes(&done), [("c/抓包-%FF%C3.pcap".to_owned(), "written")]);
    // One that did move is.
    let moved = scratch.path().join("d").join(inputs[0].file_name().unwrap());
    std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
    std::fs::rename(&inputs[0], &moved).unwrap();
    let done = run(&[moved], &out, &some_tables()).unwrap();
    assert_eq!(outcomes(&done), [("抓包-%FF%C3.pcap".to_owned(), "unchanged")]);
    // A name that spells the same is another file.
    let spelt = file(b"a/t%FF%C3.pcap");
    let done = run(&[inputs[1].clone(), spelt], &out, &some_tables()).unwrap();
    assert_eq!(outcomes(&done)[0], ("a/t%FF%C3.pcap".to_owned(), "unchanged"));
    assert_eq!(outcomes(&done)[1].1, "written");
    assert_ne!(outcomes(&done)[1].0, outcomes(&done)[0].0);
}

#[test]
fn a_folder_stands_for_the_captures_in_it() {
    let scratch = Scratch::new("convert-folder");
    let file = |seed| pcap(&traffic(300, seed));
    let folder = scratch.path().join("captures");
    std::fs::create_dir_all(folder.join("day2/.trash")).unwrap();
    for (name, bytes) in [
        ("b.pcap", file(1)),
        ("a.PCAP.zst", zstd::encode_all(&file(2)[..], 1).unwrap()),
        ("rotated00001", file(3)),
        ("trace.pcap3.zst", zstd::encode_all(&file(7)[..], 1).unwrap()),
        ("notes.txt", b"what was done\n".to_vec()),
        ("packed.gz", vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0]),
        (".hidden.pcap", file(4)),
        ("day2/c.cap", file(5)),
        ("day2/damaged.pcapng", b"not what its name says".to_vec()),
        ("day2/.trash/old.pcap", file(6)),
    ] {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    #[cfg(unix)]
    {
        // A link to a capture is one; what leads round in a circle is not followed.
        std::os::unix::fs::symlink(folder.join("b.pcap"), folder.join("day2/link.pcap")).unwrap();
        std::os::unix::fs::symlink(&folder, folder.join("day2/round")).unwrap();
    }
    let out = folder.join("dataset");
    // Named beside the folder it lies in, a capture counts once.
    let done = run(&[folder.clone(), folder.join("b.pcap")], &out, &some_tables()).unwrap();
    let told: Vec<_> = outcomes(&done).into_iter().collect();
    let expected = [("a.PCAP.zst", "written"), ("b.pcap", "written"), ("c.cap", "written")];
    let expected = expected.into_iter().chain([
        ("damaged.pcapng", "failed"),
        ("rotated00001", "written"),
        ("trace.pcap3.zst", "written"),
    ]);
    assert_eq!(told, expected.map(|(name, word)| (name.to_owned(), word)).collect::<Vec<_>>());
    let again = run(&[&folder], &out, &some_tables()).unwrap();
    assert_eq!(again.captures.iter().filter(|one| matches!(one.outcome, Outcome::Unchanged)).count(), 5);
    // A folder without any is told, and does not stop the others.
    std::fs::create_dir(scratch.path().join("empty")).unwrap();
    let done = run(&[scratch.path().join("empty"), folder.join("b.pcap")], &scratch.path().join("out"), &some_tables());
    let done = done.unwrap();
    assert_eq!(outcomes(&done).into_iter().map(|(_, word)| word).collect::<Vec<_>>(), ["failed", "written"]);
    let error = done.failed().next().unwrap().1.to_string();
    assert!(error.contains("no capture in it") && error.contains("empty"), "{error}");
}

#[cfg(unix)]
#[test]
fn what_cannot_be_looked_at_in_a_folder_is_told() {
    let scratch = Scratch::new("convert-folder-odd");
    scratch.write("a.pcap", &pcap(&traffic(100, 1)));
    std::os::unix::fs::symlink(scratch.path().join("gone"), scratch.path().join("b.pcap")).unwrap();
    std::os::unix::fs::symlink(scratch.path().join("gone"), scratch.path().join("notes")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(scratch.path().join("c.pcap")).unwrap();
    let done = run(&[scratch.path()], &scratch.path().join("out"), &some_tables()).unwrap();
    let told: Vec<_> = outcomes(&done).into_iter().collect();
    let expected = [("a.pcap", "written"), ("b.pcap", "failed"), ("c.pcap", "failed")];
    assert_eq!(told, expected.map(|(name, word)| (name.to_owned(), word)));
    drop(socket);
}
