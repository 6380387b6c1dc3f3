//! Progress, and stopping.

use std::ops::ControlFlow;

use wirelab::scan::MultiScan;
use wirelab::{Error, Input, Observer, Options, ScanRequest, TableId};

use crate::support::generate::{pcap, traffic};
use crate::support::{Scratch, with_threads};

/// Notes every call; breaks at the one of that number.
#[derive(Default)]
struct Notes {
    calls: Vec<(u64, Option<u64>)>,
    break_at: Option<usize>,
}

impl Observer for Notes {
    fn on_progress(&mut self, done_bytes: u64, total_bytes: Option<u64>) -> ControlFlow<()> {
        self.calls.push((done_bytes, total_bytes));
        match self.break_at {
            Some(at) if self.calls.len() == at => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn progress_grows_to_the_size_of_the_input() {
    let scratch = Scratch::new("progress");
    let file = pcap(&traffic(70_000, 11));
    let (plain, zipped) = (
        scratch.write("plain.pcap", &file),
        scratch.write("zipped.pcap.zst", &zstd::encode_all(&file[..], 1).unwrap()),
    );
    for (paths, least_calls) in [(vec![plain.clone()], 4), (vec![zipped.clone()], 4), (vec![zipped, plain], 8)] {
        let total: u64 = paths.iter().map(|path| std::fs::metadata(path).unwrap().len()).sum();
        for threads in [1, 2] {
            let mut notes = Notes::default();
            let inputs: Vec<_> = paths.iter().cloned().map(Input::Path).collect();
            let mut scan = wirelab::scan(inputs, &with_threads(threads), ScanRequest::new(TableId::Packets)).unwrap();
            while scan.next_batch(&mut notes).unwrap().is_some() {}
            assert!(notes.calls.len() >= least_calls, "{paths:?}: {:?}", notes.calls);
            assert!(notes.calls.is_sorted(), "{paths:?}: {:?}", notes.calls);
            assert_eq!(notes.calls.last(), Some(&(total, Some(total))), "{paths:?}");
        }
    }
}

#[test]
fn progress_is_told_while_no_rows_come() {
    let file: std::sync::Arc<[u8]> = pcap(&traffic(70_000, 14)).into();
    for threads in [1, 2] {
        let mut notes = Notes::default();
        let requests = [ScanRequest::new(TableId::Flows)];
        let mut scan = MultiScan::new(vec![Input::Bytes(file.clone())], &with_threads(threads), &requests).unwrap();
        assert_eq!(scan.next_batches(&mut notes).unwrap(), Some(vec![]), "flows come at the end");
        let mut told: Vec<_> = notes.calls.iter().map(|(done_bytes, _)| *done_bytes).collect();
        told.dedup();
        // One thread tells after each window; of two, one looks every now and then.
        assert!(threads > 1 || told.len() > 5, "{told:?}");
    }
}

#[test]
fn a_reader_has_no_total_but_progress() {
    let file = pcap(&traffic(40_000, 12));
    let bytes = file.len() as u64;
    let input = Input::Reader(Box::new(std::io::Cursor::new(file)), "pipe".to_owned());
    let mut notes = Notes::default();
    let mut scan = wirelab::scan([input], &with_threads(2), ScanRequest::new(TableId::Packets)).unwrap();
    while scan.next_batch(&mut notes).unwrap().is_some() {}
    assert!(notes.calls.iter().all(|(_, total)| total.is_none()));
    assert_eq!(notes.calls.last().map(|(done, _)| *done), Some(bytes));
}

#[test]
fn an_observer_that_breaks_ends_the_run_at_once() {
    let bytes: std::sync::Arc<[u8]> = pcap(&traffic(70_000, 13)).into();
    for break_at in [1, 2, 4] {
        let mut notes = Notes { break_at: Some(break_at), ..Notes::default() };
        let request = ScanRequest::new(TableId::Packets);
        let mut scan = wirelab::scan([Input::Bytes(bytes.clone())], &with_threads(2), request).unwrap();
        let error = loop {
            match scan.next_batch(&mut notes) {
                Ok(batch) => assert!(batch.is_some(), "the run ended as if it were whole"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Cancelled), "{error:?}");
        assert_eq!(notes.calls.len(), break_at);
        assert!(scan.next_batch(&mut notes).unwrap().is_none(), "nothing comes after the end");
        assert_eq!(notes.calls.len(), break_at, "nobody is asked after the end");
    }
}

#[test]
fn a_window_is_given_up_in_the_middle() {
    let bytes: std::sync::Arc<[u8]> = pcap(&traffic(10_000, 15)).into();
    let tables = [TableId::Packets, TableId::Tcp, TableId::TcpFlows, TableId::TcpEvents, TableId::Flows];
    let run = |notes: &mut Notes| {
        let input = Input::Bytes(bytes.clone());
        let mut scan = MultiScan::new(vec![input], &with_threads(1), &tables.map(ScanRequest::new)).unwrap();
        let mut steps = 0;
        loop {
            match scan.next_batches(notes) {
                Ok(Some(_)) => steps += 1,
                Ok(None) => return (steps, false),
                Err(error) => {
                    assert!(matches!(error, Error::Cancelled), "{error:?}");
                    assert!(scan.next_batches(notes).unwrap().is_none(), "half a window is not gone on with");
                    return (steps, true);
                }
            }
        }
    };
    let mut whole = Notes::default();
    let (steps, _) = run(&mut whole);
    assert!(steps <= 3, "the capture is one window, and what is known at the end");
    // Before each chunk, before each shard, and between the parts.
    let calls = whole.calls.len();
    assert!(calls > 100, "{calls} calls");
    for break_at in (1..=calls).step_by(7) {
        let mut notes = Notes { break_at: Some(break_at), ..Notes::default() };
        assert!(run(&mut notes).1, "stopped at call {break_at} of {calls}");
        assert_eq!(notes.calls.len(), break_at, "nobody is asked after the end");
    }
}

#[test]
fn writing_frames_and_matching_can_be_stopped() {
    let scratch = Scratch::new("stopped");
    let file = pcap(&traffic(40_000, 16));
    let capture = wirelab::open([Input::from(file.clone())], &Options::default()).unwrap();
    let mut notes = Notes { break_at: Some(2), ..Notes::default() };
    let path = scratch.path().join("out.pcapng");
    let error = capture.write_observed(&path, None, &[], &mut notes).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error:?}");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "half a file is left");
    let all = |break_at| {
        let mut notes = Notes { break_at, ..Notes::default() };
        let inputs = || [Input::from(file.clone())];
        let outcome = wirelab::match_captures(inputs(), inputs(), &wirelab::MatchOptions::default(), &mut notes);
        (outcome.err(), notes.calls.len())
    };
    let (none, calls) = all(None);
    assert!(none.is_none());
    // The last ones are asked after both captures were read.
    for break_at in (1..=calls).rev().take(8).chain([1, calls / 2]) {
        let (error, asked) = all(Some(break_at));
        assert!(matches!(error, Some(Error::Cancelled)), "{error:?} at call {break_at} of {calls}");
        assert_eq!(asked, break_at);
    }
}

#[test]
fn a_cancelled_table_can_be_asked_for_again() {
    let capture = wirelab::open([Input::from(pcap(&traffic(40_000, 14)))], &Options::default()).unwrap();
    let mut notes = Notes { break_at: Some(2), ..Notes::default() };
    let error = capture.table_observed(TableId::Tcp, &mut notes).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error:?}");
    assert_eq!(capture.table(TableId::Packets).unwrap().num_rows(), 40_000);
    assert!(capture.table(TableId::Tcp).unwrap().num_rows() > 1_000);
    // What is known is not computed again, so nobody is asked.
    let mut notes = Notes::default();
    capture.table_observed(TableId::Tcp, &mut notes).unwrap();
    assert_eq!(notes.calls, []);
}
