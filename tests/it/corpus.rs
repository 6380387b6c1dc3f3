//! The public corpus: thousands of captures of every origin, damaged and fuzzed ones among them.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use wirelab::{Error, Input, ScanRequest, TABLES, TableId, Unobserved};

use crate::support::cells::{Value, column};
use crate::support::{crate_root, files_below, outside_folder, process_bytes, tables, with_threads};

/// No file of the corpus is larger than 4 MiB, so any that takes this long hangs.
const SECONDS_PER_FILE: u64 = 30;

/// Captures of which wirelab and tshark may differ in frames or times, and why wirelab is right or both are.
const EXCEPTIONS: [(&str, &str); 0] = [];

#[test]
fn corpus_frames_and_times_are_tsharks_to_the_nanosecond() {
    let Some(corpus) = outside_folder("WIRELAB_CORPUS", "../shared/corpus") else { return };
    let oracle = std::fs::read_to_string(crate_root().join("tests/data/packet_times.tsv")).unwrap();
    let mut lines = oracle.lines();
    assert_eq!(lines.next(), Some("path\tframes\tfnv1a64"));
    let expected: BTreeMap<PathBuf, (u64, String)> = lines
        .map(|line| {
            let [path, frames, hash] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (corpus.join(path), (frames.parse().unwrap(), hash.to_owned()))
        })
        .collect();
    assert!(expected.len() > 2_400, "{} captures", expected.len());
    let total: u64 = expected.values().map(|(frames, _)| frames).sum();
    let exceptions: BTreeSet<_> = EXCEPTIONS.iter().map(|(path, _)| corpus.join(path)).collect();
    let paths: Vec<_> = expected.keys().cloned().collect();
    let mut differing = BTreeSet::new();
    let mut report = Vec::new();
    for (path, ours) in each_file(&paths, |path| times_of(path).map_err(|error| error.to_string())) {
        let (frames, hash) = &expected[&path];
        let ours = ours.unwrap_or_else(|panic| panic!("{}: {panic}", path.display()));
        let what = match ours {
            Ok((our_frames, _)) if our_frames != *frames => format!("{our_frames} frames, tshark has {frames}"),
            Ok((_, our_hash)) if our_hash != *hash => "other times than tshark".to_owned(),
            Ok(_) => continue,
            Err(error) => error,
        };
        differing.insert(path.clone());
        if !exceptions.contains(&path) {
            report.push(format!("{}: {what}", path.display()));
        }
    }
    report.sort();
    assert!(report.is_empty(), "{} of {} captures differ:\n{}", report.len(), expected.len(), report.join("\n"));
    let needless: Vec<_> = exceptions.difference(&differing).collect();
    assert!(needless.is_empty(), "excepted, but equal: {needless:?}");
    let equal = expected.len() - exceptions.len();
    println!(
        "{equal} captures with {total} frames in all: frames and times are tshark's; {} excepted",
        exceptions.len()
    );
}

