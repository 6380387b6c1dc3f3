//! Does one piece of work on a capture and prints what came of it, as one line of JSON: what `make bench` measures.
//!
//! `cargo run --release --features sql --example scan_rows -- FILE --tables packets,tcp,tcp_flows --threads N --checksums on`
//!
//! Without `--tables` frames are decoded and nothing is built. `--convert DIR` makes a dataset of all tables (or of those
//! named) there; `--sql QUERY` answers a query whose first row has one number.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use wirelab::convert::Outcome;
use wirelab::{ConvertOptions, Options, ScanRequest, TABLES, TableId, Unobserved};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: scan_rows FILE [--tables A,B] [--threads N]")?;
    let (mut tables, mut options) = (Vec::new(), Options::default());
    options.checksums = wirelab::Checksums::Off;
    let (mut dataset, mut query) = (None, None);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or("an option needs a value")?;
        match option.as_str() {
            "--tables" => tables = value.split(',').map(TableId::from_name).collect::<Result<_, _>>()?,
            "--checksums" => {
                options.checksums = if value == "on" { wirelab::Checksums::On } else { wirelab::Checksums::Off }
            }
            "--threads" => options.threads = Some(value.parse::<NonZeroUsize>()?),
            "--convert" => dataset = Some(PathBuf::from(value)),
            "--sql" => query = Some(value),
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let said = match (dataset, query) {
        (Some(folder), _) => rows(convert(&path, options, tables, folder)?),
        (None, Some(query)) => format!("{{\"answer\": {}}}", answer(&path, &options, &query)?),
        (None, None) if tables.is_empty() => format!("{{\"frames\": {}}}", decode(&path, &options)?),
        (None, None) => rows(scan(&path, &options, &tables)?),
    };
    println!("{said}");
    Ok(())
}

fn rows(counts: BTreeMap<&str, u64>) -> String {
    let counts: Vec<_> = counts.iter().map(|(table, count)| format!("\"{table}\": {count}")).collect();
    format!("{{\"rows\": {{{}}}}}", counts.join(", "))
}

fn scan(path: &str, options: &Options, tables: &[TableId]) -> Result<BTreeMap<&'static str, u64>, Failure> {
    let requests: Vec<_> = tables.iter().map(|table| ScanRequest::new(*table)).collect();
    let mut rows: BTreeMap<_, _> = tables.iter().map(|table| (table.name(), 0)).collect();
    let mut scan = wirelab::scan::MultiScan::new(vec![path.into()], options, &requests)?;
    while let Some(batches) = scan.next_batches(&mut Unobserved)? {
        for (table, batch) in batches {
            *rows.entry(table.name()).or_default() += batch.num_rows() as u64;
        }
    }
    Ok(rows)
}

/// Decodes every frame, and returns how many there are.
fn decode(path: &str, options: &Options) -> Result<u64, Failure> {
    let mut scan = wirelab::scan::MultiScan::new(vec![path.into()], options, &[])?;
    while scan.next_batches(&mut Unobserved)?.is_some() {}
    Ok(scan.summary().frames)
}

fn convert(
    path: &str,
    run: Options,
    tables: Vec<TableId>,
    folder: PathBuf,
) -> Result<BTreeMap<&'static str, u64>, Failure> {
    let tables = if tables.is_empty() { TABLES.to_vec() } else { tables };
    let options = ConvertOptions { run, tables, ..ConvertOptions::default() };
    let done = wirelab::convert([path], &folder, &options, &mut Unobserved)?;
    if let Some((_, error)) = done.failed().next() {
        return Err(error.to_string().into());
    }
    match done.captures.into_iter().next().map(|capture| capture.outcome) {
        Some(Outcome::Written(rows)) => Ok(rows.into_iter().map(|(table, rows)| (table.name(), rows)).collect()),
        _ => Err("nothing was written: the folder holds the dataset already".into()),
    }
}

#[cfg(feature = "sql")]
fn answer(path: &str, options: &Options, query: &str) -> Result<String, Failure> {
    let capture = wirelab::open([path], options)?;
    let answer = capture.sql(query, &[])?;
    let first = answer.batches.first().ok_or("the query has no answer")?;
    let number =
        arrow_array::cast::AsArray::as_primitive_opt::<arrow_array::types::Int64Type>(first.column(0).as_ref());
    Ok(number.ok_or("the query's answer is no number")?.value(0).to_string())
}

#[cfg(not(feature = "sql"))]
fn answer(_: &str, _: &Options, _: &str) -> Result<String, Failure> {
    Err("built without SQL".into())
}
