//! The `ws_` columns beside tshark 4.0: the corpus holds every frame of its captures on which tshark set a flag.
//!
//! `tests/differential/tcp_stream.py` compares the other columns, by running tshark.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use arrow_array::{Array, BooleanArray, RecordBatch, UInt32Array, UInt64Array};
use flate2::read::MultiGzDecoder;
use wirelab::{Input, ScanRequest, TableId};

use crate::support::{outside_folder, tables, with_threads};

const FLAGS: [&str; 15] = [
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "duplicate_ack",
    "zero_window",
    "zero_window_probe",
    "zero_window_probe_ack",
    "window_full",
    "window_update",
    "keep_alive",
    "keep_alive_ack",
    "lost_segment",
    "ack_lost_segment",
    "reused_ports",
];

/// Link types that are decoded: see `LinkType::is_known`.
const LINK_TYPES: [&str; 10] = ["0", "1", "12", "14", "101", "108", "113", "228", "229", "276"];

/// What is said of a frame: whether each of [`FLAGS`] is set, and the number of a duplicate ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    flags: [bool; 15],
    duplicate_ack_num: Option<u32>,
}

/// How many frames carry something by either side, and on how many of them both agree.
#[derive(Clone, Copy, Default)]
struct Count {
    equal: u64,
    all: u64,
}

#[test]
fn every_tcp_flag_of_the_corpus_is_tsharks() {
    let Some(corpus) = outside_folder("WIRELAB_CORPUS", "../shared/corpus") else { return };
    let set_aside = set_aside();
    let (mut counts, mut numbers) = ([Count::default(); 15], Count::default());
    let (mut captures, mut segments, mut aside) = (0, 0, BTreeMap::new());
    let mut differences = Vec::new();
    for (path, oracle) in captures_with_flags(&corpus) {
        if let Some(reason) = set_aside.get(path.strip_prefix("pcaps/").unwrap_or(&path)) {
            *aside.entry(reason).or_insert(0) += 1;
            continue;
        }
        let (ours, rows) = ours(&corpus.join(&path));
        let theirs = theirs(&corpus.join(oracle));
        captures += 1;
        segments += rows;
        let mut frames: Vec<_> = ours.keys().chain(theirs.keys()).copied().collect();
        frames.sort_unstable();
        frames.dedup();
        for frame_no in frames {
            let our = ours.get(&frame_no).copied().unwrap_or_default();
            let their = theirs.get(&frame_no).copied().unwrap_or_default();
            for (at, count) in counts.iter_mut().enumerate() {
                count.all += u64::from(our.flags[at] || their.flags[at]);
                count.equal += u64::from(our.flags[at] && their.flags[at]);
            }
            numbers.all += u64::from(our.duplicate_ack_num.is_some() || their.duplicate_ack_num.is_some());
            let is_number_equal = our.duplicate_ack_num == their.duplicate_ack_num;
            numbers.equal += u64::from(our.duplicate_ack_num.is_some() && is_number_equal);
            if our != their {
                differences.push(format!("{path} frame {frame_no}: wirelab {}, tshark {}", shown(&our), shown(&their)));
            }
        }
    }
    println!("{captures} captures, {segments} segments; frames that carry the flag, equal / all:");
    for (name, count) in FLAGS.iter().zip(&counts) {
        println!("    {name:24} {:>6} / {}", count.equal, count.all);
    }
    println!("    {:24} {:>6} / {}", "duplicate_ack_num", numbers.equal, numbers.all);
    for (reason, count) in aside {
        println!("    set aside: {count}: {reason}");
    }
    assert!(captures > 350, "{captures} captures");
    assert!(counts.iter().all(|count| count.all > 40), "too few frames to show anything");
    let shown = &differences[..differences.len().min(40)];
    assert!(differences.is_empty(), "{} frames differ:\n{}", differences.len(), shown.join("\n"));
}

/// Reasons by path, from the list that the differential test shares.
fn set_aside() -> BTreeMap<String, String> {
    let list: toml::Table = include_str!("wireshark.toml").parse().unwrap();
    let mut reasons = BTreeMap::new();
    for (reason, paths) in list["files"].as_table().unwrap() {
        for path in paths.as_array().unwrap() {
            let is_new = reasons.insert(path.as_str().unwrap().to_owned(), reason.clone()).is_none();
            assert!(is_new, "{path} is listed twice");
        }
    }
    reasons
}

