//! What is in the files.

use std::num::NonZeroUsize;

use arrow_array::RecordBatch;
use wirelab::convert::{ConvertOptions, DatasetFormat};
use wirelab::{Input, TABLES, TableId};

use super::{content, outcomes, part, read, run};
use crate::support::generate::{pcap, traffic};
use crate::support::{Scratch, all_tables, cells, sample, with_threads};

#[test]
fn a_dataset_holds_the_rows_of_every_table() {
    let scratch = Scratch::new("convert-rows");
    let path = scratch.write("mixed.pcap", &pcap(&traffic(20_000, 11)));
    let out = scratch.path().join("out");
    let done = run(&[&path], &out, &ConvertOptions { run: with_threads(2), ..ConvertOptions::default() }).unwrap();
    assert_eq!(outcomes(&done), [("mixed.pcap".to_owned(), "written")]);
    for table in all_tables(vec![Input::Path(path)], &with_threads(1)).unwrap() {
        let (batches, _) = read(&part(&out, table.table, "mixed.pcap"));
        assert!(table.num_rows() > 0, "{}: no row to compare", table.table.name());
        assert_eq!(cells::rows_as_text(&batches), cells::rows_as_text(&table.batches), "{}", table.table.name());
    }
}

#[test]
fn any_number_of_threads_and_captures_at_once_gives_the_same_bytes() {
    let scratch = Scratch::new("convert-threads");
    let mut inputs = vec![sample("tcp-loss/tcp-loss.h1.pcap"), sample("roce-loss/roce-loss.requester.pcap")];
    for (at, frames) in [40_000, 3_000, 9_000].into_iter().enumerate() {
        inputs.push(scratch.write(&format!("{at}.pcap"), &pcap(&traffic(frames, at as u64))));
    }
    for format in [DatasetFormat::Parquet, DatasetFormat::Arrow] {
        let convert = |threads: usize, jobs: Option<usize>| {
            let out = scratch.path().join(format!("{}-{threads}-{jobs:?}", format.name()));
            let jobs = jobs.and_then(NonZeroUsize::new);
            let options = ConvertOptions { run: with_threads(threads), format, jobs, ..ConvertOptions::default() };
            let done = run(&inputs, &out, &options).unwrap();
            assert_eq!(done.failed().count(), 0);
            content(&out)
        };
        let one = convert(1, None);
        assert_eq!(one.len(), inputs.len() * (TABLES.len() + 1) + 1, "{:?}", one.keys());
        let others: &[(usize, Option<usize>)] = match format {
            DatasetFormat::Parquet => &[(2, None), (7, None), (2, Some(1)), (1, Some(3))],
            DatasetFormat::Arrow => &[(7, None)],
        };
        for &(threads, jobs) in others {
            let other = convert(threads, jobs);
            assert!(one.keys().eq(other.keys()), "{threads} threads, {jobs:?} at once: other files");
            for (name, bytes) in &one {
                assert!(bytes == &other[name], "{threads} threads, {jobs:?} at once: {name} differs");
            }
        }
    }
}

#[test]
fn a_table_without_rows_is_a_file_with_its_columns() {
    let scratch = Scratch::new("convert-empty");
    let out = scratch.path().join("out");
    run(&[sample("ping-delay/ping-delay.pcap")], &out, &ConvertOptions::default()).unwrap();
    let mut empty = 0;
    for table in TABLES {
        let file = std::fs::File::open(part(&out, table, "ping-delay.pcap")).unwrap();
        let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let names: Vec<_> = builder.schema().fields().iter().map(|field| field.name().as_str()).collect();
        let declared: Vec<_> = table.definition().columns.iter().map(|column| column.name).collect();
        assert_eq!(names, declared, "{}", table.name());
        empty += usize::from(builder.metadata().file_metadata().num_rows() == 0);
    }
    assert!(empty > 5, "{empty} tables are empty");
}

#[test]
fn files_say_what_wrote_them_and_in_which_units() {
    let scratch = Scratch::new("convert-schema");
    let input = [sample("ping-delay/ping-delay.pcap")];
    let (parquet, arrow) = (scratch.path().join("parquet"), scratch.path().join("arrow"));
    run(&input, &parquet, &ConvertOptions::default()).unwrap();
    run(&input, &arrow, &ConvertOptions { format: DatasetFormat::Arrow, ..ConvertOptions::default() }).unwrap();
    let file = std::fs::File::open(part(&parquet, TableId::Probes, "ping-delay.pcap")).unwrap();
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let pairs = builder.metadata().file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
    assert_eq!(value("wirelab.version"), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(value("wirelab.table"), Some("probes"));
    let columns = builder.metadata().row_group(0).columns();
    for column in columns {
        assert!(matches!(column.compression(), parquet::basic::Compression::ZSTD(_)), "{}", column.column_path());
        assert!(column.statistics().is_some(), "{}", column.column_path());
    }
    let file = std::fs::File::open(arrow.join("probes/capture=ping-delay.pcap/part-0.arrow")).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    for schema in [builder.schema().clone(), reader.schema()] {
        assert_eq!(schema.metadata()["wirelab.version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(schema.field_with_name("rtt_ns").unwrap().metadata()["unit"], "ns");
        assert!(schema.field_with_name("file_no").unwrap().metadata().is_empty());
    }
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().unwrap();
    let (rows, _) = read(&part(&parquet, TableId::Probes, "ping-delay.pcap"));
    assert_eq!(cells::rows_as_text(&batches), cells::rows_as_text(&rows));
}

#[test]
fn row_groups_are_cut_by_rows() {
    let scratch = Scratch::new("convert-groups");
    let path = scratch.write("long.pcap", &pcap(&traffic(300_000, 5)));
    let out = scratch.path().join("out");
    let options = ConvertOptions { tables: vec![TableId::Packets], run: with_threads(2), ..ConvertOptions::default() };
    run(&[path], &out, &options).unwrap();
    let (batches, groups) = read(&part(&out, TableId::Packets, "long.pcap"));
    assert_eq!(groups, [131_072, 131_072, 37_856]);
    let numbers = cells::ints(&batches, "frame_no");
    assert!(numbers.iter().copied().eq(1..=300_000));
}
