//! The public corpus: thousands of captures of every origin, damaged and fuzzed ones among them.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use wirelab::{Error, Input, ScanRequest, TABLES, TableId, Unobserved};

use crate::support::cells::{Value, column, texts};
use crate::support::{crate_root, files_below, outside_folder, process_bytes, tables, with_threads};

/// No file of the corpus is larger than 4 MiB, so any that takes this long hangs.
const SECONDS_PER_FILE: u64 = 30;

/// Why wirelab and tshark differ on a capture; each was read from the file's bytes.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// Times after 2262-04-11 do not fit 64 bits of nanoseconds (all of them are mistakes of the writer, nanoseconds that
    /// are declared microseconds): null, with a finding.
    AfterYear2262,
    /// A pcap fraction of a second of 1,000,000 microseconds or more, as a rule in fuzzed files. tshark's product with
    /// 1,000 wraps in 32 bits, or is printed behind the point as it is; here it is carried over to the seconds.
    LongFraction,
}

const EXCEPTIONS: [(&str, Why); 17] = [
    ("pcaps/nfstream+nfstream/tests/pcaps/dhcp_big_endian.pcapng", Why::AfterYear2262),
    ("pcaps/nfstream+nfstream/tests/pcaps/dhcp_little_endian.pcapng", Why::AfterYear2262),
    ("pcaps/nfstream+nfstream/tests/pcaps/fuzz-2021-06-07-c6c72a0a56.pcap", Why::LongFraction),
    ("pcaps/ntop+nDPI/tests/cfgs/default/pcap/fuzz-2021-06-07-c6c72a0a56.pcap", Why::LongFraction),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-4672344017862656",
        Why::LongFraction,
    ),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-4829420752470016",
        Why::LongFraction,
    ),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-5196221831708672",
        Why::LongFraction,
    ),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-5421416466481152",
        Why::LongFraction,
    ),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-5487001111429120",
        Why::LongFraction,
    ),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-5700358767902720",
        Why::LongFraction,
    ),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-5814090897948672",
        Why::LongFraction,
    ),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-6223613626941440",
        Why::LongFraction,
    ),
    (
        "pcaps/seladb+PcapPlusPlus/Tests/Fuzzers/RegressionTests/regression_samples/clusterfuzz-testcase-minimized-FuzzTarget-6303070823907328",
        Why::LongFraction,
    ),
    ("pcaps/seladb+PcapPlusPlus/Tests/Pcap++Test/PcapExamples/pcapng-example.pcapng", Why::AfterYear2262),
    ("pcaps/simsong+tcpflow/tests/bug8.pcap", Why::LongFraction),
    ("pcaps/the-tcpdump-group+tcpdump/tests/timestamp_invalid_micro.pcap", Why::LongFraction),
    ("pcaps/the-tcpdump-group+tcpdump/tests/timestamp_invalid_nano.pcap", Why::LongFraction),
];

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
    let exceptions: BTreeMap<_, _> = EXCEPTIONS.iter().map(|(path, why)| (corpus.join(path), *why)).collect();
    let paths: Vec<_> = expected.keys().cloned().collect();
    let mut report = Vec::new();
    for (path, ours) in each_file(&paths, |path| times_of(path).map_err(|error| error.to_string())) {
        let (frames, hash) = &expected[&path];
        let is_as_expected = match (&ours, exceptions.get(&path)) {
            (Ok(Ok((ours, our_hash))), None) => ours == frames && our_hash == hash,
            // An exception that is none any more is to be struck off.
            (Ok(Ok((ours, our_hash))), Some(why)) => our_hash != hash && is_explained(&path, *why, *ours, *frames),
            _ => false,
        };
        if !is_as_expected {
            report.push(format!("{}: {ours:?}, tshark: {frames} frames, {hash}", path.display()));
        }
    }
    report.sort();
    assert!(report.is_empty(), "{} of {} captures:\n{}", report.len(), expected.len(), report.join("\n"));
    let equal = expected.len() - exceptions.len();
    println!("{equal} captures: frames and times are tshark's; {} excepted; {total} frames in all", exceptions.len());
}

fn is_explained(path: &Path, why: Why, ours: u64, tsharks: u64) -> bool {
    match why {
        Why::LongFraction => ours == tsharks,
        Why::AfterYear2262 => {
            let request = ScanRequest::new(TableId::CaptureQuality);
            let quality = tables(vec![Input::Path(path.to_path_buf())], &with_threads(1), &[request]).unwrap();
            ours == tsharks && texts(&quality[0].batches, "code").iter().any(|code| code == "unrepresentable_time")
        }
    }
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
    for (path, outcome) in each_file(&paths, rows_of) {
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