#[test]
fn corpus_files_are_all_read_without_panic_or_hang() {
    let Some(corpus) = outside_folder("WIRELAB_CORPUS", "../shared/corpus") else { return };
    // The pause frames are among the assembled vectors: nobody has published a capture of any.
    let mut paths = files_below(&corpus.join("pcaps"), &[""]);
    paths.extend(files_below(&corpus.join("vectors"), &[".pcap", ".pcapng"]));
    assert!(paths.len() > 2_700, "{} files", paths.len());
    let (mut read, mut refused, mut faults) = (0, Vec::new(), Vec::new());
    let mut rows = BTreeMap::new();
    for (path, outcome) in each_file(&paths, |path| rows_of(path)) {
        match outcome {
            Ok(Ok(counts)) => {
                read += 1;
                for (table, count) in counts {
                    *rows.entry(table).or_insert(0) += count;
                }
            }
            Ok(Err(Error::NotACapture { looks_like, .. })) => refused.push((looks_like.to_string(), path)),
            Ok(Err(error)) => faults.push(format!("{}: {error}", path.display())),
            Err(panic) => faults.push(format!("{}: panic: {panic}", path.display())),
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    // snoop and NetMon are other formats, by name; everything else of the corpus is pcap or pcapng.
    refused.retain(|(looks_like, _)| looks_like != "snoop" && looks_like != "netmon");
    assert!(refused.len() < 5, "refused: {refused:#?}");
    for table in TABLES {
        assert!(rows.contains_key(&table), "{}: no row in the whole corpus", table.name());
    }
    let peak = process_bytes("VmHWM").unwrap_or(0);
    println!("{read} files read; refused {refused:?}; peak resident memory {} MiB; rows {rows:?}", peak >> 20);
    assert!(peak < 1 << 30, "peak resident memory {} MiB", peak >> 20);
}

/// Frames, and the FNV-1a 64 hash of a line `number TAB time LF` for each, as `tests/oracle/packet_times.py` takes it of
/// what tshark prints.
fn times_of(path: &Path) -> Result<(u64, String), Error> {
    let columns = Some(vec!["frame_no".to_owned(), "time".to_owned()]);
    let request = ScanRequest { columns, ..ScanRequest::new(TableId::Packets) };
    let packets = tables(vec![Input::Path(path.to_path_buf())], &with_threads(1), &[request])?;
    let batches = &packets[0].batches;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut frames = 0;
    if batches.is_empty() {
        return Ok((frames, format!("{hash:016x}")));
    }
    for (number, time) in column(batches, "frame_no").iter().zip(column(batches, "time")) {
        let time = match time {
            Value::Int(time) => epoch_text(time as i64),
            _ => String::new(),
        };
        for byte in format!("{}\t{time}\n", number.int().unwrap_or(0)).bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        frames += 1;
    }
    Ok((frames, format!("{hash:016x}")))
}

/// Seconds since 1970 with nine digits, as tshark prints `frame.time_epoch`.
fn epoch_text(time_ns: i64) -> String {
    let (sign, time) = if time_ns < 0 { ("-", time_ns.unsigned_abs()) } else { ("", time_ns.unsigned_abs()) };
    format!("{sign}{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
}

fn rows_of(path: &Path) -> Result<Vec<(TableId, usize)>, Error> {
    let capture = wirelab::open([path], &with_threads(1))?;
    capture.load(&TABLES, &mut Unobserved)?;
    let mut rows = Vec::new();
    for table in TABLES {
        let count = capture.table(table)?.num_rows();
        if count > 0 {
            rows.push((table, count));
        }
    }
    Ok(rows)
}

/// Does `work` on every file, two at a time; fails where one takes too long. `Err` is a panic's message.
fn each_file<T: Send + 'static>(
    paths: &[PathBuf],
    work: impl Fn(&Path) -> T + Send + Sync + 'static,
) -> Vec<(PathBuf, Result<T, String>)> {
    const WORKERS: usize = 2;
    let (paths, work) = (Arc::new(paths.to_vec()), Arc::new(work));
    let next = Arc::new(AtomicUsize::new(0));
    let running: Arc<Mutex<BTreeMap<usize, (PathBuf, Instant)>>> = Arc::default();
    let (sender, receiver) = mpsc::channel();
    for worker in 0..WORKERS {
        let (paths, work, next, running, sender) =
            (paths.clone(), work.clone(), next.clone(), running.clone(), sender.clone());
        std::thread::spawn(move || {
            while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                running.lock().unwrap().insert(worker, (path.clone(), Instant::now()));
                let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| work(path))).map_err(|panic| {
                    let text = panic.downcast_ref::<String>().cloned();
                    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
                });
                running.lock().unwrap().remove(&worker);
                if sender.send((path.clone(), outcome)).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut outcomes = Vec::with_capacity(paths.len());
    while outcomes.len() < paths.len() {
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok(outcome) => outcomes.push(outcome),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("a worker ended early"),
        }
        for (path, since) in running.lock().unwrap().values() {
            let seconds = since.elapsed().as_secs();
            assert!(seconds < SECONDS_PER_FILE, "{} has taken {seconds} s", path.display());
        }
    }
    outcomes
}
