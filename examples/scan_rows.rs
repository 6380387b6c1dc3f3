//! Scans tables of a capture and prints how many rows each has, as one line of JSON: what `make bench` measures.
//!
//! `cargo run --release --example scan_rows -- FILE --tables packets,tcp,tcp_flows --threads N --checksums on`

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use wirelab::{Options, ScanRequest, TableId, Unobserved};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: scan_rows FILE --tables A,B --threads N")?;
    let (mut tables, mut options) = (vec![TableId::Packets], Options::default());
    options.checksums = wirelab::Checksums::Off;
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or("an option needs a value")?;
        match option.as_str() {
            "--tables" => tables = value.split(',').map(TableId::from_name).collect::<Result<_, _>>()?,
            "--checksums" => {
                options.checksums = if value == "on" { wirelab::Checksums::On } else { wirelab::Checksums::Off }
            }
            "--threads" => options.threads = Some(value.parse::<NonZeroUsize>()?),
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let requests: Vec<_> = tables.iter().map(|table| ScanRequest::new(*table)).collect();
    let mut rows: BTreeMap<&str, usize> = tables.iter().map(|table| (table.name(), 0)).collect();
    let mut scan = wirelab::scan::MultiScan::new(vec![path.as_str().into()], &options, &requests)?;
    while let Some(batches) = scan.next_batches(&mut Unobserved)? {
        for (table, batch) in batches {
            *rows.entry(table.name()).or_default() += batch.num_rows();
        }
    }
    let counts: Vec<_> = rows.iter().map(|(table, count)| format!("\"{table}\": {count}")).collect();
    println!("{{\"rows\": {{{}}}}}", counts.join(", "));
    Ok(())
}