/// Captures that are decoded and have TCP flags: their path and that of tshark's answers, below the corpus folder.
fn captures_with_flags(corpus: &Path) -> Vec<(String, String)> {
    let catalog = std::fs::read_to_string(corpus.join("catalog.tsv")).unwrap();
    let mut lines = catalog.lines();
    let names: Vec<_> = lines.next().unwrap().split('\t').collect();
    let place = |name: &str| names.iter().position(|of| *of == name).unwrap_or_else(|| panic!("no column {name}"));
    let (path, links, oracle) = (place("path"), place("linktypes"), place("tcp_oracle"));
    lines
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|row| !row[oracle].is_empty() && row[links].split(',').all(|link| LINK_TYPES.contains(&link)))
        .map(|row| (row[path].to_owned(), row[oracle].to_owned()))
        .collect()
}

/// Frames to which table `tcp` gives a flag, and its number of rows.
fn ours(capture: &Path) -> (BTreeMap<u64, Said>, usize) {
    let columns = FLAGS.iter().map(|flag| format!("ws_{flag}"));
    let columns = columns.chain(["frame_no", "ws_duplicate_ack_num"].map(str::to_owned)).collect();
    let request = ScanRequest { columns: Some(columns), ..ScanRequest::new(TableId::Tcp) };
    let tables = tables(vec![Input::Path(capture.to_path_buf())], &with_threads(1), &[request])
        .unwrap_or_else(|error| panic!("{}: {error}", capture.display()));
    let mut said = BTreeMap::new();
    for batch in &tables[0].batches {
        let frame_no: &UInt64Array = array(batch, "frame_no");
        let number: &UInt32Array = array(batch, "ws_duplicate_ack_num");
        let flags: [&BooleanArray; 15] = std::array::from_fn(|at| array(batch, &format!("ws_{}", FLAGS[at])));
        for row in 0..batch.num_rows() {
            let of_frame = Said {
                flags: flags.map(|flag| flag.value(row)),
                duplicate_ack_num: number.is_valid(row).then(|| number.value(row)),
            };
            if of_frame != Said::default() {
                said.insert(frame_no.value(row), of_frame);
            }
        }
    }
    (said, tables[0].num_rows())
}

fn array<'a, A: 'static>(batch: &'a RecordBatch, name: &str) -> &'a A {
    batch.column_by_name(name).and_then(|array| array.as_any().downcast_ref()).unwrap_or_else(|| panic!("{name}"))
}

/// Frames to which tshark gives a flag that is one of ours.
fn theirs(oracle: &Path) -> BTreeMap<u64, Said> {
    let mut text = String::new();
    let file = std::fs::File::open(oracle).unwrap_or_else(|error| panic!("{}: {error}", oracle.display()));
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().unwrap().split('\t').collect();
    let place = |name: &str| names.iter().position(|of| *of == name).unwrap_or_else(|| panic!("no column {name}"));
    let (frame_no, flags, number) = (place("frame.number"), place("flags"), place("tcp.analysis.duplicate_ack_num"));
    let mut said = BTreeMap::new();
    for line in lines {
        let cells: Vec<_> = line.split('\t').collect();
        let mut of_frame = Said::default();
        for flag in cells[flags].split(',') {
            match FLAGS.iter().position(|name| *name == flag) {
                Some(at) => of_frame.flags[at] = true,
                // TCP Fast Open has no column.
                None => assert!(["", "tfo_syn", "tfo_ack"].contains(&flag), "{}: flag {flag}", oracle.display()),
            }
        }
        of_frame.duplicate_ack_num = cells.get(number).and_then(|cell| cell.parse().ok());
        if of_frame != Said::default() {
            said.insert(cells[frame_no].parse().unwrap(), of_frame);
        }
    }
    said
}

fn shown(said: &Said) -> String {
    let names = FLAGS.iter().zip(said.flags).filter(|(_, is_set)| *is_set).map(|(name, _)| (*name).to_owned());
    let number = said.duplicate_ack_num.map(|number| format!("#{number}"));
    let all: Vec<_> = names.chain(number).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(" ") }
}
