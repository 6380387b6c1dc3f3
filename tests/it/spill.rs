//! Tables that are larger than the memory they may take.

use std::sync::Arc;

use wirelab::{Options, TABLES, TableId, Unobserved};

use crate::memory::measured_alone;
use crate::support::generate::{START_NS, pcap, pcap_header, pcap_record_header, traffic, udp};
use crate::support::{Scratch, cells, process_bytes, sample, with_threads};

fn with_budget(bytes: u64) -> Options {
    Options { memory_budget_bytes: Some(bytes), ..with_threads(2) }
}

#[test]
fn tables_in_files_hold_what_tables_in_memory_hold() {
    let scratch = Scratch::new("spill-rows");
    let path = scratch.write("mixed.pcap", &pcap(&traffic(40_000, 3)));
    let in_memory = wirelab::open([path.as_path()], &with_budget(1 << 40)).unwrap();
    let in_files = wirelab::open([path.as_path()], &with_budget(1)).unwrap();
    in_files.load(&TABLES, &mut Unobserved).unwrap();
    let mut most = 0;
    for table in TABLES {
        let (one, other) = (in_memory.table(table).unwrap(), in_files.table(table).unwrap());
        assert!(one.num_rows() > 0, "{}: no row to compare", table.name());
        if table == TableId::CaptureQuality {
            assert_eq!(other.num_rows(), one.num_rows() + 1, "the finding that says so");
            continue;
        }
        assert_eq!(other.schema, one.schema);
        let sizes = |data: &wirelab::TableData| data.batches.iter().map(|batch| batch.num_rows()).collect::<Vec<_>>();
        assert_eq!(sizes(&other), sizes(&one), "{}", table.name());
        assert_eq!(cells::rows_as_text(&other.batches), cells::rows_as_text(&one.batches), "{}", table.name());
        most = most.max(other.batches.len());
    }
    assert!(most > 1, "no table has batches whose dictionaries differ");
}

#[test]
fn a_capture_says_beforehand_that_a_table_will_not_fit_and_a_scan_does_not() {
    let path = sample("tcp-loss/tcp-loss.h1.pcap");
    let codes = |options: &Options| {
        let table = wirelab::open([path.as_path()], options).unwrap().table(TableId::CaptureQuality).unwrap();
        (cells::texts(&table.batches, "code"), cells::texts(&table.batches, "message_en"))
    };
    let (fits, _) = codes(&Options::default());
    let (codes, messages) = codes(&with_budget(100_000));
    let at = codes.iter().position(|code| code == "large_tables").unwrap();
    assert!(!fits.contains(&"large_tables".to_owned()) && codes.len() == fits.len() + 1);
    // 4,117 frames of 170 bytes.
    assert!(messages[at].contains("takes about 1 MB, more than the 1 MB"), "{}", messages[at]);
    assert!(messages[at].contains("wl.scan") && messages[at].contains("wirelab convert"));
    let request = wirelab::ScanRequest::new(TableId::CaptureQuality);
    let scanned = wirelab::scan([path.as_path()], &with_budget(100_000), request).unwrap();
    let batches: Vec<_> = scanned.collect::<Result<_, _>>().unwrap();
    assert!(!cells::texts(&batches, "code").contains(&"large_tables".to_owned()));
}

#[test]
fn a_table_in_a_file_takes_no_memory_of_its_own() {
    measured_alone("spill::a_table_in_a_file_takes_no_memory_of_its_own", || {
        let scratch = Scratch::new("spill-memory");
        let frame = udp([10, 0, 0, 1], [10, 0, 1, 1], (10_000, 5201), 22);
        let mut bytes = pcap_header(1);
        let frames = 500_000_u64;
        for number in 0..frames {
            bytes.extend(pcap_record_header(START_NS + number as i64, frame.len() as u32));
            bytes.extend(&frame);
        }
        let path = scratch.write("many.pcap", &bytes);
        drop(bytes);
        let capture = wirelab::open([path.as_path()], &with_budget(4 << 20)).unwrap();
        let before = process_bytes("RssAnon").unwrap();
        let table = capture.table(TableId::Packets).unwrap();
        let taken = process_bytes("RssAnon").unwrap().saturating_sub(before);
        println!("anonymous memory: {} MiB for {} rows", taken >> 20, table.num_rows());
        assert_eq!(table.num_rows() as u64, frames);
        let numbers = cells::ints(&table.batches, "frame_no");
        assert!(numbers.iter().copied().eq(1..=i128::from(frames)));
        // In memory it would be 80 MiB.
        assert!(taken < 40 << 20, "{} MiB", taken >> 20);
        let shared = Arc::clone(&table);
        drop((capture, table));
        assert_eq!(cells::ints(&shared.batches, "frame_no").len() as u64, frames, "the rows outlive their capture");
        let own = format!("wirelab-{}-", std::process::id());
        let left = std::fs::read_dir(std::env::temp_dir()).unwrap();
        let left = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(&own)).count();
        assert!(cfg!(not(unix)) || left == 0, "{left} files have a name");
    });
}
