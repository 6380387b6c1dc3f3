//! Prints one table of a capture as CSV, batch by batch.
//!
//! `cargo run --example table_to_csv -- TABLE FILE...`

use wirelab::write::{TableFormat, TableWriter};
use wirelab::{Options, ScanRequest, TableId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let table = TableId::from_name(&arguments.next().ok_or("usage: table_to_csv TABLE FILE...")?)?;
    let files: Vec<String> = arguments.collect();
    let scan = wirelab::scan(files.iter().map(String::as_str), &Options::default(), ScanRequest::new(table))?;
    let mut writer = TableWriter::new(TableFormat::Csv, &scan.schema(), std::io::stdout())?;
    for batch in scan {
        writer.write(&batch?)?;
    }
    writer.finish()?;
    Ok(())
}
