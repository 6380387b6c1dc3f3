//! Writes the tables of captures as Arrow IPC streams, one directory per capture: what the differential test reads.
//!
//! `cargo run --example dump_tables -- LIST TABLES`, where each line of LIST is a capture, a tab and a directory to write to.
//! A capture that cannot be read leaves the file `error.txt` in its directory.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use wirelab::scan::MultiScan;
use wirelab::write::{TableFormat, TableWriter};
use wirelab::{Options, ScanRequest, TableId, Unobserved};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(list), Some(tables)) = (arguments.next(), arguments.next()) else {
        return Err("usage: dump_tables LIST TABLES".into());
    };
    let tables = tables.split(',').map(TableId::from_name).collect::<Result<Vec<_>, _>>()?;
    for line in fs::read_to_string(list)?.lines() {
        let (capture, directory) = line.split_once('\t').ok_or("a line has no tab")?;
        let directory = Path::new(directory);
        fs::create_dir_all(directory)?;
        if let Err(error) = dump(capture, directory, &tables) {
            fs::write(directory.join("error.txt"), error.to_string())?;
        }
    }
    Ok(())
}

fn dump(capture: &str, directory: &Path, tables: &[TableId]) -> Result<(), Box<dyn std::error::Error>> {
    let requests: Vec<_> = tables.iter().map(|table| ScanRequest::new(*table)).collect();
    let mut scan = MultiScan::new(vec![capture.into()], &Options::default(), &requests)?;
    let mut writers = Vec::new();
    for table in tables {
        let file = BufWriter::new(File::create(directory.join(format!("{}.arrows", table.name())))?);
        writers.push(TableWriter::new(TableFormat::ArrowStream, &table.definition().schema(), file)?);
    }
    while let Some(batches) = scan.next_batches(&mut Unobserved)? {
        for (table, batch) in batches {
            if let Some(at) = tables.iter().position(|other| *other == table) {
                writers[at].write(&batch)?;
            }
        }
    }
    for writer in writers {
        writer.finish()?;
    }
    Ok(())
}
